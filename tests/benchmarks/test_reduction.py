from __future__ import annotations

import shutil
from collections.abc import Mapping

import pytest

from epochgate.benchmarks import checker_reduction
from epochgate.benchmarks.checker import CountsDiffer

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(not shutil.which("spin"), reason="needs Spin"),
]
SMALL: Mapping[str, tuple[Mapping[str, int], tuple[int, int]]] = {
    "Track": ({"runners": 4, "laps": 4}, (625, 2000)),
    "Workshop": ({"workers": 4, "parts": 3}, (1125, 4200)),
    "Ring": ({"members": 5}, (144, 387)),
    "Table": ({"places": 5}, (82, 265)),
    "Filter": ({"processes": 4}, (4752, 13080)),
}


def small() -> list[checker_reduction.Model]:
    """The models of the benchmark in a size that both search at once; the last one is small."""
    found = []
    for model in checker_reduction.MODELS[:-1]:
        constants, expected = SMALL[model.system.rpartition(":")[2]]
        found.append(model._replace(constants=constants, expected=expected))
    return found


def test_spin_and_the_checker_search_the_same_models() -> None:
    table = checker_reduction.measure(runs=1, models=tuple(small()))
    states = [(row[1], row[4], row[6]) for row in table.rows]
    assert states == [
        ("625", "17", "17"),
        ("1,125", "65", "36"),
        ("144", "15", "15"),
        ("82", "82", "50"),
        ("4,752", "4,752", "4,752"),
    ]


def test_a_model_that_they_count_differently_ends_the_benchmark() -> None:
    wrong = small()[0]._replace(expected=(626, 2000))
    with pytest.raises(CountsDiffer, match="Spin counts"):
        checker_reduction.measure(runs=1, models=(wrong,))
