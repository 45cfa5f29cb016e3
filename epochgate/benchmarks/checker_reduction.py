"""The speed of the checker beside Spin where both reduce the orders of independent steps.

Each model is searched with and without reduction by both, in turn. Without it both must count the
same; with it each leaves out what it finds to be independent.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from epochgate.benchmarks import independent_promela as promela
from epochgate.benchmarks.checker import (
    CHECK,
    MODELS as REFERENCES,
    REFERENCE,
    Samples,
    SpinModel,
    install_spin,
    search,
)
from epochgate.benchmarks.figures import Table
from epochgate.benchmarks.promela import promela as reference

INDEPENDENT = "epochgate.benchmarks.independent"


class Model(NamedTuple):
    """A system of ours and its text in Promela, with its states and transitions."""

    name: str
    system: str
    constants: Mapping[str, int]
    promela: Callable[[Mapping[str, int]], str]
    expected: tuple[int, int]


def _reference() -> Model:
    name, bounds, states, transitions, _ = REFERENCES[0]
    constants = dict(zip("NCKEF", bounds, strict=True))
    return Model(
        f"{name} {bounds}",
        REFERENCE,
        constants,
        lambda constants: reference(dict(constants), "packed"),
        (states, transitions),
    )


MODELS = (
    Model(
        "8 runners that never meet",
        f"{INDEPENDENT}:Track",
        {"runners": 8, "laps": 5},
        promela.track,
        (1_679_616, 11_197_440),
    ),
    Model(
        "8 workers, one bench",
        f"{INDEPENDENT}:Workshop",
        {"workers": 8, "parts": 3},
        promela.workshop,
        (1_015_625, 7_250_000),
    ),
    Model(
        "election in a ring of 14",
        f"{INDEPENDENT}:Ring",
        {"members": 14},
        promela.ring,
        (832_040, 6_369_873),
    ),
    Model(
        "16 philosophers",
        f"{INDEPENDENT}:Table",
        {"places": 16},
        promela.table,
        (1_331_714, 13_774_112),
    ),
    Model(
        "Peterson's filter, 6 processes",
        f"{INDEPENDENT}:Filter",
        {"processes": 6},
        promela.filter_lock,
        (1_827_936, 6_803_688),
    ),
    _reference(),
)
RUNS = 3
TABLE_BITS = 22
REDUCED: Mapping[bool, tuple[str, ...]] = {
    False: ("-DNOCOMP", "-DNOREDUCE"),
    True: ("-DNOCOMP",),
}
"""With and without reduction, how Spin's search is compiled."""
CHECK_IN_PROCESSOR_TIME = f"import time\ntime.perf_counter = time.process_time\n{CHECK}"
"""Times in processor time: a search of milliseconds says little by the clock of a busy machine."""


def measure(
    runs: int = RUNS,
    models: tuple[Model, ...] = MODELS,
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Measure all models in turn, `runs` times each; raises CountsDiffer, SpinMissing."""
    install_spin()
    rows = []
    for model in models:
        spin = {is_reduced: Samples() for is_reduced in REDUCED}
        ours = {is_reduced: Samples() for is_reduced in REDUCED}
        left: dict[str, int] = {}
        with tempfile.TemporaryDirectory() as folder:
            compiled = {
                is_reduced: SpinModel(
                    Path(folder) / str(is_reduced),
                    model.promela(model.constants),
                    flags,
                    TABLE_BITS,
                )
                for is_reduced, flags in REDUCED.items()
            }
            for run in range(runs):
                note(f"{model.name}: run {run + 1} of {runs}")
                for is_reduced in REDUCED:
                    expected = None if is_reduced else model.expected
                    options = {"optimise_from": 0, "partial_order": is_reduced}
                    left["spin"], _ = compiled[is_reduced].search(spin[is_reduced], expected)
                    left["ours"], _ = search(
                        model.system,
                        model.constants,
                        options,
                        ours[is_reduced],
                        expected,
                        CHECK_IN_PROCESSOR_TIME,
                    )
        rows.append(_row(model, spin, ours, left))
    return Table(
        question="checker-reduction",
        title="Partial-order reduction, beside Spin's (seconds of processor time)",
        header=(
            "model",
            "states",
            "Spin",
            "ours",
            "Spin, reduced: states",
            "s",
            "ours, reduced: states",
            "s",
        ),
        rows=tuple(rows),
        notes=(
            f"Medians of {runs} interleaved runs; without reduction both count the same states and "
            "transitions. Searches in optimised code by one thread: Spin's with `-DNOREDUCE` and "
            "without, of which some 0.04 s is the start of a process, ours without "
            "`--partial-order` and with it. In Promela each is written as processes, and channels "
            "are declared to have one reader and one writer; S1 is one process, which leaves Spin "
            "nothing to reduce. Ours also keeps which rows are taken and which claims ever hold."
        ),
    )


def _row(
    model: Model, spin: Mapping[bool, Samples], ours: Mapping[bool, Samples], left: dict[str, int]
) -> tuple[str, ...]:
    return (
        model.name,
        f"{model.expected[0]:,}",
        f"{median(spin[False].processor_s):.3f}",
        f"{median(ours[False].search_s):.3f}",
        f"{left['spin']:,}",
        f"{median(spin[True].processor_s):.3f}",
        f"{left['ours']:,}",
        f"{median(ours[True].search_s):.3f}",
    )
