"""The operator of every sink: runs its writer, and hands over at each barrier the committables that
belong to no completed checkpoint yet.

Decides that committables of an aborted checkpoint are handed over again for the next (rule C1 in
docs/protocol.md): their records are consumed and must not be lost. They need not be in the state:
an attempt that goes back reads those records again, and those of a completed checkpoint are the
committer's. Leaves writing to the writer. Runs in the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import msgpack

from epochgate.runtime.api.commit_topology import CommitTopology
from epochgate.runtime.api.committing import Share, StepOutcome, TasksStep
from epochgate.runtime.api.operator import FatalTaskError, Operator, OperatorContext
from epochgate.runtime.api.sink import Sink, SinkWriter
from epochgate.runtime.api.sinks_of_one_job import label_of, labelled
from epochgate.runtime.closing import close_all


class SinkOperator(Operator):
    """Runs the writer of `sink`. A program calls `write` when `may_write` returns true.

    `label`: the sink's name in a job with several sinks and a `CommitterOfSinks`.
    """

    def __init__(self, sink: Sink, *, label: str | None = None) -> None:
        self._sink, self._label = sink, label
        self.state_version = sink.writer_state_version
        self._writer: SinkWriter | None = None
        self._step: TasksStep | None = None
        self._handed_over: list[Any] = []

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Create the writer, and what commits in the task."""
        super().open(context, state)
        own, states = _parted(state or b"")
        self._writer = self._sink.create_writer(context, own or None)
        if CommitTopology.of(self._sink).in_tasks:
            self._step = TasksStep(self._sink, context)
            self._step.open(states)
        elif states and any(states):
            raise FatalTaskError(
                f"the checkpoint holds states of {len(states)} operators between the commits in "
                f"the tasks, and {type(self._sink).__name__} has none: start with the operators "
                "that the checkpoint was taken with"
            )

    def upgrade_state(self, version: int, state: bytes) -> bytes:
        """Upgrade the writer's state; an empty state needs no upgrade."""
        own, states = _parted(state)
        if own:
            own = self._sink.upgrade_writer_state(version, own)
        return own if states is None else _joined(own, states)

    @property
    def writer(self) -> SinkWriter:
        """The sink's writer. Raises RuntimeError before `open`."""
        if self._writer is None:
            raise RuntimeError("the sink's writer is made by `open`, which was not called yet")
        return self._writer

    def may_write(self, batch: Any) -> bool:
        """Return whether the writer accepts `batch` now; if not, return Work.IDLE from `work`."""
        return self.writer.may_write(batch)

    def write(self, batch: Any) -> None:
        """Pass `batch` to the writer."""
        self.writer.write(batch)

    def handle_event(self, event: Any) -> None:
        """Pass an event of the sink's coordinator to the writer."""
        self.writer.handle_event(event)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Return all committables since the last completed checkpoint."""
        new = self.writer.prepare_commit(checkpoint_id)
        self._handed_over += new if self._label is None else labelled(self._label, new)
        return list(self._handed_over)

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return the writer's state, and that of the operators of the tasks' step."""
        state = self.writer.snapshot(checkpoint_id)
        if self._step is None or not self._step.has_operators:
            return state
        return _joined(state, self._step.snapshot())

    @property
    def commits_in_task(self) -> bool:
        """True if the sink's topology has a step in the tasks."""
        return self._step is not None

    def owns(self, committable: Any) -> bool:
        """Return whether a committable of the job is of this sink."""
        return label_of(committable, "")[0] == (self._label or "")

    def commit(self, checkpoint_id: int, tries: int, shares: list[Share]) -> StepOutcome:
        """Commit this sink's shares of a completed checkpoint, as far as that goes."""
        with self._unlabelled(shares) as step:
            return step.commit(checkpoint_id, tries, shares)

    def pass_on(self, checkpoint_id: int, shares: list[Share]) -> None:
        """Let the operators behind the committer process what this sink has committed."""
        with self._unlabelled(shares) as step:
            step.pass_on(checkpoint_id, shares)

    @contextmanager
    def _unlabelled(self, shares: list[Share]) -> Iterator[TasksStep]:
        assert self._step is not None, "the job asks sinks that commit in the tasks"
        if self._label is not None:
            for share in shares:
                share.rest = [label_of(one, "")[1] for one in share.rest]
                share.done = [label_of(one, "")[1] for one in share.done]
        yield self._step
        if self._label is not None:
            for share in shares:
                share.rest = labelled(self._label, share.rest)
                share.done = labelled(self._label, share.done)
                if share.passed is not None:
                    share.passed = labelled(self._label, share.passed)

    def metrics(self) -> Mapping[str, int | float]:
        """Return how many commits in the task ended with each signal."""
        return {} if self._step is None else dict(self._step.counters)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Forget the committables, which the committer has now."""
        self._handed_over.clear()

    def close(self) -> None:
        """Close the writer, and what commits in the task, if they were created."""
        close_all([one for one in (self._step, self._writer) if one is not None])


_WITH_STEP: Final = b"epochgate.step\0"
"""Before the state of a writer together with those of the tasks' step."""


def writer_state(state: bytes) -> bytes:
    """Return the writer's part of a sink's state, which is what another parallelism begins from."""
    return _parted(state)[0]


def _joined(own: bytes, states: list[bytes]) -> bytes:
    packed: bytes = msgpack.packb([own, states])
    return _WITH_STEP + packed


def _parted(state: bytes) -> tuple[bytes, list[bytes] | None]:
    """The writer's state, and those of the tasks' step if there are any."""
    if not state.startswith(_WITH_STEP):
        return state, None
    own, states = msgpack.unpackb(state[len(_WITH_STEP) :])
    return own, states
