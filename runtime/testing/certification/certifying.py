"""The schedules that a sink is certified by, the shortest first, and what they came to.

A run without a fault finds the points, then each of them is struck by each kind of fault, in the
order in which they were reached; so the first schedule that breaks a guarantee is a shortest one.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from epochgate.errors import UsageError
from epochgate.runtime.testing.certification.case import SinkCase, batch_tried
from epochgate.runtime.testing.certification.claims import Broken, Guarantee
from epochgate.runtime.testing.certification.points import Fault, Kind, Point, Wake
from epochgate.runtime.testing.certification.run import CHECKPOINTS, Plan, Played, Run

MANY, FEW, VERY_MANY = 40, 20, 200
LONG = (*CHECKPOINTS[:2], *(((1, 1),) * MANY), CHECKPOINTS[-1])
NOTHING_SEEN_IN_COMMIT = (
    "no write to a store was seen inside commit, so no failure struck there; name `clients` or "
    "`calls` in the case"
)
NEEDS_A_COMMIT_SEEN = (Guarantee.REPLAY, Guarantee.FENCING)
"""What failures between two calls of the sink show too little of."""
Progress = Callable[[int, int], None]
"""Is told how many schedules have been played, and how many there are."""


class NoSuchSchedule(UsageError):
    """A token that no schedule of a case has."""


@dataclass(frozen=True)
class Schedule:
    """One plan with at most one fault."""

    plan: Plan
    fault: Fault | None = None
    peeks: bool = False


@dataclass(frozen=True)
class Failure:
    """The shortest schedule that breaks a guarantee, and how many do; `token` plays it again."""

    broken: Broken
    story: tuple[str, ...]
    schedules: int = 1
    token: str = ""


@dataclass
class Group:
    """The schedules that were played for one guarantee at one fault point, or without one."""

    guarantee: Guarantee
    name: str
    schedules: int = 0
    seconds: float = 0.0
    failure: Failure | None = None
    warning: Failure | None = None


@dataclass
class Certificate:
    """The certificate of a sink: `failures` by guarantee, the first found of each.

    groups: every fault point and group of schedules, in the order in which they were played.
    answers_to_going_back: "refuses" or "withdraws", of starts that might withdraw. not_tried: why a
    guarantee, or a part of it, was not tried. unseen: why no failure struck inside `commit`, so
    that nothing is certified; empty if one did.
    """

    name: str
    module: str = ""
    points: int = 0
    calls: int = 0
    schedules: int = 0
    seconds: float = 0.0
    tried: dict[Guarantee, int] = field(default_factory=dict)
    failures: dict[Guarantee, Failure] = field(default_factory=dict)
    warnings: dict[Guarantee, Failure] = field(default_factory=dict)
    answers_to_going_back: set[str] = field(default_factory=set)
    groups: dict[tuple[Guarantee, str], Group] = field(default_factory=dict)
    not_tried: dict[Guarantee, str] = field(default_factory=dict)
    unseen: str = ""
    only: str = ""
    """The token of the schedule that was played alone."""

    @property
    def has_passed(self) -> bool:
        """True if every guarantee held in every schedule, and failures struck inside `commit`."""
        return not self.failures and not self.unseen

    @property
    def untried(self) -> dict[Guarantee, str]:
        """The reasons why guarantees that no schedule has broken are not tried, although schedules
        were played for them.
        """
        reason = {} if not self.unseen else dict.fromkeys(NEEDS_A_COMMIT_SEEN, self.unseen)
        return {g: why for g, why in reason.items() if g not in self.failures}


def certify(
    case: SinkCase,
    *,
    allows_leftovers: bool = False,
    first_only: bool = False,
    about: Collection[Guarantee] = tuple(Guarantee),
    stride: int = 1,
    only: str = "",
    progress: Progress = lambda done, total: None,
) -> Certificate:
    """Play every schedule and return what was found.

    allows_leftovers: staged remains are a warning. first_only: stop at the first failure. about:
    play the schedules of these guarantees alone. stride: play every stride-th schedule. only: the
    token of the one schedule to play, after the runs without a failure. Raises NoSuchSchedule,
    CaseMisused, UnknownClient, and whatever the case's own `batch`, `staged` and `kept` raise.
    """
    batch_tried(case)
    began_s = time.monotonic()
    session = _Session(case, allows_leftovers, first_only)
    session.certificate.only = only
    session.play_all(about, stride, progress)
    session.certificate.seconds = time.monotonic() - began_s
    return session.certificate


class _Session:
    def __init__(self, case: SinkCase, allows_leftovers: bool, first_only: bool) -> None:
        self._case, self._allows_leftovers, self._first_only = case, allows_leftovers, first_only
        self.certificate = Certificate(type(case).__name__, type(case).__module__)
        self._points: dict[bool, list[Point]] = {}
        """What the run without a fault has reached, and the lagging one."""

    def play_all(self, about: Collection[Guarantee], stride: int, progress: Progress) -> None:
        """Play the runs without a fault, then the schedules that strike what these have reached."""
        found = self.certificate
        plain, lagging = Plan(Guarantee.COMPLETE), Plan(Guarantee.REPLAY, is_lagging=True)
        played = self._play(Schedule(plain, peeks=True))
        points = self._points[False] = played.points
        found.points, found.calls = len(points), sum(point.is_call for point in points)
        self._remark(played)
        if self._is_done() or Guarantee.RECOVERY in found.failures:
            return  # nothing else is worth telling of a sink that does not work without failures
        of_lagging = self._points[True] = self._play(Schedule(lagging, peeks=True)).points
        schedules = [s for s in schedules_for(points, of_lagging) if s.plan.guarantee in about]
        if found.only:
            schedules = self._named(schedules, found.only)
        for number, schedule in enumerate(schedules[::stride], 1):
            if self._is_done():
                return
            self._play(schedule)
            progress(number, len(schedules[::stride]))
        if Guarantee.HISTORY in about and not found.only:
            self._compare_histories()

    def _named(self, schedules: list[Schedule], token: str) -> list[Schedule]:
        """The schedule with this token. Raises NoSuchSchedule."""
        chosen = [each for each in schedules if self._token(each) == token]
        if not chosen:
            raise NoSuchSchedule(
                f"{self.certificate.name} has no schedule {token!r}: its calls up to the fault "
                "have changed since the report, or the token is of another case; play all schedules"
            )
        return chosen

    def _token(self, schedule: Schedule) -> str:
        """Return a text for what is done and what is struck, by its name and not by its number, so
        that the token holds while the calls up to there stay the same.
        """
        struck = ""
        if (fault := schedule.fault) is not None:
            points = self._points[schedule.plan.is_lagging]
            names = [f"{point.actor}: {point}" for point in points[: fault.at + 1]]
            struck = f"{fault.kind} {fault.wake} {fault.takes_driver} {names.count(names[-1])} "
            struck += names[-1]
        return hashlib.blake2b(f"{schedule.plan} {struck}".encode(), digest_size=4).hexdigest()

    def _remark(self, played: Played) -> None:
        """Note what cannot be tried of this case, given the run without a fault."""
        if self._case.staged(Path()) is None:
            self.certificate.not_tried[Guarantee.TIDY] = "the case has no `staged`"
        if played.broken is not None:
            return
        if played.kept is None:
            self.certificate.not_tried[Guarantee.HISTORY] = "the case has no `kept`"
        in_tasks = any(
            point.is_of_step and point.call.startswith("commit(") for point in played.points
        )
        if not any(
            point.is_driver != in_tasks and not point.is_call and point.call.startswith("commit(")
            for point in played.points
        ):
            self.certificate.unseen = NOTHING_SEEN_IN_COMMIT

    def _is_done(self) -> bool:
        return self._first_only and bool(self.certificate.failures)

    def _play(self, schedule: Schedule) -> Played:
        place = Path(tempfile.mkdtemp(prefix="certify-sink-"))
        group, began_s = self._group(schedule), time.monotonic()
        try:
            played = Run(
                self._case, place, schedule.plan, schedule.fault, peeks=schedule.peeks
            ).play()
        finally:
            self._case.remove(place)
        found = self.certificate
        found.schedules += 1
        group.schedules += 1
        group.seconds += time.monotonic() - began_s
        self._count(schedule, played)
        if played.broken is not None:
            self._fail(group, played.broken, played.story, schedule)
        elif played.left:
            staged = ", ".join(played.left[:5])
            left = Broken(Guarantee.TIDY, "something staged is left", staged, "nothing staged")
            self._fail(group, left, played.story, schedule, is_warning=self._allows_leftovers)
        return played

    def _group(self, schedule: Schedule) -> Group:
        """Return the group in which the schedule counts: at its fault point, or by what its plan
        does.
        """
        plan, fault = schedule.plan, schedule.fault
        name = described(plan)
        if fault is not None:
            point = self._points[plan.is_lagging][fault.at]
            lags = ", while commits lag behind" if plan.is_lagging else ""
            name = f"point {fault.at + 1}, {point.actor}: {point}{lags}"
        key = (plan.guarantee, name)
        return self.certificate.groups.setdefault(key, Group(*key))

    def _count(self, schedule: Schedule, played: Played) -> None:
        tried = self.certificate.tried
        everywhere = {Guarantee.COMPLETE, Guarantee.ATOMIC, Guarantee.EARLY, Guarantee.ORDER}
        if schedule.fault is not None:
            everywhere.add(Guarantee.RECOVERY)
        if self._case.staged(Path()) is not None:
            everywhere.add(Guarantee.TIDY)
        for guarantee in {schedule.plan.guarantee, *everywhere}:
            tried[guarantee] = tried.get(guarantee, 0) + 1
        plan = schedule.plan
        if plan.guarantee is Guarantee.BACK and plan.may_withdraw and not plan.is_lagging:
            answer = "refuses" if played.was_refused else "withdraws"
            self.certificate.answers_to_going_back.add(answer)

    def _fail(
        self,
        group: Group,
        broken: Broken,
        story: list[str],
        schedule: Schedule | None = None,
        *,
        is_warning: bool = False,
    ) -> None:
        kept = self.certificate.warnings if is_warning else self.certificate.failures
        token = "" if schedule is None or schedule.peeks else self._token(schedule)
        new = Failure(broken, tuple(story), token=token)
        kept[broken.guarantee] = shorter(kept.get(broken.guarantee), new)
        if is_warning:
            group.warning = shorter(group.warning, new)
        else:
            group.failure = shorter(group.failure, new)

    def _compare_histories(self) -> None:
        """Fail a sink that keeps more and more, where the case counts what it keeps."""
        kept: dict[int, int] = {}
        for count in (FEW, VERY_MANY):
            plan = Plan(Guarantee.HISTORY, checkpoints=((1, 1),) * count)
            played = self._play(Schedule(plan))
            if played.kept is None:
                return
            kept[count] = played.kept
        if kept[VERY_MANY] - kept[FEW] > FEW:
            seen = f"{kept[FEW]} after {FEW} checkpoints, {kept[VERY_MANY]} after {VERY_MANY}"
            broken = Broken(
                Guarantee.HISTORY, "what is kept grows with every checkpoint", seen, "a bound"
            )
            group = self._group(Schedule(plan))
            self._fail(group, broken, [f"the job takes {VERY_MANY} checkpoints"])


def shorter(before: Failure | None, new: Failure) -> Failure:
    """The one with the shorter schedule, for all schedules so far."""
    if before is None:
        return new
    least = min(before, new, key=lambda failure: len(failure.story))
    return replace(least, schedules=before.schedules + 1)


def described(plan: Plan) -> str:
    """Play a plan where nothing strikes, and describe it."""
    told = ["commits lag behind"] if plan.is_lagging else []
    if plan.unsaved is not None:
        outcome = "stored without an answer" if plan.is_stored else "not stored"
        told.append(f"checkpoint {plan.unsaved} is {outcome}")
    if plan.back_to is not None:
        may = "may" if plan.may_withdraw else "may not"
        told.append(f"a start from checkpoint {plan.back_to}, which {may} withdraw")
    if len(plan.checkpoints) > len(CHECKPOINTS):
        told.append(f"{len(plan.checkpoints)} checkpoints")
    return ", ".join(told) or "no failure"


def schedules_for(points: list[Point], of_lagging: list[Point]) -> Iterator[Schedule]:
    """Every schedule, given the points of the run without a fault, and of the lagging one."""
    yield from _of_lagging(of_lagging)
    yield from _of_failures(points)
    yield from _of_pauses(points)
    yield from _of_older_checkpoints()
    yield from _of_second_commit(points)


def _of_failures(points: list[Point]) -> Iterator[Schedule]:
    for at, point in enumerate(points):
        kinds = [Kind.DIE, Kind.FAIL]  # a call has no answer of its own to be lost
        if not point.is_call:
            kinds.append(Kind.LOSE)
        if point.can_tear:
            kinds.append(Kind.TEAR)
        for kind in kinds:
            yield Schedule(Plan(Guarantee.REPLAY), Fault(at, kind))
        if point.is_of_step:
            yield Schedule(Plan(Guarantee.REPLAY), Fault(at, Kind.DIE, takes_driver=True))
    for checkpoint in range(1, len(CHECKPOINTS)):
        for is_stored in (False, True):
            yield Schedule(Plan(Guarantee.REPLAY, unsaved=checkpoint, is_stored=is_stored))


def _of_lagging(points: list[Point]) -> Iterator[Schedule]:
    lagging = Plan(Guarantee.REPLAY, is_lagging=True)
    for at, point in enumerate(points):
        if point.is_driver and "commit(" in point.call:
            for kind in (Kind.DIE, Kind.FAIL):
                yield Schedule(lagging, Fault(at, kind))


def _of_pauses(points: list[Point]) -> Iterator[Schedule]:
    fencing = Plan(Guarantee.FENCING)
    for at, point in enumerate(points):
        if point.call == "close":
            continue
        for wake in Wake:
            yield Schedule(fencing, Fault(at, Kind.PAUSE, wake))
            if not point.is_driver and wake is not Wake.BEGUN:
                yield Schedule(fencing, Fault(at, Kind.PAUSE, wake, takes_driver=True))


def _of_older_checkpoints() -> Iterator[Schedule]:
    for may_withdraw in (True, False):
        for back_to in (2, 1):
            plan = Plan(Guarantee.BACK, back_to=back_to, may_withdraw=may_withdraw)
            yield Schedule(plan)
            yield Schedule(replace(plan, is_lagging=True))  # nothing newer is visible then
        yield Schedule(Plan(Guarantee.HISTORY, LONG, back_to=2, may_withdraw=may_withdraw))


def _of_second_commit(points: list[Point]) -> Iterator[Schedule]:
    """A driver that stops in its second commit while another begins from an older checkpoint, or
    for a long time; or that dies there, and starts with another parallelism.
    """
    behind = Plan(Guarantee.FENCING, back_to=1, may_withdraw=True, loses_newest=True)
    for at, point in enumerate(points):
        if point.call == "commit(2)" and point.is_driver:
            for wake in Wake:
                yield Schedule(behind, Fault(at, Kind.PAUSE, wake))
            yield Schedule(Plan(Guarantee.HISTORY, LONG), Fault(at, Kind.PAUSE, Wake.ENDED))
            for parallelism in (1, 3):
                plan = Plan(Guarantee.RESCALING, parallelism=parallelism)
                yield Schedule(plan, Fault(at, Kind.DIE))
        elif point.call == "commit(2)":
            for parallelism in (1, 3):
                plan = Plan(Guarantee.RESCALING, parallelism=parallelism)
                yield Schedule(plan, Fault(at, Kind.DIE, takes_driver=True))
