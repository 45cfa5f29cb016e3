"""The tables of docs/flink.md, made of the samples: medians with the least and the greatest, and
how many times better epochgate is.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable

from epochgate.benchmarks.figures import Table, number, percentile, spread
from epochgate.benchmarks.flink.contender import HOSTS, IN_FLIGHT
from epochgate.benchmarks.flink.measuring import (
    EPOCHGATE,
    FLINK,
    NAMES,
    Effort,
    Found,
    Samples,
)
from epochgate.benchmarks.flink.spark_job import SPARK_SUBTASKS_MAX

HEADER = ("epochgate", "Flink 2.3.0", "times better", "Flink in one process (no peer)")
QUESTIONS = ("events-and-failures", "checkpoints", "costs")
"""The tables in the order of the page."""
Pick = Callable[[Samples], list[float]]


def times_better(ours: list[float], theirs: list[float], *, is_rate: bool) -> str:
    """Return how many times better our median is: more of a rate, less of anything else.

    >>> times_better([10.0], [5.0], is_rate=True), times_better([10.0], [5.0], is_rate=False)
    ('2.00', '0.500')
    """
    mine, other = statistics.median(ours), statistics.median(theirs)
    above, below = (mine, other) if is_rate else (other, mine)
    return "–" if below == 0 else number(above / below)


def _row(
    found: Found, subtasks: int, what: str, pick: Pick, *, is_rate: bool = False
) -> tuple[str, ...]:
    ours, theirs, one = (pick(found[name, subtasks]) for name in NAMES)
    ratio = times_better(ours, theirs, is_rate=is_rate)
    return what, spread(ours), spread(theirs), ratio, spread(one)


def _sizes(found: Found) -> list[int]:
    return sorted({subtasks for _, subtasks in found})


def events_and_failures(found: Found, rounds: int, effort: Effort) -> Table:
    """Return the table of events, round trips and failures."""
    first = _sizes(found)[0]
    rates: list[tuple[str, Pick]] = [
        ("events/s, sent in the coordinator's calls", lambda one: one.in_calls_per_s),
        ("events/s, sent by a thread of the coordinator", lambda one: one.by_thread_per_s),
        ("events/s, in its calls, until all are handled", lambda one: one.handled_per_s),
    ]
    times: list[tuple[str, Pick]] = [
        ("round trip until the future is done, p50, µs", lambda one: one.confirmed_p50_us),
        ("round trip until the future is done, p99, µs", lambda one: one.confirmed_p99_us),
        ("round trip until the subtask's answer, p50, µs", lambda one: one.answered_p50_us),
        ("round trip until the subtask's answer, p99, µs", lambda one: one.answered_p99_us),
        ("from an operator's raising to its successor's first event, ms", lambda s: s.raised_ms),
        (f"from failing the job to the first events of all {first}, ms", lambda s: s.failed_ms),
    ]
    return Table(
        question=QUESTIONS[0],
        title=f"A coordinator and {first} subtasks: events and failures",
        header=("", *HEADER),
        rows=(
            *(_row(found, first, what, pick, is_rate=True) for what, pick in rates),
            *(_row(found, first, what, pick) for what, pick in times),
        ),
        notes=(
            f"Rounds: {rounds}, each with {number(effort.events)} events of each kind (at most "
            f"{IN_FLIGHT:,} in flight), {number(effort.trips)} round trips of each kind and "
            f"{effort.failures} failures of each kind, after a new start of each system and a "
            f"warm-up of {number(2 * effort.warming_events)} events and "
            f"{2 * effort.warming_failures} failures. The "
            f"tasks are in {HOSTS} task managers, or workers of {HOSTS} executors. Medians of the "
            "rounds (of all failures), with the least and the greatest."
        ),
    )


def checkpoints(found: Found, effort: Effort) -> Table:
    """Return the table of checkpoints."""
    rows: list[tuple[str, ...]] = []
    kinds: list[tuple[str, Pick]] = [
        ("idle", lambda one: [taken.clock_ms for taken in one.idle]),
        ("under load", lambda one: [taken.clock_ms for taken in one.loaded]),
    ]
    for subtasks in _sizes(found):
        mark = "" if subtasks <= SPARK_SUBTASKS_MAX else " (epochgate without Spark)"
        rows += [
            _row(found, subtasks, f"{subtasks} subtasks, {kind}{mark}", pick)
            for kind, pick in kinds
        ]
    return Table(
        question=QUESTIONS[1],
        title="How long a checkpoint takes, ms",
        header=("", *HEADER),
        rows=tuple(rows),
        notes=(
            "From the request of a checkpoint until it is known to be completed, each when the one "
            f"before was. In a round {effort.checkpoints} idle ones and "
            f"{effort.loaded_checkpoints} under load (at the greater parallelisms "
            f"{effort.checkpoints_of_many} and {effort.loaded_checkpoints_of_many}); the load is a "
            f"stream that never ends, with {IN_FLIGHT:,} events in flight. A subtask's state is "
            "the number of its events; checkpoints are written into a directory, in memory where "
            "the machine has one. Medians of all, with the least and "
            f"the greatest. {_reported(found)}"
        ),
    )


def _reported(found: Found) -> str:
    told = []
    for subtasks in _sizes(found):
        ours, theirs = (
            number(percentile([taken.reported_ms for taken in found[name, subtasks].idle], 50))
            for name in (EPOCHGATE, FLINK)
        )
        told.append(f"{ours} and {theirs} with {subtasks} subtasks")
    return (
        "Idle ones take, as the systems themselves report (ms, epochgate and Flink): "
        f"{', '.join(told)}."
    )


def costs(found: Found) -> Table:
    """Return the table of what the figures are made of."""
    sizes = _sizes(found)
    of_first: list[tuple[str, Pick]] = [
        ("driver's processor time per event, µs", lambda one: one.driver_us),
        ("the other processes' processor time per event, µs", lambda one: one.others_us),
        ("TCP segments per event", lambda one: one.segments),
        ("processor time of a failing task, all processes, ms", lambda s: s.raised_processor_ms),
        ("processor time of a failing job, all processes, ms", lambda s: s.failed_processor_ms),
    ]
    rows = [_row(found, sizes[0], what, pick) for what, pick in of_first]
    for subtasks in sizes:
        named = f"idle checkpoint of {subtasks} subtasks"
        of_size: Iterable[tuple[str, Pick]] = (
            (f"driver's processor time, {named}, ms", lambda one: one.checkpoint_driver_ms),
            (f"the others' processor time, {named}, ms", lambda one: one.checkpoint_others_ms),
        )
        rows += [_row(found, subtasks, what, pick) for what, pick in of_size]
        rows.append(
            _row(
                found,
                subtasks,
                f"events/s while checkpoints follow each other, {subtasks} subtasks",
                lambda one: one.loaded_per_s,
                is_rate=True,
            )
        )
    return Table(
        question=QUESTIONS[2],
        title="What these figures are made of",
        header=("", *HEADER),
        rows=tuple(rows),
        notes=(
            "The driver is epochgate's Python process or Flink's job manager; the others are "
            "Spark's JVMs and the Python workers, or the task managers. Linux counts processor "
            "time in steps of 10 ms, and TCP segments for the whole machine."
        ),
    )


def tables(found: Found, rounds: int, effort: Effort) -> list[Table]:
    """Return all tables in the order of the page."""
    return [events_and_failures(found, rounds, effort), checkpoints(found, effort), costs(found)]
