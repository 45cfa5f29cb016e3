"""Commits in doubt: what the newest checkpoint of a job says is not known to be committed, settled
while the job does not run.

What is settled is decided by the rows of the committer. Giving a commit up takes it from the
ledger, and the rest travels with a copy of the checkpoint under the next id. To commit, a job
master without tasks adopts the ledger, commits it with its retries, and is canceled once that is
known. Both take the store as a driver does, so that no driver of the job can be at work, and both
may be repeated after a crash: a commit is found to be done, and the copy is made or not. Runs on
the caller's thread and on those of the job master.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from epochgate.errors import EpochgateError, InvariantBroken, UsageError
from epochgate.fsm import Handles
from epochgate.models import Job
from epochgate.runtime.api.committer import Committables, Committer
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.job_events import Committed, JobEvent, JobListener
from epochgate.runtime.api.sink import SinkStart
from epochgate.runtime.api.sinks_of_one_job import newest_by_label
from epochgate.runtime.api.transport import Message, TaskInbox, Transport
from epochgate.runtime.shell.blocking_work import ThreadedWork
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.shell.queue_thread import JobLoop
from epochgate.runtime.sink_start import sink_start
from epochgate.runtime.store import CheckpointStore, CompletedCheckpoint
from epochgate.runtime.store.checkpoint import (
    COMMITTED,
    DEBTS,
    GIVEN_UP,
    MISSING,
    committed_of,
    debts_of,
    flat_of,
    in_doubt,
    missing_of,
    unsettled_of,
)
from epochgate.runtime.store.places import PLACES, STATES


class NothingInDoubt(UsageError):
    """There is nothing to settle: the place of the checkpoints."""

    def __str__(self) -> str:
        return f"{self.args[0]} has no checkpoint with commits in doubt"


class NothingAfter(UsageError):
    """The newest checkpoint is none after the given one: the place of the checkpoints, its id, the
    given one.
    """

    def __str__(self) -> str:
        place, newest, after = self.args
        return (
            f"the newest checkpoint in {place} is {newest}, so that no target can lack one after "
            f"{after}. Give --after the number that the refusal of the start names"
        )


class NotInDoubt(UsageError):
    """A checkpoint is to be given up that is not in doubt: its id, those that are."""

    def __str__(self) -> str:
        number, known = self.args
        return f"checkpoint {number} is not in doubt; in doubt are {', '.join(map(str, known))}"


class CommitsInSteps(UsageError):
    """The commits in doubt go through steps that only the job has: the place of the checkpoints."""

    def __str__(self) -> str:
        return (
            f"the job of {self.args[0]} commits in its tasks, or through operators between its "
            "commits, which this command does not run. Start the job, which commits what is in "
            "doubt; or give it up with `epochgate commits give-up`"
        )


class CommitsFailed(EpochgateError):
    """The commits in doubt could not be made: reason."""

    def __str__(self) -> str:
        return f"{self.args[0]}. It stays in doubt"


def give_up(
    store: CheckpointStore, numbers: Collection[int] | None, now_s: float
) -> dict[int, Committables]:
    """Settle these checkpoints, or all that are in doubt, without committing them; returns what is
    given up. `now_s`: since 1970. Raises NothingInDoubt, NotInDoubt, and what the store raises.
    """
    restored = _restored(store)
    held = in_doubt(restored)
    chosen = list(held) if numbers is None else sorted(set(numbers))
    for number in chosen:
        if number not in held:
            raise NotInDoubt(number, list(held))
    following, ledger = _next_id(store, restored), _Ledger(restored)
    ledger.give_up(chosen, following)
    gone = [*given_up_in(restored), *([n, flat_of(held[n]), now_s] for n in ledger.gone)]
    properties = {**restored.properties, GIVEN_UP: gone}
    if PLACES in properties:
        places = restored.properties[PLACES]
        properties[PLACES] = {n: place for n, place in places.items() if n in ledger.carried}
    store.save(_successor(store, restored, following, ledger.carried, properties, now_s))
    return {number: held[number] for number in ledger.gone}


def give_up_missing(store: CheckpointStore, after: int, now_s: float) -> int:
    """Let the next start take a target that lacks checkpoints after `after`, up to the newest,
    which is returned. What is in doubt stays so. `now_s`: since 1970.

    Raises NothingAfter, and what the store raises.
    """
    restored = store.latest()
    newest = None if restored is None else restored.checkpoint_id
    if restored is None or newest is None or newest <= after:
        raise NothingAfter(store.path, newest, after)
    missing = [*missing_of(restored), [after, newest, now_s]]
    properties = {**restored.properties, MISSING: missing}
    following, ledger = _next_id(store, restored), unsettled_of(restored)
    store.save(_successor(store, restored, following, ledger, properties, now_s))
    return newest


class _Ledger:
    """The ledger of a checkpoint in a committer of its own, which commits nothing; implements the
    committer's port `sink`.
    """

    def __init__(self, restored: CompletedCheckpoint) -> None:
        self.carried: dict[int, Committables] = {}
        """What the checkpoint that comes next has of earlier ones."""
        self.gone: list[int] = []
        self._held = unsettled_of(restored)

    def give_up(self, numbers: Collection[int], following: int) -> None:
        """Let these checkpoints leave the ledger, and the rest travel with the following one."""
        job = Handles(Job)
        job.bind("committer", "sink", self)
        for checkpoint in self._held:
            job.committer.adopt(checkpoint, 0)
        for checkpoint in numbers:
            job.committer.forgo(checkpoint)
        job.committer.carry(following)
        job.settle()

    def carry(self, checkpoint: int, earlier: int, tries: int) -> None:
        self.carried[earlier] = self._held[earlier]

    def forgone(self, checkpoint: int) -> None:
        self.gone.append(checkpoint)

    def cover(self, checkpoint: int) -> None:
        raise InvariantBroken(f"checkpoint {checkpoint} is to be committed, and no sink is open")

    def commit(self, checkpoint: int, tries: int) -> None:
        self.cover(checkpoint)

    def settled(self, checkpoint: int) -> None:
        self.cover(checkpoint)


def given_up_in(checkpoint: CompletedCheckpoint) -> list[list[Any]]:
    """Return what was given up in the history of this checkpoint: checkpoint, committables, seconds
    since 1970.
    """
    found: list[list[Any]] = checkpoint.properties.get(GIVEN_UP, [])
    return found


def commit_in_doubt(
    store: CheckpointStore,
    create_committer: Callable[[SinkStart], Committer],
    wall_clock: Callable[[], float],
) -> dict[int, Committables]:
    """Commit what is in doubt, as a start of the job would; returns it. Closes the store.

    Raises NothingInDoubt, CommitsInSteps, CommitsFailed, what `create_committer` and the store
    raise.
    """
    restored = _restored(store)
    if STATES in restored.properties:
        raise CommitsInSteps(store.path)
    held = in_doubt(restored)
    run_id = uuid.uuid4().hex
    committer = create_committer(replace(sink_start(store, restored, run_id), may_withdraw=False))
    settling = _Settling(store, restored, wall_clock)
    try:
        master = JobMaster(
            JobConfiguration(
                restored.job_id,
                restored.parallelism,
                run_id=run_id,
                checkpoint_interval_s=None,
                allow_dropped_state=[*restored.coordinators],
            ),
            transport=_NoTasks(),
            store=store,
            clock=MonotonicClock(),
            blocking=ThreadedWork,
            committer=committer,
            listeners=[settling],
        )
    except BaseException:
        committer.close()
        raise
    settling.on_settled = lambda: master.cancel("what was in doubt is committed")
    loop = JobLoop(master)
    loop.start()
    result = loop.join()
    if settling.error is not None:
        raise settling.error
    if not settling.is_settled:
        raise CommitsFailed(result.reason or f"the job is {result.state}")
    return held


class _Settling(JobListener):
    """Stores the successor of the checkpoint once all that was in doubt is committed; on the
    queue's thread.
    """

    def __init__(
        self,
        store: CheckpointStore,
        restored: CompletedCheckpoint,
        wall_clock: Callable[[], float],
    ) -> None:
        self._store, self._restored, self._wall_clock = store, restored, wall_clock
        self.is_settled = False
        self.error: Exception | None = None
        self.on_settled: Callable[[], None]

    def on_event(self, event: JobEvent) -> None:
        if not isinstance(event, Committed):
            return
        restored = self._restored
        debts = {n: flat_of(part) for n, part in in_doubt(restored).items()}
        newest = newest_by_label(in_doubt(restored).items())
        properties = {
            **restored.properties,
            DEBTS: {**debts_of(restored), **debts},
            COMMITTED: {**committed_of(restored), **newest},
        }
        now_s = self._wall_clock()
        try:
            number = _next_id(self._store, restored)
            self._store.save(_successor(self._store, restored, number, {}, properties, now_s))
            self.is_settled = True
        except Exception as error:  # noqa: BLE001  # it is raised where the caller waits
            self.error = error
        self.on_settled()


class _NoTasks(Transport):
    """Brings no process up."""

    def open(self, inbox: TaskInbox) -> None:
        """Nothing will be reported."""

    def deploy(self, subtask: int, attempt: int) -> None:
        """No process comes."""

    def send(self, subtask: int, identity: int, message: Message) -> None:
        """There is no process to send to."""

    def flush(self) -> None:
        """Nothing was sent."""

    def end(self, subtask: int, identity: int, reason: str) -> None:
        """There is no process to end."""

    def close(self) -> None:
        """Nothing is open."""


def _restored(store: CheckpointStore) -> CompletedCheckpoint:
    restored = store.latest()
    if restored is None or not in_doubt(restored):
        raise NothingInDoubt(store.path)
    return restored


def _next_id(store: CheckpointStore, restored: CompletedCheckpoint) -> int:
    return max(restored.checkpoint_id, store.last_id or 0) + 1


def _successor(
    store: CheckpointStore,
    restored: CompletedCheckpoint,
    number: int,
    rest: dict[int, Committables],
    properties: dict[str, Any],
    now_s: float,
) -> CompletedCheckpoint:
    return replace(
        restored,
        checkpoint_id=number,
        created_at=now_s,
        committables={},
        uncommitted={number: flat_of(part) for number, part in rest.items()},
        properties=properties,
        epoch=store.epoch,
    )
