"""The production job beside the closed systems of commits: its committer and its work after commits
stand still between their steps, its store answers when the schedule says so, and its drivers die.

Subtasks hand over, beside what the schedule lets them produce, one committable with each
checkpoint, since the shell finds nothing in doubt of a checkpoint without any. That the job ends
once everything is committed is played by `EndingJob`; here it stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

from epochgate.fsm import Timer
from epochgate.fsm.inside import machines_behind
from epochgate.models.closed.commits import CommitJob
from epochgate.runtime import in_doubt
from epochgate.runtime.api.committer import (
    Committables,
)
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.shell.blocking_work import Wait
from epochgate.runtime.shell.commits import Done
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.store import CompletedCheckpoint, InMemoryCheckpointStore
from epochgate.runtime.store.encoding import decode_checkpoint
from epochgate.runtime.testing.fuzzing.record import InvariantViolated
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.playing.gates import Lie, the_truth
from tests.playing.job_commits_users import FAULTS, HeldStore, PlayedCommitter, Target, Writing
from tests.playing.job_lies import lying_handles, tell_lies
from tests.playing.job_paused import ABANDON, PausedWork, inside

NEVER = 10**9
COMMIT, AFTER = "commit", "after-commit"


class CommitsBeside:
    """One production job with the constants of a closed system of commits."""

    def __init__(self, system: CommitJob, lie: Lie = the_truth) -> None:
        self.constants = dict(system.constants)
        self.subtasks, self.items = system.subtasks, system.items
        self.target, self._lie = Target(), lie
        self.failures = self.given_up = 0
        self.is_up, self.is_finished, self.has_earlier = True, False, False
        self.is_waiting = False
        """What the schedule lets happen is not processed yet."""
        self.simulated_starts = 0
        self.opened_with: list[int] = []
        self.programs: dict[int, Writing] = {}
        self.lanes: dict[str, PausedWork] = {}
        self.waits: dict[str, Wait] = {}
        self.saved: tuple[Any, Any, Any] | None = None
        """How a save has ended of which the driver does not know."""
        self.answered: dict[str, tuple[PausedWork, Wait]] = {}
        self.late: PausedWork | None = None
        self.zombie: PausedWork | None = None
        self.giving_up: HeldStore | None = None
        self.doubt = 0
        self.stalls: list[str] = []
        self._violations: list[str] = []
        self.simulated = SimulatedJob(
            self._configuration,
            self._program,
            committer=lambda: PlayedCommitter(self),
            after_commit=lambda: self._work if self.constants["after_commit"] else None,
            prepare=lambda master: tell_lies(machines_behind(master.job), lie),
            retained=NEVER,
        )
        self.settle()

    def _configuration(self, start: int) -> JobConfiguration:
        self.simulated_starts = start + 1
        self.programs.clear()
        return JobConfiguration(
            "played",
            self.subtasks,
            checkpoint_interval_s=None,
            tolerable_checkpoint_failures=NEVER,
            commit_retries_max=self.constants["commit_retries"],
        )

    def _program(self, subtask: int) -> Writing:
        self.programs[subtask] = Writing()
        return self.programs[subtask]

    def _work(self, checkpoint: int, committables: Committables) -> None:
        work = PausedWork.present()
        order = work.next_order()
        if order == "act":
            work.done.append(checkpoint)
            self.note_batch(checkpoint, committables)
            self.target.works[checkpoint] += 1
            order = work.next_order()
        if order == "fail":
            raise ValueError("the work has failed by order of the schedule")

    # what there is

    @property
    def master(self) -> JobMaster:
        """The job master of the present driver."""
        return self.simulated.master

    @property
    def is_failing(self) -> bool:
        """True if the job goes down."""
        return self.master.cause is not None

    @property
    def is_working(self) -> bool:
        """True if a driver runs, and its job does not go down."""
        return self.is_up and not self.is_finished and not self.is_failing

    def stored(self) -> dict[int, CompletedCheckpoint]:
        """The checkpoints on the shelf."""
        store: Any = self.simulated.store
        return {n: _decoded(self.simulated.shelf.checkpoints[n], store) for n in self.ids()}

    def ids(self) -> list[int]:
        """Their ids."""
        return sorted(self.simulated.shelf.checkpoints)

    def latest(self) -> CompletedCheckpoint | None:
        """The newest of them."""
        return next(reversed(self.stored().values()), None)

    def written(self, subtask: int) -> set[int]:
        """The items that the subtask has produced, and the store or the process still has."""
        held = self.programs[subtask].writer.written() if subtask in self.programs else set()
        stored = (whole.committables.get(subtask, ()) for whole in self.stored().values())
        return {*held, *(i for values in stored for i in values if i >= 0)}

    def lane(self, name: str) -> bool:
        """Return whether work of a lane waits, stands still, or is put off."""
        return self.is_up and (
            name in self.lanes or name in self.simulated.blocking.lanes() or bool(self.timers(name))
        )

    def timers(self, lane: str) -> list[Timer]:
        """Those that put off the work of a lane."""
        owner = self.master.commits if lane == COMMIT else self.master.post_commits
        timers = self.master.queue.timers()
        return [t for t in timers if getattr(t.trigger, "__self__", None) is owner]

    def batch(self) -> tuple[int, int, list[int]]:
        """Checkpoint and tries of the commit under way, and what it has not reached."""
        if timers := self.timers(COMMIT):
            checkpoint, tries, batch = timers[0].arguments
            return checkpoint, tries, [number for number, _ in batch]
        work = self.lanes.get(COMMIT)
        attempt = inside(work.work if work else self._waiting(COMMIT)[0])["attempt"]
        reached = len(work.done) if work else 0
        numbers = [number for number, _ in attempt.batch]
        return attempt.checkpoint, attempt.tries, numbers[reached:]

    def rest(self, work: PausedWork) -> list[int]:
        """Return what a commit has not reached."""
        numbers = [number for number, _ in inside(work.work)["attempt"].batch]
        return numbers[len(work.done) :]

    def owed(self) -> tuple[int, int]:
        """Checkpoint and tries of the work after a commit that is under way."""
        if timers := self.timers(AFTER):
            checkpoint, tries = timers[0].arguments
            return checkpoint, tries
        work = self.lanes.get(AFTER)
        checkpoint, tries = inside(work.then if work else self._waiting(AFTER)[1])["of"]
        return checkpoint, tries

    def has_acted(self) -> bool:
        """Return whether the work after a commit that is under way has had its effect."""
        return AFTER in self.lanes and bool(self.lanes[AFTER].done)

    def held(self) -> list[int]:
        """The checkpoints of which the driver keeps the committables."""
        return [*self.master.commits._held]

    def _waiting(self, lane: str) -> tuple[Callable[[], Any], Any]:
        return next((w, t) for name, w, t in self.simulated.blocking.waiting if name == lane)

    def has_save(self) -> bool:
        """Return whether a save waits for its end."""
        return self.is_up and "store" in self.simulated.blocking.lanes()

    def to_be_saved(self) -> CompletedCheckpoint:
        """The checkpoint of that save."""
        whole: CompletedCheckpoint = inside(self._waiting("store")[0])["whole"]
        return whole

    # what happens

    def begun(self, lane: str) -> PausedWork:
        """The work of a lane, which stands still at its first pause if it had not begun."""
        if lane not in self.lanes:
            for timer in self.timers(lane):
                timer.cancel()
                timer.trigger(*timer.arguments)  # it makes work, and is no event of a machine
            waits = [t for t in self.master.queue.timers() if isinstance(t, Wait)]
            self.waits[lane] = [t for t in waits if t.lane == lane][-1]
            waiting = self.simulated.blocking.waiting
            at = next(n for n, (name, *_) in enumerate(waiting) if name == lane)
            _, work, then = waiting[at]
            del waiting[at]
            self.lanes[lane] = PausedWork(work, then)
        return self.lanes[lane]

    def end(self, lane: str, order: str) -> None:
        """Let the work of a lane come to its end, and the driver hear of it."""
        work = self.begun(lane)
        work.tell(order)
        assert work.outcome is not None, f"{lane} does not end by {order}"
        del self.lanes[lane]
        self.answered[lane] = work, self.waits[lane]
        self.master.queue.post(work.then, work.outcome.result, work.outcome.error)

    def hang(self, lane: str) -> PausedWork:
        """Let the work of a lane exceed its limit; it may go on."""
        work = self.begun(lane)
        del self.lanes[lane]
        self.answered[lane] = work, self.waits[lane]
        self.master.queue.post(self.waits[lane].expire)
        return work

    def inherit(self, work: PausedWork | None) -> None:
        """A commit goes on without its driver, if anything is left of it."""
        if work is not None and self.rest(work):
            if self.zombie is not None:
                self.zombie.tell(ABANDON)
            self.zombie = work
        elif work is not None:
            work.tell(ABANDON)

    def answer_late(self) -> None:
        """Work that hung ends after all."""
        work, self.late = self.late, None
        assert work is not None
        for order in ("answer",) if work.done else ("act", "answer"):
            work.tell(order)
        assert work.outcome is not None
        if self.is_up:
            self.master.queue.post(work.then, work.outcome.result, work.outcome.error)

    def repeat(self, lane: str) -> None:
        """Every answer to the work that was answered last comes too late, and its limit."""
        work, wait = self.answered[lane]
        numbers = inside(work.work)["attempt"].numbers if lane == COMMIT else []
        answers = [Done({}, [], {}), Done({}, numbers, {})] if lane == COMMIT else [None]
        for result in answers:
            self.master.queue.post(work.then, result, None)
        for error in FAULTS.values():
            self.master.queue.post(work.then, None, error("too late"))
        self.master.queue.post(wait.expire)

    def save(self) -> None:
        """Let the save end; the driver does not hear of it."""
        waiting = self.simulated.blocking.waiting
        at = next(n for n, (name, *_) in enumerate(waiting) if name == "store")
        _, work, then = waiting[at]
        del waiting[at]
        answer = work()
        self.saved = then, answer, None
        self.has_earlier = self.has_earlier or answer.trigger == "stored"

    def hear(self) -> None:
        """The driver hears how the save has ended."""
        assert self.saved is not None
        then, result, error = self.saved
        self.saved = None
        self.master.queue.post(then, result, error)

    def stop(self) -> None:
        """Nothing of the driver is left but a commit that it is amid."""
        self.note_stalls()
        if COMMIT in self.lanes or (self.is_up and self.lane(COMMIT)):
            self.inherit(self.begun(COMMIT))
        if AFTER in self.lanes:
            self.lanes[AFTER].tell(ABANDON)
        self.lanes.clear()
        self.answered.clear()
        self.saved = None
        if self.late is not None:
            self.late.tell(ABANDON)
            self.late = None
        self.is_up = False
        self.simulated.faults.close()
        self.simulated.blocking.close()
        self.simulated.shelf.end_driver()

    def begin_driver(self) -> None:
        """The next driver starts from what is stored."""
        self.is_up = True
        self.stalls.clear()
        self.simulated.crash_driver()

    def lose_newest(self) -> None:
        """The newest checkpoint cannot be read any more."""
        shelf, newest = self.simulated.shelf, self.ids()[-1]
        shelf.damaged[newest] = shelf.checkpoints.pop(newest)
        self.has_earlier = False

    def forgo(self, doubt: int) -> None:
        """A person gives the commit of a checkpoint up; the command has not saved yet."""
        self.given_up += 1
        self.doubt = doubt
        store = InMemoryCheckpointStore(self.simulated.shelf, job_id="played", retained=NEVER)
        self.giving_up = HeldStore(store)
        with mock.patch.object(in_doubt, "Handles", lying_handles(self._lie)):
            given = in_doubt.give_up(self.giving_up, [doubt + 1], 0.0)  # type: ignore[arg-type]
        if [*given] != [doubt + 1]:
            self._violations.append(f"{[*given]} is given up, and {doubt + 1} was to be")

    def end_giving_up(self, is_saved: bool) -> None:
        """The command has saved, or dies before it does."""
        assert self.giving_up is not None
        self.giving_up.finish(is_saved)
        self.giving_up = None
        self.has_earlier = self.has_earlier or is_saved

    # what it comes to

    def settle(self) -> None:
        """Let messages and events move; the way down of a job waits for its processes."""
        if self.is_up and not self.is_waiting:
            if self.is_failing:
                self.master.queue.drain()
            else:
                self.simulated.flow(held=("blocking",))
            self.note_stalls()
        if self._violations:
            raise InvariantViolated("I9", "; ".join(self._violations))

    def note_stalls(self) -> None:
        """Note what people were told of work that is tried no more."""
        told = self.master.report.warnings
        self.stalls = [text for text in told if "is tried no more" in text]

    def note_batch(self, checkpoint: int, committables: Committables) -> None:
        """User code is handed a checkpoint, which has to be stored and to have these."""
        stored = self.stored().get(checkpoint)
        if stored is None and checkpoint not in self.simulated.shelf.damaged:
            self._violations.append(f"checkpoint {checkpoint} is committed, and is not stored")
        elif stored is not None and stored.committables != committables:
            self._violations.append(
                f"of checkpoint {checkpoint} {committables} is handed over, and "
                f"{stored.committables} is stored"
            )

    def close(self) -> None:
        """Let no thread stand still for ever."""
        for work in (*self.lanes.values(), self.late, self.zombie):
            if work is not None:
                work.tell(ABANDON)


def _decoded(data: bytes, store: InMemoryCheckpointStore) -> CompletedCheckpoint:
    return decode_checkpoint(data, source="shelf", job_id="played", read_part=store.read_file)
