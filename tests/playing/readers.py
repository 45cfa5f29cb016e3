"""The concurrent attempts of one subtask: the `SourceCoordinator` that runs in production, and a
`SourceOperator` in each attempt. Attempts come, register and die as the schedule tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar, cast

from epochgate.fsm.inside import machines_behind
from epochgate.models.closed.readers import ConcurrentSources
from epochgate.runtime import CoordinatorContext, SendFuture
from epochgate.runtime.api.operator import OperatorContext
from epochgate.runtime.source import SourceCoordinator, SourceOperator, SourceSplit, events
from tests.playing.gates import Lie, the_truth
from tests.playing.job_lies import tell_lies
from tests.playing.source_users import Enumerator, PlayedSource, Shown, numbers_of
from tests.playing.stage import Act
from tests.playing.waiting import QueuedWorld
from tests.runtime.source.by_hand import HandContext, HandGateway


class Announced(Enumerator):
    """Is told once that the subtask has a reader, until it has none."""

    _world: ReadersWorld

    def add_reader(self, subtask: int) -> None:
        assert not self._world.is_announced, "it is told once"
        self._world.is_announced = True
        super().add_reader(subtask)

    def add_splits_back(self, splits: list[SourceSplit], subtask: int) -> None:
        assert not self._world.living(), "splits come back once no attempt is left"
        assert numbers_of(splits) == [*range(len(splits))], "they come back in their order"
        super().add_splits_back(splits, subtask)
        self._world.is_ended = False


class Attempt(HandGateway):
    """One attempt, whose reader gets at once what is sent to it."""

    def __init__(self, world: ReadersWorld, number: int) -> None:
        super().__init__(0, number)
        self.is_up, self.has_registered = True, False
        self.operator = SourceOperator(PlayedSource(world, Announced))
        self.said: list[Any] = []
        send = self.said.append
        self.operator.open(OperatorContext("source", 0, number, 1, "run", send), None)

    def send_event(self, event: Any) -> SendFuture:
        is_late = event[0] == events.SPLITS and self.operator._has_no_more
        assert not is_late, "a reader that was told of the end is given no more"
        self.operator.handle_event(event)
        return SendFuture(event)

    def given(self) -> list[int]:
        """The splits that it was sent, in their order."""
        return numbers_of(split for split, _ in self.operator.splits)


class ReadersWorld(QueuedWorld):
    """The world of `ConcurrentSources`."""

    # The job announces an attempt, and its end, in this order; so both are events of the driver.
    OUTSIDE = frozenset(
        f"attempts_of.{step}" for step in ("join_first", "join_last", "join_again", "die_again")
    )

    def __init__(self, system: ConcurrentSources, lie: Lie = the_truth) -> None:
        super().__init__()
        self.system = system
        self.is_announced = self.is_ended = self.is_to_reset = self.has_checkpoint = False
        self.attempts: list[Attempt] = []
        self.enumerator: Enumerator
        context = HandContext(concurrent_attempts_max=system.places)
        context.parallelism = 1
        used = cast(CoordinatorContext, context)  # all that a source uses of one
        self.coordinator = SourceCoordinator(used, PlayedSource(self, Announced))
        self.machines_here = machines_behind(self.coordinator._assignments._system)
        tell_lies(self.machines_here, lie)
        self.coordinator.start()

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Any]]:
        yield "assignment", (0,), Shown(self.machines_here.assignment[0])

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        model, there = self.system.attempts_of[0], self.enumerator.there(0)
        here = model.is_announced, model.is_ended, model.is_to_reset
        yield "the subtask", here, (self.is_announced, self.is_ended, self.is_to_reset)
        yield "assigned", model.assigned, self.system.S - len(self.enumerator.unassigned)
        yield "begun", model.started, len(self.attempts)
        joined = [number for number, flag in enumerate(model.has_joined) if flag]
        yield "the readers that are there", joined, sorted(there)
        for number, attempt in enumerate(self.attempts):
            states = model.is_up[number], model.has_registered[number]
            yield f"attempt {number}", states, (attempt.is_up, attempt.has_registered)
            if number in joined:
                yield f"given to {number}", [*range(model.given[number])], attempt.given()
                is_told = attempt.operator._has_no_more
                yield f"the end is told to {number}", model.is_told[number], is_told

    def hear(self, call: Callable[..., None], *arguments: Any) -> None:
        call(*arguments)
        self.is_announced = self.is_announced and bool(self.enumerator.there(0))

    def told_of_reader(self) -> None:
        """An enumerator that raises fails the job, which is no part of this system."""

    def heard(self, subtask: int, attempt: int, event: Any) -> None:
        """No reader says anything here."""
        raise AssertionError(f"{event} of attempt {attempt} is heard")

    def living(self) -> list[Attempt]:
        """Return the attempts that have not died."""
        return [attempt for attempt in self.attempts if attempt.is_up]

    def unjoined(self) -> list[Attempt]:
        """Return the living attempts that have not registered."""
        return [attempt for attempt in self.living() if not attempt.has_registered]

    def may_begin(self) -> bool:
        has_left = len(self.attempts) < self.system.attempts
        return has_left and len(self.living()) < self.system.places and not self.is_to_reset

    def may_die(self) -> bool:
        count = len(self.living())
        return count == 1 or (count > 0 and not self.has_checkpoint)

    def may_take(self) -> bool:
        there = self.enumerator.there(0)
        is_told = any(self.attempts[number].operator._has_no_more for number in there)
        return is_told and not self.has_checkpoint

    def begin(self) -> None:
        attempt = Attempt(self, len(self.attempts))
        self.attempts.append(attempt)
        self.hear(self.coordinator.execution_attempt_ready, 0, attempt.attempt, attempt)

    def join(self, attempt: Attempt) -> None:
        attempt.has_registered = True
        self.tell(self.coordinator.handle_event_from_operator, 0, attempt.attempt, attempt.said[0])

    def join_again(self) -> None:
        for attempt in self.attempts:
            if attempt.has_registered or not attempt.is_up:
                said = [events.REGISTER, "again"]
                heard = self.coordinator.handle_event_from_operator
                self.tell(heard, 0, attempt.attempt, said)

    def die(self, attempt: Attempt) -> None:
        attempt.is_up = attempt.has_registered = False
        self.hear(self.coordinator.execution_attempt_failed, 0, attempt.attempt, "killed")
        self.is_to_reset = not self.living()

    def die_again(self) -> None:
        for attempt in self.attempts:
            if not attempt.is_up:
                heard = self.coordinator.execution_attempt_failed
                self.tell(heard, 0, attempt.attempt, "again")

    def reset(self) -> None:
        self.is_to_reset = False
        self.hear(self.coordinator.subtask_reset, 0, 0)

    def end(self) -> None:
        self.is_ended = True
        self.enumerator.decide(0)

    def take(self) -> None:
        self.has_checkpoint = True
        taken: Future[bytes] = Future()
        self.coordinator.checkpoint(1, taken)
        assert taken.result(timeout=0), "no split waits for a reader"

    acts: ClassVar[Mapping[str, Act]] = {
        "attempts_of.begin": Act(
            lambda world, _: world.begin(), lambda world, _: world.may_begin(), "no place is free"
        ),
        "attempts_of.join_first": Act(
            lambda world, _: world.join(world.unjoined()[0]),
            lambda world, _: world.unjoined(),
            "all have registered",
        ),
        "attempts_of.join_last": Act(
            lambda world, _: world.join(world.unjoined()[-1]),
            lambda world, _: world.unjoined(),
            "all have registered",
        ),
        "attempts_of.join_again": Act(
            lambda world, _: world.join_again(), lambda world, _: world.attempts, "none has begun"
        ),
        "attempts_of.die_first": Act(
            lambda world, _: world.die(world.living()[0]),
            lambda world, _: world.may_die(),
            "no attempt lives, or the others are ended before",
        ),
        "attempts_of.die_last": Act(
            lambda world, _: world.die(world.living()[-1]),
            lambda world, _: world.may_die(),
            "no attempt lives, or the others are ended before",
        ),
        "attempts_of.die_again": Act(
            lambda world, _: world.die_again(), lambda world, _: world.attempts, "none has begun"
        ),
        "attempts_of.reset": Act(
            lambda world, _: world.reset(), lambda world, _: world.is_to_reset, "an attempt lives"
        ),
        "attempts_of.deal": Act(
            lambda world, _: world.enumerator.decide(0),
            lambda world, _: world.enumerator.unassigned,
            "everything is assigned",
        ),
        "attempts_of.end": Act(
            lambda world, _: world.end(),
            lambda world, _: not world.enumerator.unassigned and not world.is_ended,
            "something is not assigned, or the end is signalled",
        ),
        "attempts_of.take": Act(
            lambda world, _: world.take(),
            lambda world, _: world.may_take(),
            "no reader has everything, or the checkpoint was taken",
        ),
    }
