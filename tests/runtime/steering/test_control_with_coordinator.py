"""A control with a coordinator as its user sees it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.steering import ChoiceFailed, ValueRefused
from epochgate.spark.streaming import Control
from tests.runtime.steering.coordinators import INITIAL, Lowering, Provider

QUERY = "query-1"
FRAME: Any = object()


class Counting(Lowering):
    """Counts its choices."""

    def choose(self, next_batch: Any) -> Any:
        self.context.metrics.counter("choices").add()
        return super().choose(next_batch)


def control_in(folder: Path, provider: Provider, **more: Any) -> Control:
    (folder / "metadata").write_text(f'{{"id": "{QUERY}"}}')
    return Control("pricing", INITIAL, store=str(folder / "c"), coordinator=provider, **more)


def test_what_the_function_returns_reaches_the_coordinator_and_the_values_the_function(
    tmp_path: Path,
) -> None:
    provider, seen = Provider(), []

    def write(frame: Any, batch: int, values: dict[str, Any]) -> int:
        seen.append((batch, values["limit"]))
        values.clear()
        return 10 * batch

    steered = control_in(tmp_path, provider).apply(write, checkpoint=str(tmp_path))
    assert [steered(FRAME, batch) for batch in (0, 1, 1, 2)] == [0, 10, 10, 20]
    assert seen == [(0, 899), (1, 898), (1, 898), (2, 897)]
    assert [call for call in provider.taken if call[0] == "choose"] == [
        ("choose", 0, None),
        ("choose", 1, 0),
        ("choose", 2, 10),
    ]


def test_a_function_that_returns_what_is_not_plain_fails_its_batch(tmp_path: Path) -> None:
    control = control_in(tmp_path, Provider())
    steered = control.apply(lambda frame, values: {1}, checkpoint=str(tmp_path))
    with pytest.raises(ValueRefused, match=r"the function of control 'pricing' returned \{1\}"):
        steered(FRAME, 0)


def test_an_error_of_the_function_says_that_a_coordinator_chose_the_values(tmp_path: Path) -> None:
    steered = control_in(tmp_path, Provider()).apply(
        lambda frame, values: values["none"], checkpoint=str(tmp_path)
    )
    with pytest.raises(KeyError) as raised:
        steered(FRAME, 0)
    [note] = raised.value.__notes__
    assert "values of control 'pricing', as coordinator 'lowering' chose, as it does whenev" in note
    assert "  limit = 899\n" in note


def test_the_check_of_a_control_is_asked_of_what_a_coordinator_chooses(tmp_path: Path) -> None:
    control = control_in(tmp_path, Provider(), check=lambda values: values["limit"] > 898)
    assert control.decide(QUERY, 0).value["limit"] == 899
    with pytest.raises(ChoiceFailed, match="the check of control 'pricing' returned False"):
        control.decide(QUERY, 1)
    assert [one.batch for one in control.history()] == [0]


def test_metrics_have_those_of_the_coordinator_of_this_process(tmp_path: Path) -> None:
    control = control_in(tmp_path, Provider(Counting))
    for batch in range(3):
        control.decide(QUERY, batch)
    figures = control.metrics()
    assert (figures["coordinator.choices"], figures["decided"]) == (3, 3)
    assert "coordinator.choices" not in control.metrics(query="another")


def test_a_control_that_is_closed_closes_its_coordinators_and_restores_others(
    tmp_path: Path,
) -> None:
    provider = Provider()
    control = control_in(tmp_path, provider)
    control.decide(QUERY, 0)
    control.close()
    assert provider.taken[-1] == "close"
    assert control.decide(QUERY, 1).value["limit"] == 898
    assert provider.taken[:2] == [("reset", 1, 1), "start"]


def test_a_coordinator_whose_choice_has_failed_is_closed(tmp_path: Path) -> None:
    provider = Provider()
    control = control_in(tmp_path, provider, check=lambda values: values["limit"] == 900)
    with pytest.raises(ChoiceFailed):
        control.decide(QUERY, 0)
    assert provider.taken == ["start", ("choose", 0, None), "close"]


def test_a_control_travels_with_the_provider_and_without_its_coordinators(tmp_path: Path) -> None:
    control = control_in(tmp_path, Provider())
    control.decide(QUERY, 0)
    other = pickle.loads(pickle.dumps(control))
    assert [other.decide(QUERY, batch).value["limit"] for batch in (0, 1)] == [899, 898]
