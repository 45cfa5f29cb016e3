"""The speed of a search on Spark beside that of one machine, on the same model in the same run.

Both have two cores: two workers of one process, and two partitions of `local[2]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from epochgate.benchmarks.checker import CHECK, MODELS, REFERENCE, SHOWN, Samples, search
from epochgate.benchmarks.figures import Table

LARGE = ("S6", (2, 2, 3, 2, 1), 63_455_228, 355_527_130, 0)
"""As those of `MODELS`; Spin has no part in it."""

ON_SPARK = f"""
import json, sys
from epochgate.models.studies.reference import Reference
from epochgate.spark.checking import SETTINGS, check_on_spark
from epochgate.spark.session import local_session
with local_session("local[2]", settings=SETTINGS) as spark:
    result = check_on_spark(spark, Reference(**json.loads(sys.argv[2])), **json.loads(sys.argv[3]))
{SHOWN}"""

CONTENDERS: Mapping[str, tuple[str, dict[str, int]]] = {
    "two workers": (CHECK, {"workers": 2, "optimise_from": 0}),
    "local[2]": (ON_SPARK, {}),
}
RUNS = 3


def measure(
    runs: int = RUNS,
    models: tuple[tuple[str, tuple[int, ...], int, int, int], ...] = (*MODELS, LARGE),
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Measure all models in turn, `runs` times each."""
    rows = []
    for name, bounds, states, transitions, _ in models:
        constants = dict(zip("NCKEF", bounds, strict=True))
        samples = {who: Samples() for who in CONTENDERS}
        for run in range(runs):
            note(f"{name}: run {run + 1} of {runs}")
            for who, (program, options) in CONTENDERS.items():
                search(REFERENCE, constants, options, samples[who], (states, transitions), program)
        rows.append(_row(f"{name} {bounds}", states, samples))
    return Table(
        question="checker-spark",
        title="Searching every state on Spark, beside one machine",
        header=(
            "model",
            "states",
            "two workers: s",
            "M states/s",
            "s in all",
            "bytes a state",
            "local[2]: s",
            "M states/s",
            "s in all",
            "bytes a state",
        ),
        rows=tuple(rows),
        notes=(
            f"Medians of {runs} interleaved runs in processes of their own; the same states and "
            "transitions in all of them. `In all` is everything with compilation and the start of "
            "Python, for Spark with that of a session; neither keeps code from earlier runs."
        ),
    )


def _row(name: str, states: int, samples: Mapping[str, Samples]) -> tuple[str, ...]:
    shown = [name, f"{states:,}"]
    for each in samples.values():
        speed = states / each.middle_s / 1e6
        figures = (each.middle_s, speed, median(each.total_s), each.state_bytes)
        shown += [
            f"{figure:.{digits}f}" for figure, digits in zip(figures, (1, 2, 1, 1), strict=True)
        ]
    return tuple(shown)
