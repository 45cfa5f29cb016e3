"""The tests that look for the bugs: those of users, who know nothing of them. Each is a job of a
usual kind with all that its kind may rely on.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from epochgate.runtime import (
    Committables,
    Committer,
    CoordinatorContext,
    CoordinatorProvider,
    OperatorContext,
    RetryLater,
    SubtaskGateway,
)
from epochgate.testing import World, WorldJob
from tests.worlds.counting import Counting, Listing

LOCAL = {"die", "lose-connection", "usurp", "hear-again"}
"""Faults that concern one subtask."""


class Notes:
    """The notes of user code, over all drivers and processes of a run."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.table: list[tuple[int, Committables]] = []
        """What was committed, under the id that it had."""
        self.aborted: set[int] = set()
        self.completed: list[int] = [0]
        self.resets = 0
        self.begins = 0
        self.is_away: Callable[[], bool] = lambda: False
        """Whether the place that commits go to is away."""
        self.readies = 0
        self.restores = 0
        """How often everything went back in one start of the driver."""


class Strict(Counting):
    """Counts, sends once more as soon as a snapshot is taken, and notes each call that breaks the
    contract of coordinators.
    """

    def __init__(self, context: CoordinatorContext, notes: Notes) -> None:
        super().__init__(context)
        self.notes = notes
        self.attempts: dict[int, int] = {}
        self.last = [-1] * context.parallelism
        self.owed: set[int] = set()

    def note(self, text: str) -> None:
        self.notes.wrong.append(text)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        if subtask in self.attempts:
            self.note(f"attempt {attempt} of {subtask} before {self.attempts[subtask]} has failed")
        if attempt <= self.last[subtask]:
            self.note(f"attempt {attempt} of {subtask} after {self.last[subtask]}")
        self.attempts[subtask] = self.last[subtask] = attempt
        self.notes.readies += 1
        super().execution_attempt_ready(subtask, attempt, gateway)

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        if self.attempts.get(subtask, attempt) != attempt:
            self.note(
                f"attempt {attempt} of {subtask} failed, and {self.attempts[subtask]} is there"
            )
        self.attempts.pop(subtask, None)
        super().execution_attempt_failed(subtask, attempt, reason)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        if self.attempts.get(subtask) != attempt:
            self.note(f"an event of attempt {attempt} of {subtask}, which is not there")
        if event > self.sent[subtask]:
            self.note(f"subtask {subtask} has {event}, of {self.sent[subtask]} that were sent")

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        if subtask in self.attempts:
            self.note(f"{subtask} goes back while attempt {self.attempts[subtask]} is there")
        self._judge_restore(checkpoint_id)
        super().subtask_reset(subtask, checkpoint_id)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        if self.owed:
            self.note(f"checkpoint {checkpoint_id} while {self.owed} is under way")
        self.owed.add(checkpoint_id)
        super().checkpoint(checkpoint_id, result)
        self.send()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.owed.discard(checkpoint_id)
        self.notes.completed.append(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.owed.discard(checkpoint_id)
        self.notes.aborted.add(checkpoint_id)

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        if self.attempts:
            self.note(f"everything goes back while attempts {self.attempts} are there")
        self.notes.restores += max(self.last) >= 0
        self.owed.clear()
        self._judge_restore(max(checkpoint_id, 0))
        self.notes.completed.append(max(checkpoint_id, 0))
        super().reset_to_checkpoint(checkpoint_id, state)

    def _judge_restore(self, checkpoint_id: int) -> None:
        if checkpoint_id in self.notes.aborted:
            self.note(f"checkpoint {checkpoint_id} is restored, which was aborted")
        if checkpoint_id < self.notes.completed[-1]:
            self.note(f"{checkpoint_id} is restored, and {self.notes.completed[-1]} was completed")


class Talking(Listing):
    """Says what it has heard, and hands it over to be committed."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.context = context
        self.committed = len(self.heard)
        self.handed_over: dict[int, int] = {}

    def handle_event(self, event: Any) -> None:
        super().handle_event(event)
        self.context.send_to_coordinator(event)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self.handed_over[checkpoint_id] = len(self.heard)
        return self.heard[self.committed :]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.committed = self.handed_over.get(checkpoint_id, self.committed)


class StrictProvider(CoordinatorProvider):
    operator_id = "count"

    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def create(self, context: CoordinatorContext) -> Strict:
        return Strict(context, self.notes)


class Pages(Committer):
    """Adds a page to the table for each checkpoint, once, whichever driver it is."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        if self.notes.is_away():
            raise RetryLater("the place is away: a fault of the simulation")
        known = dict(self.notes.table)
        if checkpoint_id not in known:
            self.notes.table.append((checkpoint_id, committables))
        elif known[checkpoint_id] != committables:
            self.notes.wrong.append(f"{checkpoint_id} is committed again, with other rows")


def counting(
    world: World,
    notes: Notes,
    *,
    provider: CoordinatorProvider | None = None,
    checkpoint_every_s: float | None = None,
    **settings: Any,
) -> WorldJob:
    """A job of two tasks with all that it may rely on."""
    job = world.job(
        provider or StrictProvider(notes),
        operators=Talking,
        subtasks=2,
        committer=lambda: Pages(notes),
        checkpoint_every_s=checkpoint_every_s,
        **{"tolerable_checkpoint_failures": 0, **settings},
    )
    world.always(
        "what is promised to a coordinator and a committer holds",
        lambda: not notes.wrong,
        shows=lambda: "\n".join(notes.wrong),
    )
    world.always(
        "each task hears 1, 2, 3 and so on",
        lambda: all(each.heard == [*range(1, len(each.heard) + 1)] for each in job.operators),
    )
    world.always(
        "what is committed belongs to a checkpoint that is stored",
        lambda: max(dict(notes.table), default=0) <= max(job.checkpoints, default=0),
    )
    world.eventually(
        "each task has heard what was sent to it",
        lambda: [len(each.heard) for each in job.operators] == job.coordinator.sent,
    )
    return job


def finished(world: World, job: WorldJob, notes: Notes) -> None:
    """The job comes to its end, with everything committed once."""
    world.calm()
    assert job.checkpoint().done(), "a checkpoint is not answered"
    heard = [list(each.heard) for each in job.operators]
    job.stop()
    assert job.is_over, "the job does not end"
    assert job.simulated.result.state == "finished"
    for subtask in (0, 1):
        rows = [row for _, page in notes.table for row in page.get(subtask, [])]
        assert rows == heard[subtask], f"subtask {subtask} has committed {rows}"


def local(world: World, job: WorldJob, notes: Notes) -> None:
    """A process that dies takes no other with it, and is replaced once."""
    world.always(
        "a process that dies takes no other with it",
        lambda: notes.restores == 0 or not {fault for fault, _ in world.struck} <= LOCAL,
    )
    world.always(
        "one failure costs one restart",
        lambda: (
            notes.readies - 2 <= sum(one.is_fault for one in world.deviations)
            or not {fault for fault, _ in world.struck} <= LOCAL
        ),
    )


def numbers(world: World, **settings: Any) -> None:
    """A coordinator numbers what it sends; tasks answer, and commit what they hear."""
    notes = Notes()
    job = counting(world, notes, **settings)
    local(world, job, notes)
    for _ in range(2):
        job.coordinator.send()
        world.move()
        job.checkpoint()
    job.coordinator.send()
    world.move()
    finished(world, job, notes)


def once(world: World, **settings: Any) -> None:
    """The same with one checkpoint, for the systematic mode."""
    notes = Notes()
    job = counting(world, notes, **settings)
    local(world, job, notes)
    job.coordinator.send()
    world.move()
    job.checkpoint()
    job.coordinator.send()
    world.move()
    finished(world, job, notes)
