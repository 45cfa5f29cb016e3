"""Coordinators that follow each other: `RecreatedCoordinator` as it runs in production, with
coordinators that raise, and closes that end, fail and take too long as the schedule tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar, cast
from unittest import mock

from epochgate.fsm import Ignore, Machine, Row
from epochgate.fsm.inside import machine_behind
from epochgate.fsm.run_to_completion import Call as Event
from epochgate.models.closed.recreation import RecreatedJob
from epochgate.models.recreation import CAUGHT_UP, FRESH
from epochgate.runtime import CoordinatorContext, CoordinatorProvider, OperatorCoordinator
from epochgate.runtime.shell import recreate_on_reset
from epochgate.runtime.shell.fenced_context import QuiescableContext
from epochgate.runtime.shell.recreate_on_reset import (
    Call,
    CoordinatorNotClosed,
    RecreatedCoordinator,
    RecreateOnReset,
)
from tests.playing.gates import Lie, the_truth
from tests.playing.job_lies import tell_lies
from tests.playing.stage import Act
from tests.playing.waiting import QueuedWorld
from tests.runtime.source.by_hand import HandContext, HandGateway

UNMADE, RAISED = "it cannot be made", "a call raises"
FAILED, LATE = "failed to close", "did not close within"
OF_TRIGGERS = {"unmade": UNMADE, "raised": RAISED, "close_failed": FAILED, "close_late": LATE}
"""For triggers by which the job fails, why it does."""


class Context(HandContext):
    """The job's context, whose threads and timers move when the schedule says so."""

    job_id, run_id = "job", "run"
    checkpoints = mock.Mock(interval_s=None, is_periodic=False, last_completed_id=0)

    def __init__(self, world: RecreationWorld) -> None:
        super().__init__()
        self._world = world

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        self._world.tell(call, *arguments)

    def run_async(self, work: Any, then: Callable[..., None], *, lane: str = "") -> None:
        closing = work.__self__.generation
        self._world.closes[closing] = work, then, lane
        self._world.replaced = closing

    def post_later(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        self._world.timers[self._world.replaced] = lambda: self._world.tell(call, *arguments)


class Numbered(Call):
    """A call that knows its number, and those before and after it."""

    calls: list[Numbered]

    @property
    def number(self) -> int:
        return self.calls.index(self) + 1

    def nearby(self, by: int) -> Numbered:
        """The next call, or the one before it."""
        at = self.number - 1 + by
        return self.calls[at if 0 <= at < len(self.calls) else self.number - 1 - by]


class Coordinator(OperatorCoordinator):
    """Notes what it hears, and raises where the schedule says so."""

    def __init__(self, world: RecreationWorld, context: CoordinatorContext) -> None:
        assert isinstance(context, QuiescableContext)
        self._world, self.context, self.generation = world, context, world.generation
        self.restored = 0
        self.is_started = self.is_closed = False
        self._is_first, self._is_to_start = not world.made, world.has_begun

    def start(self) -> None:
        assert not self.is_started, "each is started once"
        self.is_started = True
        if self._is_to_start and not self._is_first:
            self._world.stumble()

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        assert (checkpoint_id, self.restored) == (self._world.resets, 0), "it is restored once"
        self.restored = checkpoint_id
        if not self._is_first and (self._world.resets % 2 or not self._is_to_start):
            self._world.stumble()

    def close(self) -> None:
        assert not self.is_closed, "each is closed once"
        self.is_closed = True

    def _hear(self, call: int) -> None:
        assert self._world.meant_for[call] == self.generation, "a call is meant for another"
        self._world.heard = call
        if self._world.is_to_raise:
            self._world.is_to_raise = False
            self._world.raise_of(call)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self._hear(checkpoint_id)
        result.set_result(b"")

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        self._hear(event)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: Any) -> None:
        self._hear(attempt)

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self._hear(attempt)

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        self._hear(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._hear(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._hear(checkpoint_id)

    def handle_client_request(self, request: Any) -> Any:
        self._hear(request)
        return request


class Provider(CoordinatorProvider):
    """Makes the coordinators of a world."""

    operator_id = "op"

    def __init__(self, world: RecreationWorld) -> None:
        self._world = world

    def create(self, context: CoordinatorContext) -> Coordinator:
        if self._world.is_to_fail:
            self._world.is_to_fail = False
            raise ValueError(UNMADE)
        self._world.made.append(Coordinator(self._world, context))
        return self._world.made[-1]


def _checkpoint(wrapper: RecreatedCoordinator, number: int) -> Future[bytes]:
    result: Future[bytes] = Future()
    wrapper.checkpoint(number, result)
    return result


def _ask(wrapper: RecreatedCoordinator, number: int) -> Future[Any]:
    """Ask as a client, who alone is told of an error; in other calls it fails the job."""
    answer: Future[Any] = Future()
    try:
        told = wrapper.handle_client_request(number)
    except ValueError as error:
        answer.set_exception(error)
        return answer
    if isinstance(told, Future):
        return told
    answer.set_result(told)
    return answer


CALLS: tuple[Callable[[RecreatedCoordinator, int], Any], ...] = (
    _checkpoint,
    lambda wrapper, n: wrapper.handle_event_from_operator(0, 0, n),
    lambda wrapper, n: wrapper.execution_attempt_ready(0, n, HandGateway(0, n)),
    _checkpoint,
    lambda wrapper, n: wrapper.execution_attempt_failed(0, n, "killed"),
    lambda wrapper, n: wrapper.subtask_reset(0, n),
    _checkpoint,
    lambda wrapper, n: wrapper.notify_checkpoint_complete(n),
    lambda wrapper, n: wrapper.notify_checkpoint_aborted(n),
)


class RecreationWorld(QueuedWorld):
    """The world of `RecreatedJob`."""

    OUTSIDE = frozenset(
        f"inners.{step}"
        for step in (
            *("end_close", "end_newest", "break_close", "lose_patience"),
            *("doom", "cripple", "spoil"),
        )
    )
    LATER = frozenset(["closed"])

    def __init__(self, system: RecreatedJob, lie: Lie = the_truth) -> None:
        super().__init__()
        self.system = system
        self.resets = self.generation = self.calls = self.heard = self.failures = 0
        self.replaced = 0
        """The generation whose coordinator was replaced last."""
        self.has_begun = self.is_over = False
        self.is_to_fail = self.is_to_stumble = self.is_to_raise = False
        self.is_fresh = True
        self.made: list[Coordinator] = []
        self.meant_for: dict[int, int] = {}
        self.results: dict[int, Future[Any]] = {}
        """For calls that wait or that are answered later, how they end."""
        self.asked, self.refused = set[int](), set[int]()
        """Calls of clients, and those of them that a coordinator has answered by raising."""
        self.closes: dict[int, tuple[Any, Callable[..., None], str]] = {}
        self.timers: dict[int, Callable[[], None]] = {}
        self.numbered: list[Numbered] = []
        self._failed, self._expected = list[str](), list[str]()
        used = cast(CoordinatorContext, Context(self))  # all that is used of one
        self.wrapper = RecreateOnReset(Provider(self)).create(used)
        machine = machine_behind(self.wrapper._machine)
        tell_lies(machine.system, lie)
        self._machine = machine
        system.observer = self._note

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Any]]:
        yield "recreation", (), Shown(self._machine)

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        model, inners = self.system.recreation, self.system.inners
        yield "failures", inners.failures, self.failures
        yield "the generation", model.generation, self.generation
        lives = model.generation if model.state in (FRESH, CAUGHT_UP) else None
        inner = cast("Coordinator | None", self.wrapper.inner)
        yield "the coordinator that lives", lives, inner and inner.generation
        is_started = inner is not None and inner.is_started
        yield "whether it is started", inners.is_started, is_started
        if inner is not None:
            yield "the reset that it has seen", inners.resets, inner.restored
        yield "being closed", _flagged(inners.is_closing), sorted(self.closes)
        yield "timers", _flagged(inners.has_timer), sorted(self.timers)
        present = [model.generation] if inners.is_made and not inners.is_over else []
        left = [
            each.generation
            for each in self.made
            if not each.is_closed and each.generation not in self.closes
        ]
        yield "neither closed nor being closed", present, left
        unfenced = [each.generation for each in self.made if not each.context.is_quiesced]
        yield "not fenced", present, unfenced
        yield "the last call that was heard", inners.heard, self.heard
        for number, result in self.results.items():
            yield f"whether call {number} is open", inners.is_open[number - 1], not result.done()
        for number in self.refused:
            error = self.results[number].exception(timeout=0)
            yield f"what the client of call {number} is told", RAISED, str(error)
        expected, self._expected = self._expected[:1], []
        failed, self._failed = self._failed, []
        yield "why the job fails", expected, failed

    def _note(self, machine: Machine, source: str, row: Row | Ignore, _: tuple[Any, ...]) -> None:
        is_taken = machine is self.system.recreation and not isinstance(row, Ignore)
        if is_taken and row.trigger in OF_TRIGGERS:
            self._expected.append(OF_TRIGGERS[row.trigger])

    def demand(self, event: Event | None) -> None:
        """A close that is awaited in its turn fails the job."""
        if event is None:
            self.system.inners.is_failure_due = False
        elif event[0].__name__ in ("close_failed", "close_late"):
            self.system.inners.expect_failure(event[1][1])

    # what the driver hears

    def hear(self, call: Callable[..., None], *arguments: Any) -> None:
        """Process an event of the driver; an error fails the job."""
        try:
            call(*arguments)
        except (ValueError, CoordinatorNotClosed) as error:
            text = str(error)
            self._failed.append(next(why for why in OF_TRIGGERS.values() if why in text))

    def raise_of(self, call: int) -> None:
        """Raise where a coordinator hears a call."""
        if call in self.asked:
            self.refused.add(call)
        else:
            self.results.pop(call, None)  # the failure of the job ends it
        raise ValueError(RAISED)

    def stumble(self) -> None:
        """Raise if the schedule lets a coordinator that is there not come up."""
        if self.is_to_stumble:
            self.is_to_stumble = False
            raise ValueError(UNMADE)

    def begin(self) -> None:
        self.has_begun, self.is_fresh = True, False
        self.hear(self.wrapper.start)

    def reset(self) -> None:
        self.resets += 1
        self.generation += not self.is_fresh
        self.is_fresh = False
        self.hear(self.wrapper.reset_to_checkpoint, self.resets, b"state")

    def call(self) -> None:
        self._count(CALLS[((self.calls + 1) * 2 + self.resets) % len(CALLS)])

    def ask(self) -> None:
        self.asked.add(self.calls + 1)
        self._count(_ask)

    def _count(self, make: Callable[[RecreatedCoordinator, int], Any]) -> None:
        self.calls += 1
        self.is_fresh = False
        self.meant_for[self.calls] = self.generation
        self.hear(self._call, make)

    def _call(self, make: Callable[[RecreatedCoordinator, int], Any]) -> None:
        with mock.patch.object(recreate_on_reset, "Call", self._numbered):
            outcome = make(self.wrapper, self.calls)
        is_seen = make in (_checkpoint, _ask) and isinstance(outcome, Future)
        if is_seen:
            self.results[self.calls] = outcome

    def _numbered(self, *arguments: Any, **settings: Any) -> Numbered:
        call = Numbered(*arguments, **settings)
        call.calls = self.numbered
        self.numbered.append(call)
        return call

    def finish(self) -> None:
        self.is_over = True
        self.hear(self.wrapper.close)

    # what happens outside

    def end_close(self, generation: int, error: BaseException | None = None) -> None:
        work, then, _ = self.closes.pop(generation)
        work()
        self.tell(then, None, error)

    def break_close(self) -> None:
        self.end_close(min(self.closes), OSError("the schedule lets it raise"))

    def may_end_newest(self) -> bool:
        """Return whether no close is in front of the newest one on its thread."""
        lanes = [self.closes[number][2] for number in sorted(self.closes)]
        return bool(lanes) and lanes[-1] not in lanes[:-1]

    def lose_patience(self) -> None:
        self.timers.pop(min(self.timers))()

    def fail(self, how: str) -> None:
        self.failures += 1
        setattr(self, how, True)

    def may_fail(self) -> bool:
        return self.failures < self.system.F

    def is_running(self) -> bool:
        return not self.is_over

    acts: ClassVar[Mapping[str, Act]] = {
        "inners.begin": Act(
            begin, lambda world: world.is_running() and not world.has_begun, "it has begun"
        ),
        "inners.reset": Act(
            reset,
            lambda world: world.is_running() and world.resets < world.system.R,
            "the job is over",
        ),
        "inners.call": Act(call, lambda world: world.calls < world.system.E, "every call was made"),
        "inners.ask": Act(ask, lambda world: world.calls < world.system.E, "every call was made"),
        "inners.end_close": Act(
            lambda world: world.end_close(min(world.closes)),
            lambda world: world.closes,
            "nothing is being closed",
        ),
        "inners.end_newest": Act(
            lambda world: world.end_close(max(world.closes)),
            may_end_newest,
            "nothing is being closed, or another close is in front of it",
        ),
        "inners.break_close": Act(
            break_close, lambda world: world.closes, "nothing is being closed"
        ),
        "inners.lose_patience": Act(
            lose_patience, lambda world: world.timers, "no close is waited for"
        ),
        "inners.doom": Act(
            lambda world: world.fail("is_to_fail"),
            lambda world: world.may_fail() and not world.is_to_fail,
            "no failure is left",
        ),
        "inners.cripple": Act(
            lambda world: world.fail("is_to_stumble"),
            lambda world: world.may_fail() and not world.is_to_stumble,
            "no failure is left",
        ),
        "inners.spoil": Act(
            lambda world: world.fail("is_to_raise"),
            lambda world: world.may_fail() and not world.is_to_raise,
            "no failure is left",
        ),
        "inners.finish": Act(finish, is_running, "the job is over"),
    }


class Shown:
    """The machine with the numbers of the calls that wait."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine

    def values(self) -> dict[str, Any]:
        values: dict[str, Any] = self._machine.values()
        return {**values, "deferred": [call.number for call in values["deferred"]]}


def _flagged(flags: list[bool]) -> list[int]:
    return [number for number, flag in enumerate(flags) if flag]
