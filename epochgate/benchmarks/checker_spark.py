"""The speed of a search on Spark beside that of one machine, on the same models in the same run.

Each search is timed by the clock, and by the processor time of all its processes: with more
executors than cores, or beside other work, only the latter tells what a state costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from epochgate.benchmarks.checker import MODELS, REFERENCE, SHOWN, SYSTEM, Samples, search
from epochgate.benchmarks.figures import Table

LARGE = ("S6", (2, 2, 3, 2, 1), 63_455_228, 355_527_130, 0)
"""As those of `MODELS`; Spin has no part in it."""
TIMEOUT_S = 900.0
ALONE = f"""{SYSTEM}
from epochgate.benchmarks.processor import ProcessorTime
from epochgate.fsm.checker import check
with ProcessorTime() as used:
    result = check(system, **options)
measured_s = used.seconds
{SHOWN}"""
ON_SPARK = f"""{SYSTEM}
from epochgate.benchmarks.processor import ProcessorTime
from epochgate.spark.checking import SETTINGS, check_on_spark
from epochgate.spark.session import local_session
with local_session(options["master"], settings=SETTINGS) as spark, ProcessorTime() as used:
    result = check_on_spark(spark, system)
measured_s = used.seconds
{SHOWN}"""


CONTENDERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "two workers of one process": (ALONE, {"workers": 2, "optimise_from": 0}),
    "`local[2]`": (ON_SPARK, {"master": "local[2]"}),
    "1 executor": (ON_SPARK, {"master": "local-cluster[1,1,1024]"}),
    "2 executors": (ON_SPARK, {"master": "local-cluster[2,1,1024]"}),
    "4 executors": (ON_SPARK, {"master": "local-cluster[4,1,1024]"}),
}
RUNS = 1


def measure(
    runs: int = RUNS,
    models: tuple[tuple[str, tuple[int, ...], int, int, int], ...] = (MODELS[-1], LARGE),
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Measure all models in turn, `runs` times each."""
    rows = []
    for name, bounds, states, transitions, _ in models:
        constants = dict(zip("NCKEF", bounds, strict=True))
        samples = {who: Samples() for who in CONTENDERS}
        for run in range(runs):
            for who, (program, options) in CONTENDERS.items():
                note(f"{name}, {who}: run {run + 1} of {runs}")
                expected = states, transitions
                search(REFERENCE, constants, options, samples[who], expected, program, TIMEOUT_S)
        shown = f"{name} {bounds}, {states:,} states"
        rows += [_row(shown, who, states, found) for who, found in samples.items()]
    return Table(
        question="checker-spark",
        title="Searching every state on Spark, beside one machine",
        header=(
            "model",
            "searched by",
            "s",
            "M states/s",
            "s in all",
            "processor time, s",
            "M states/s of processor time",
            "bytes a state",
        ),
        rows=tuple(rows),
        notes=(
            f"Medians of {runs} interleaved runs (1: each figure is of one run) in processes of "
            "their own; the same states and transitions in all of them. Executors are "
            "those of `local-cluster`, with a core each; where they are more than the machine's "
            "cores, or other work has some of these, a second on the clock says little. The "
            "processor time is that of all processes (driver, JVMs, Python workers, keepers) from "
            "the call of the check to its result, compilation included. `In all` is everything "
            "with the start of Python, for Spark with that of a session; neither keeps code from "
            "earlier runs."
        ),
    )


def _row(model: str, who: str, states: int, samples: Samples) -> tuple[str, ...]:
    used_s = median(samples.processor_s)
    return (
        model,
        who,
        f"{samples.middle_s:.1f}",
        f"{states / samples.middle_s / 1e6:.2f}",
        f"{median(samples.total_s):.1f}",
        f"{used_s:.1f}",
        f"{states / used_s / 1e6:.2f}",
        f"{samples.state_bytes:.1f}",
    )
