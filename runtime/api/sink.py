"""The sink API: where the records of a job go, exactly once.

A sink has two sides. In each task a `SinkWriter` writes what it is given to a place that readers do
not look at, and hands over at each barrier what would make it visible: committables, plain values.
On the driver one `Committer` gets them once the checkpoint is complete, and shows all of it.
Leaves to `SinkOperator` the handing over again after an aborted checkpoint, to the job the ledger
of what is not known to be committed, and to a coordinator, where the sink has one, what writers
have to agree on. Source: Apache Flink's Sink V2 (section 6 of docs/protocol.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from epochgate.errors import UsageError
from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.operator import OperatorContext
from epochgate.runtime.api.state_versions import StateNotUpgraded


@dataclass(frozen=True)
class SinkStart:
    """One start of a job, as its sink needs to know it before anything runs.

    job_id: the same for every start. run_id: of this start, letters, digits and '-'.
    restored_checkpoint: from which it goes on; none: from the beginning. may_withdraw: newer
    checkpoints have been lost, so what they made visible is written again and has to be withdrawn.
    epoch: of the checkpoint store's opening; a later start of the same job has a higher one.
    """

    job_id: str
    run_id: str
    restored_checkpoint: int | None = None
    may_withdraw: bool = False
    epoch: int = 0


class AheadOfCheckpoint(UsageError):
    """The target holds checkpoints newer than the restored: place, its last, restored.

    What `Sink.create_committer` raises, with nothing changed, where it does not withdraw them.
    """

    def __str__(self) -> str:
        place, last, restored = self.args
        known = "no checkpoint" if restored is None else f"checkpoint {restored}"
        return (
            f"{place} already holds checkpoint {last} of this job, which starts from {known}: "
            "going on would write the rows since then twice. Give the checkpoints that hold "
            f"{last}, or a new target."
        )


class SinkWriter(ABC):
    """The task's side of a sink: one for each attempt of a subtask, on the task's only thread.

    What a method raises fails the attempt, and a FatalTaskError the job; the next attempt goes on
    from the last checkpoint, with a writer of its own.
    """

    def may_write(self, batch: Any) -> bool:
        """Whether `batch` can be written now; if not, it is asked again after the next event.

        Ask the coordinator here for what is missing.
        """
        return True

    @abstractmethod
    def write(self, batch: Any) -> None:
        """Write what readers must not see yet; `batch` is mostly a pyarrow.RecordBatch."""

    @abstractmethod
    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Finish what was written since the last call, durably, and return what the committer needs
        to show it, as plain values.

        Each committable is returned once: `SinkOperator` hands it over again where it has to be.
        """

    def snapshot(self, checkpoint_id: int) -> bytes:
        """What the next attempt begins with, beside what was handed over; called after
        `prepare_commit`.
        """
        return b""

    def handle_event(self, event: Any) -> None:
        """The sink's coordinator has sent `event`. Raises TypeError unless it is overridden."""
        raise TypeError(
            f"{type(self).__name__} got an event from its coordinator but does not handle events; "
            f"override handle_event"
        )

    def close(self) -> None:
        """Release everything, and remove what `prepare_commit` has not returned; called once, also
        when the attempt has failed or is canceled.
        """


class Sink(ABC):
    """What a user implements; it travels to the tasks, so it can be pickled and holds no resources.

    One sink serves one job at a time.
    """

    @abstractmethod
    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        """In a task: the writer of one attempt; `state`: its predecessor's `snapshot`, or none.

        Name what it writes by `context.run_id`, `subtask` and `attempt`: an attempt that was
        replaced may go on writing for a while.
        """

    @property
    def writer_state_version(self) -> int:
        """Which form of its state a writer's `snapshot` returns, from 1."""
        return 1

    def upgrade_writer_state(self, version: int, state: bytes) -> bytes:
        """A writer's state of an older version in the form of `writer_state_version`; in a task.

        Refuses every version unless it is overridden: raises StateNotUpgraded.
        """
        raise StateNotUpgraded(
            f"the writers of {type(self).__name__}", version, self.writer_state_version
        )

    @abstractmethod
    def create_committer(self, start: SinkStart) -> Committer:
        """On the driver, before the job starts: take the target, or raise what keeps it from that:
        AheadOfCheckpoint for one that holds newer checkpoints, unless it may and can withdraw them.

        The committer holds the target until it is closed, which it also is where the job does not
        come to run; closing it twice must do no harm.
        """

    def create_coordinator(
        self, operator_id: str, committer: Committer
    ) -> CoordinatorProvider | None:
        """On the driver: the provider of the writers' coordinator, of this operator id, if there is
        one; `committer` was made for the same start.
        """
        return None
