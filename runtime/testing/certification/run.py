"""One schedule, played on the real runtime: a job of two subtasks, its failures, and what readers
see meanwhile.

Decides what follows from a fault: another attempt, another driver, a zombie that goes on later. Who
judges what is seen is the `Judge`. Runs on the thread of the caller.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epochgate.runtime.api.raised import RaisedByTest
from epochgate.runtime.api.sink import AheadOfCheckpoint
from epochgate.runtime.store import decode_checkpoint
from epochgate.runtime.testing.certification.case import CaseMisused, SinkCase, rows_read
from epochgate.runtime.testing.certification.claims import (
    ROWS_OF_LANE,
    SOURCE,
    Broken,
    Guarantee,
    Judge,
)
from epochgate.runtime.testing.certification.clients import watched_clients
from epochgate.runtime.testing.certification.files import watched_files
from epochgate.runtime.testing.certification.job import JOB_ID, REFUSALS_MAX, CertifiedJob
from epochgate.runtime.testing.certification.points import (
    Actor,
    CallHangs,
    Fault,
    Paused,
    Point,
    SimulatedDeath,
    Stage,
    Wake,
)
from epochgate.runtime.testing.certification.program import LANES
from epochgate.runtime.testing.certification.watched import WatchedSink
from epochgate.runtime.testing.simulation import Stuck

STARTS_MAX = 8
ROUNDS_MAX = 200
CHECKPOINTS = ((2, 2), (1, 0), (0, 0), (2, 2))
"""How many rows each lane has for each checkpoint: one is a subtask's alone, one has none."""


@dataclass(frozen=True)
class Plan:
    """The plan of a job. guarantee: what is broken when rows are doubled or lost. is_lagging: no
    commit happens before all checkpoints but the last are stored. back_to: after all checkpoints
    but the last, the driver dies, and the next start is from this one; `loses_newest`: or instead
    where the driver stops for a while, and the checkpoint that it commits is lost. parallelism: of
    the second start and those after it. unsaved: the checkpoint that the store fails to save.
    """

    guarantee: Guarantee
    checkpoints: Sequence[tuple[int, int]] = CHECKPOINTS
    is_lagging: bool = False
    back_to: int | None = None
    may_withdraw: bool = False
    loses_newest: bool = False
    parallelism: int = 2
    unsaved: int | None = None
    is_stored: bool = False


class GuaranteeBroken(RaisedByTest):
    """The schedule ends here; `broken`: why."""

    def __init__(self, broken: Broken) -> None:
        super().__init__(broken.finding)
        self.broken = broken


@dataclass
class Played:
    """The outcome of a schedule; `was_refused`: the start from an older checkpoint."""

    broken: Broken | None
    points: list[Point]
    struck: bool
    story: list[str]
    left: list[str] = field(default_factory=list)
    kept: int | None = None
    was_refused: bool = False


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """Log nothing: of a thousand failures that are meant, none is news."""
    logger = logging.getLogger("epochgate")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


