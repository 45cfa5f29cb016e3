"""Ways of a fuzzed job into situations from which other steps find something new.

Everything happens, one thing at a time, until the machines are where they are wanted. Their states
only steer; nothing that is checked depends on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.stateful.fuzzed import FuzzedJob

STEPS_MAX = 60
STEPS_TO_FALL_BEHIND_MAX = 200
"""Two checkpoints of the largest job that is fuzzed, with their events, take about half of it."""


def walk(fuzzed: FuzzedJob, machine: str, subtask: int, state: str) -> None:
    """Go on until a machine is in this state."""
    master, number = fuzzed.simulated.master, subtask % fuzzed.shape.subtasks
    job = fuzzed.simulated.machines
    look: dict[str, Callable[[], str]] = {
        "attempt": lambda: job.attempt[number].state,
        "checkpoint": lambda: job.checkpoint.state,
        "first part": lambda: f"there: {any(job.checkpoint.has_acknowledged)}",
        "snapshot": lambda: job.snapshot[0].state,
        "lifecycle": lambda: job.lifecycle.state,
        "committer": lambda: job.committer.state,
    }
    if (machine, state) == ("lifecycle", "finishing"):
        master.stop()
    elif (machine, state) == ("lifecycle", "canceling"):
        master.cancel()
    elif (machine, state) == ("lifecycle", "restarting"):
        fuzzed.coordinator(0).context.fail_job("by order of the test")
    wants_checkpoint = machine not in ("attempt", "lifecycle")
    _go_on(fuzzed, lambda: look[machine]() == state, wants_checkpoint, STEPS_MAX)


def fall_behind(fuzzed: FuzzedJob) -> None:
    """Go on until a checkpoint is completed while an earlier one, with output, is not committed."""
    for coordinator, subtask in fuzzed.targets():
        fuzzed.coordinator(coordinator).send_next(subtask)
    committer = fuzzed.simulated.machines.committer
    _go_on(fuzzed, committer.has_more, True, STEPS_TO_FALL_BEHIND_MAX)


def _go_on(
    fuzzed: FuzzedJob, is_there: Callable[[], bool], wants_checkpoint: bool, steps_max: int
) -> None:
    with fuzzed.guarded():
        for _ in range(steps_max):
            if is_there() or fuzzed.is_over or not _step(fuzzed, wants_checkpoint):
                return


def _step(fuzzed: FuzzedJob, wants_checkpoint: bool) -> bool:
    simulated = fuzzed.simulated
    if simulated.drain(1):
        return True
    under_way = simulated.machines.checkpoint.number
    for coordinator in fuzzed.coordinators:
        if under_way in coordinator.results:
            coordinator.answer(under_way)
            return True
    if wants_checkpoint and simulated.machines.request.state == "idle":
        simulated.master.request_checkpoint()
        return True
    steps = simulated.steps()
    for step in steps:
        if step[0] not in ("work", "late"):
            return simulated.step(step)
    if any(simulated.step(step) for step in steps if step[0] == "work"):
        return True
    return simulated.run_blocking() or simulated.advance() is not None
