"""The users' part of a source that is played: an enumerator that decides as the schedule tells, and
in each reader a `SourceOperator`, with the wires to it and from it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from epochgate.models.closed.surroundings.split_readers import DOWN, REGISTER, REQUEST, STARTING, UP
from epochgate.runtime import SendFuture
from epochgate.runtime.api.operator import OperatorContext
from epochgate.runtime.source import (
    ReaderContext,
    Source,
    SourceOperator,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
    events,
)
from epochgate.runtime.source.reader_state import ReaderState
from epochgate.runtime.source.split import pack_splits, unpack, unpack_splits
from tests.runtime.source.by_hand import HandGateway

if TYPE_CHECKING:
    from tests.playing.sources import SourcesWorld

BARRIER = "barrier"


class Enumerator(SplitEnumerator):
    """Remembers who has asked; the schedule decides when to answer."""

    def __init__(self, world: Any, context: SplitEnumeratorContext, state: Any) -> None:
        self._world, self.context = world, context
        self.unassigned: list[int] = [*range(world.system.S)] if state is None else state
        self.asking = dict[int, int]()
        """Subtasks that wait for an answer, and the attempt of each."""
        self.planned = set[int]()
        """Subtasks for which the enumerator decides once their reader is there."""

    def handle_split_request(self, subtask: int) -> None:
        self.asking[subtask] = min(self.there(subtask))

    def is_asked(self, subtask: int) -> bool:
        """Return whether a reader that is there waits for an answer."""
        return self.asking.get(subtask) in self.there(subtask)

    def add_splits_back(self, splits: list[SourceSplit], subtask: int) -> None:
        for number in numbers_of(splits):
            assert number not in self.unassigned, "what comes back was assigned"
            self.unassigned.append(number)

    def add_reader(self, subtask: int) -> None:
        if subtask in self.planned:
            self.planned.remove(subtask)
            self.decide(subtask)
        self._world.told_of_reader()

    def decide(self, subtask: int) -> None:
        """Assign the next split, or tell the reader of the end."""
        if self.unassigned:
            number = min(self.unassigned)
            self.unassigned.remove(number)
            self.context.assign_split(SourceSplit(str(number)), subtask)
        else:
            self.asking.pop(subtask, None)
            self.context.signal_no_more_splits(subtask)

    def answer(self, subtask: int) -> None:
        """Answer a reader that has asked."""
        self.asking.pop(subtask)
        self.decide(subtask)

    def there(self, subtask: int) -> list[int]:
        """The attempts of a subtask whose readers are there."""
        return [*self.context.registered_attempts.get(subtask, ())]

    def handle_source_event(self, subtask: int, event: Any) -> None:
        self._world.heard(subtask, event, event)

    def handle_attempt_source_event(self, subtask: int, attempt: int, event: Any) -> None:
        self._world.heard(subtask, attempt, event)

    def snapshot_state(self, checkpoint_id: int) -> list[int]:
        return sorted(self.unassigned)


class Reader(SourceReader):
    """Finds nothing in its splits, which have no end."""

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[None]:
        while True:
            yield None


class PlayedSource(Source):
    """A source of numbered splits."""

    def __init__(self, world: Any, kind: type[Enumerator] = Enumerator) -> None:
        self._world, self._kind = world, kind

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> Enumerator:
        made = self._world.enumerator = self._kind(self._world, context, state)
        return made

    def create_reader(self, context: ReaderContext) -> Reader:
        return Reader()


class Process(HandGateway):
    """The attempt of a subtask, its wires, and the gateway to it."""

    def __init__(self, world: SourcesWorld, subtask: int, attempt: int) -> None:
        super().__init__(subtask, attempt)
        self._world, self.state, self.restored = world, STARTING, world.completed.readers[subtask]
        self.down, self.up = deque[Any](), deque[Any]()
        self.operator = SourceOperator(PlayedSource(world), splits_ahead=world.system.S)

    def send_event(self, event: Any) -> SendFuture:
        """Several splits that are sent together arrive one after the other."""
        if event[0] == events.SPLITS:
            self.down += [[events.SPLITS, pack_splits([s])] for s in unpack_splits(event[1])]
        else:
            self.down.append(event)
        return SendFuture(event)

    def begin(self) -> None:
        self.state = UP
        count = self._world.system.subtasks
        send = self.up.append
        context = OperatorContext("source", self.subtask, self.attempt, count, "run", send)
        self.operator.open(context, self.restored)
        self._world.ready(self)

    def hear(self) -> None:
        """The oldest message arrives at the driver; a source event with the request behind it."""
        for _ in range(1 + (self.up[0][0] == events.SOURCE_EVENT)):
            self.say(self.up.popleft())

    def say(self, message: Any) -> None:
        self._world.tell(self._world.said, self.subtask, self.attempt, message)

    def may_ask(self) -> bool:
        operator = self.operator
        is_short = not operator._has_asked and not operator._has_no_more
        return self.state == UP and is_short and len(self.words()) < self._world.system.up_length

    def ask(self) -> None:
        self.up.append([events.SOURCE_EVENT, self.attempt])
        self.operator.step(lambda _: None)

    def is_told(self) -> bool:
        return self.state == UP and bool(self.down)

    def handle(self) -> None:
        message = self.down.popleft()
        if message[0] == BARRIER:
            self._world.acknowledge(self.subtask, message[1], self.operator.snapshot(message[1]))
        else:
            self.operator.handle_event(message)

    def die(self) -> None:
        self.state = DOWN
        self.down.clear()
        self.up.clear()

    def words(self) -> list[int]:
        """Return the messages on the way to the driver, as the closed system has them."""
        words = {events.REGISTER: REGISTER, events.REQUEST: REQUEST}
        return [words[message[0]] for message in self.up if message[0] in words]

    def orders(self) -> list[int]:
        """Return the messages on the way to the reader, as the closed system has them."""
        last, orders = self._world.system.S, list[int]()
        for tag, *value in self.down:
            if tag == events.SPLITS:
                orders += [number + 1 for number in numbers_of(unpack_splits(value[0]))]
            else:
                orders.append(last + 1 + (value[0] if tag == BARRIER else 0))
        return orders

    def holds(self) -> list[int]:
        """The splits of its state."""
        if self.state == STARTING:
            return held(self.restored)
        return numbers_of(split for split, _ in self.operator.splits)


@dataclass
class Checkpoint:
    """The states of the enumerator and of each reader in one checkpoint."""

    number: int = 0
    enumerator: bytes | None = None
    readers: dict[int, bytes | None] = field(default_factory=dict)

    def unassigned(self, splits: int) -> list[int]:
        """Return the splits that the enumerator has not assigned, of this number."""
        if self.enumerator is None:
            return [*range(splits)]
        unassigned: list[int] = unpack(self.enumerator)[2]
        return unassigned


class Shown:
    """A machine with the numbers of the splits that it holds."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine

    def values(self) -> dict[str, Any]:
        values: dict[str, Any] = self._machine.values()
        for channel in ("uncheckpointed", "checkpointed"):
            values[channel] = [number + 1 for number in numbers_of(values[channel])]
        return values


def numbers_of(splits: Any) -> list[int]:
    """The numbers of splits, from 0."""
    return [int(split.split_id) for split in splits]


def held(state: bytes | None) -> list[int]:
    """The splits in a reader's state."""
    if state is None:
        return []
    return sorted(numbers_of(s for s, _ in ReaderState.from_bytes(state, "a reader").splits))