class Run:
    """One schedule; `peeks`: readers look before each call and write, too."""

    def __init__(
        self,
        case: SinkCase,
        place: Path,
        plan: Plan,
        fault: Fault | None = None,
        *,
        peeks: bool = False,
    ) -> None:
        self.case, self.place, self.plan = case, place, plan
        self.stage = Stage(fault, error=case.error, look=self._peek, looks_always=peeks)
        self.stage.wake = self._wake
        self.judge = Judge(plan.guarantee)
        self.allowed = [0] * LANES
        self.has_ended = False
        self.job: CertifiedJob
        self._noted = 0
        self._found: Broken | None = None
        self._misused: CaseMisused | None = None
        self._steps_until_found: int | None = None
        self._is_going_back = self._has_failed_to_save = self._was_refused = False

    def play(self) -> Played:
        """Play it to its end, or to the first guarantee that does not hold."""
        played = Played(None, self.stage.points, False, self.stage.story)
        with (
            _unlogged(),
            watched_files(self.stage, self.place),
            watched_clients(self.stage, self.case.clients, self.case.calls),
        ):
            try:
                self._play()
                played.left = sorted(self.case.staged(self.place) or ())
                played.kept = self.case.kept(self.place)
                played.was_refused = self._was_refused
            except GuaranteeBroken as found:
                if self._misused is not None:
                    raise self._misused from None
                played.broken = found.broken
                if self._steps_until_found is not None:
                    del self.stage.story[self._steps_until_found :]
            except CallHangs as hangs:
                played.broken = self._stuck(str(hangs))
            finally:
                self._clear()
        played.struck = self.stage.struck
        return played

    def _play(self) -> None:
        CertifiedJob(self)
        *early, last = self.plan.checkpoints
        for rows in early:
            self._allow(rows)
            self._take_checkpoint()
        if self.plan.back_to is not None and not self.plan.loses_newest:
            self._go_back(self.plan.back_to)
        self._allow(last)
        self.has_ended = True
        self._settle(to_the_end=True)
        self._wake_all()
        self._expect_all("when the job has ended")
        self.stage.tell("the job has ended; it is started again from its last checkpoint")
        if self.judge.on_loss is Guarantee.COMPLETE:
            self.judge.on_loss = Guarantee.REPLAY
        self._release()
        self._guarded(self.job.crash_driver)
        self._settle(to_the_end=True)
        self._expect_all("after the second start")
        self._release()
        self._wake_all()
        self.look("after the committer was closed")
        self._raise_found()

    def _allow(self, rows: tuple[int, int]) -> None:
        self.allowed = [before + more for before, more in zip(self.allowed, rows, strict=True)]

    def _take_checkpoint(self) -> None:
        """Take a checkpoint that holds all rows so far."""
        wanted = {
            lane * ROWS_OF_LANE + number
            for lane in range(LANES)
            for number in range(self.allowed[lane])
        }
        before = self._noted
        for _ in range(STARTS_MAX):
            self._settle()
            if self.plan.unsaved == before + 1 and not self._has_failed_to_save:
                self._fail_to_save(before + 1)
            self.job.master.request_checkpoint()
            self._settle()
            self.note()
            if self.judge.lineage[-1][1] == wanted and self._noted > before:
                return
        raise GuaranteeBroken(self._stuck("no checkpoint can be completed"))

    def _fail_to_save(self, checkpoint: int) -> None:
        self._has_failed_to_save = True
        so_far = ", and has saved it" if self.plan.is_stored else ""
        self.stage.tell(f"* the store of checkpoints fails to save checkpoint {checkpoint}{so_far}")
        self.job.store.fail_next_save(is_stored=self.plan.is_stored)

    def _settle(self, *, to_the_end: bool = False) -> None:
        """Let everything happen that can, over failures and further starts."""
        for _ in range(STARTS_MAX):
            try:
                if self.plan.is_lagging and not (to_the_end or self.stage.struck):
                    self._settle_without_commits()
                elif to_the_end:
                    self.job.rest(until=lambda: self.job.is_over)
                else:
                    self.job.rest()
            except Stuck as stuck:
                self._raise_found()
                raise GuaranteeBroken(self._stuck(str(stuck))) from None
            except (SimulatedDeath, Paused) as stop:
                self._stopped(stop)
                continue
            self.note()
            self._raise_found()
            if not self.job.is_over or self.job.result.state == "finished":
                return
            self.stage.tell(f"the job has failed: {self.job.result.reason}")
            self.stage.tell("it is started again")
            self._release()
            self._guarded(self.job.crash_driver)
        raise GuaranteeBroken(self._stuck("the job fails at every start"))

    def _settle_without_commits(self) -> None:
        for _ in range(ROUNDS_MAX):
            self.job.flow(held=("blocking",))
            if not self.job.run_blocking("store"):
                return

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (SimulatedDeath, Paused) as stop:
            self._stopped(stop)

    def _stopped(self, stop: SimulatedDeath | Paused) -> None:
        """A process has died, or stops for a while; go on without it."""
        actor = stop.actor
        if isinstance(stop, Paused):
            self.stage.zombies.append(actor)
        fault = self.stage.fault
        if actor.is_driver or (fault is not None and fault.takes_driver):
            self.job.kill_others()
            if self.plan.loses_newest and self.plan.back_to is not None:
                self._lose_newer_than(self.plan.back_to)
            else:
                self.stage.tell("another driver starts")
            self._guarded(self.job.crash_driver)
        else:
            self.job.kill_process_of(actor)
        self.look("after that")

    # what the sink and the job report

    def sink(self) -> WatchedSink:
        return WatchedSink(self, self.case.sink(self.place))

    def parallelism(self, start: int) -> int:
        return LANES if start == 0 else self.plan.parallelism

    def begun(self, actor: Actor) -> None:
        self._wake_after(actor, Wake.BEGUN)

    def moved(self, actor: Actor) -> None:
        self._wake_after(actor, Wake.MOVED)

    def committed(self, checkpoint: int) -> None:
        self._find(self.judge.require(checkpoint, "afterwards"))

    def started(self) -> None:
        if self._is_going_back and self.plan.back_to is not None:
            self._is_going_back = self.job.may_withdraw = False
            self.judge.has_gone_back(self.plan.back_to)
        self.look("after the start")

    def refused(self, error: Exception, refusals: int) -> None:
        self._raise_found()
        drivers = [zombie for zombie in self.stage.zombies if zombie.is_driver]
        if drivers:
            self._wake(drivers[0])
        elif self._is_going_back and isinstance(error, AheadOfCheckpoint):
            self._put_back(self.plan.back_to or 0)
        elif refusals > REFUSALS_MAX:
            finding = f"no driver can start: {type(error).__name__}: {error}"
            raise GuaranteeBroken(self._stuck(finding))

    def failed_to_close(self, error: Exception) -> None:
        self._raise_found()
        finding = f"close raises {type(error).__name__}: {error}, after open has failed"
        raise GuaranteeBroken(self._stuck(finding))

    def look(self, moment: str) -> None:
        """Let a reader look, and remember what is broken."""
        if self._found is not None:
            return
        self.note()
        try:
            rows = rows_read(self.case, self.place)
        except CaseMisused as error:
            self._misused = error
            self._find(Broken(Guarantee.ATOMIC, str(error), "", ""))
        except Exception as error:  # noqa: BLE001  # of a reader, which may raise anything
            seen, finding, expected = (
                f"{type(error).__name__}: {error}",
                f"a reader fails {moment}",
                "rows",
            )
            if len(self.stage.points) <= 1:  # nothing has been called yet
                finding = "the case's `rows` raised on an empty place; it has to return none"
                expected = "no rows"
            self._find(Broken(Guarantee.ATOMIC, finding, seen, expected))
        else:
            self._find(self.judge.judge(rows, moment))

    def _find(self, broken: Broken | None) -> None:
        """Remember the first guarantee that is broken, for the schedule to end at the next step."""
        if self._found is None and broken is not None:
            self._found, self._steps_until_found = broken, len(self.stage.story)

    def _peek(self, point: Point) -> None:
        self.look(f"before {point}")

    def _raise_found(self) -> None:
        if self._found is not None:
            raise GuaranteeBroken(self._found)

    def _expect_all(self, moment: str) -> None:
        self.look(moment)
        self._find(self.judge.require(self.judge.lineage[-1][0], moment))
        self._raise_found()
        if len(self.judge.lineage[-1][1]) != sum(self.allowed):
            raise GuaranteeBroken(self._stuck("not every row is in a checkpoint"))

    def note(self) -> None:
        shelf = self.job.shelf.checkpoints
        for number in sorted(shelf):
            if number > self._noted:
                self._noted = number
                stored = decode_checkpoint(shelf[number], source="shelf", job_id=JOB_ID)
                self.judge.note(number, [by[SOURCE] for by in stored.subtasks.values()])
                self.stage.tell(f"checkpoint {number} is complete")

    # zombies, older checkpoints, and the end

    def _wake_after(self, actor: Actor, wake: Wake) -> None:
        fault = self.stage.fault
        if fault is not None and fault.wake is wake:
            for zombie in [z for z in self.stage.zombies if z.subtask == actor.subtask]:
                self._wake(zombie)

    def _wake_all(self) -> None:
        for zombie in list(self.stage.zombies):
            self._wake(zombie)

    def _wake(self, zombie: Actor) -> None:
        self.stage.zombies.remove(zombie)
        self.stage.tell(f"* {zombie.name} continues with {zombie.call_name}")
        outcome = zombie.resume()
        self.stage.tell(f"{zombie.name}: {zombie.call_name} {outcome}")
        with contextlib.suppress(Exception):  # it is told; the zombie is over
            zombie.close()
        self.look(f"after {zombie.name} continued")

    def _go_back(self, checkpoint: int) -> None:
        self.look("before the start from an older checkpoint")
        self._raise_found()
        self.stage.tell("* the driver dies")
        self.job.kill_others()
        self._lose_newer_than(checkpoint)
        self.job.crash_driver()

    def _lose_newer_than(self, checkpoint: int) -> None:
        self.stage.tell(
            f"* newer checkpoints are lost, and the job starts from checkpoint {checkpoint}"
        )
        shelf = self.job.shelf
        for number in [number for number in shelf.checkpoints if number > checkpoint]:
            shelf.damaged[number] = shelf.checkpoints.pop(number)
        self._is_going_back = True
        self.judge.goes_back(checkpoint, may_withdraw=self.plan.may_withdraw)
        self.job.may_withdraw = self.plan.may_withdraw

    def _put_back(self, checkpoint: int) -> None:
        """The start was refused: nothing may have changed, and from the newest it must begin."""
        self._is_going_back = self.job.may_withdraw = False
        self._was_refused = True
        self.judge.has_stayed()
        self.look("after the refusal")
        self._raise_found()
        if not self.judge.is_ahead_of(checkpoint):
            raise GuaranteeBroken(self._stuck("the start is refused, and nothing newer is visible"))
        self.stage.tell("the start is refused; the newer checkpoints are put back")
        shelf = self.job.shelf
        shelf.checkpoints |= shelf.damaged
        shelf.damaged.clear()

    def _stuck(self, finding: str) -> Broken:
        raised = [line for line in self.stage.story if " raises " in line]
        if any(re.search(r"\bthread\b", line) for line in [finding, *raised]):
            finding += "; make connections in `open`, which runs on the thread of commit"
        return Broken(Guarantee.RECOVERY, finding, "a job that does not go on", "a job that ends")

    def _release(self) -> None:
        self._guarded(self.job.master.close)

    def _clear(self) -> None:
        for zombie in self.stage.zombies:
            with contextlib.suppress(CallHangs):
                zombie.resume()
        for actor in self.stage.actors:
            actor.leave()
