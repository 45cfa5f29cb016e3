"""The tasks' step of a commit by itself, as a task runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgpack

from epochgate.runtime import Committables, OperatorContext, Sink
from epochgate.runtime.api.committing import Share, TasksStep


def context(run: str, subtask: int = 0, attempt: int = 1) -> OperatorContext:
    return OperatorContext("sink", subtask, attempt, 2, run, lambda value: None)


def committed(
    sink: Sink, run: str, checkpoint: int, handed_over: Mapping[int, Sequence[Any]]
) -> Committables:
    """Return what a task passes on of what these subtasks have handed over, once committed."""
    step = TasksStep(sink, context(run))
    step.open(None)
    shares = [Share(subtask, list(values)) for subtask, values in handed_over.items()]
    outcome = step.commit(checkpoint, 0, shares)
    assert outcome.reason == "", outcome.reason
    step.pass_on(checkpoint, shares)
    step.close()
    passed = {share.subtask: share.passed for share in shares}
    # As it comes over the wire.
    found: Committables = msgpack.unpackb(msgpack.packb(passed), strict_map_key=False)
    return found
