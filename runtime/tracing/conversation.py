"""The conversation of driver and tasks, as their traces have it, and whether both say the same.

To a process the driver says what these effects are: `restore` of its attempt, `event` of a gateway,
`barrier`, `complete` and `aborted` of the checkpoint, `finish` of the lifecycle. The process's
trace has them as the triggers of its machine. The other way round, the effects `restore`,
`snapshot`, `ended`, `finish` and `event` of its machine are what the driver's attempt gets as
`initialize` and `run`, `acknowledge`, `end_of_input`, `finish` and `confirm`. Events of operators,
figures and failures are said by user code and by the shell around the machine, at any time; they
are in the driver's trace alone.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from epochgate.fsm.traces.replaying import Event, Refusal
from epochgate.runtime.tracing.segments import Place, Refused

Said = tuple[Any, ...]
"""A message: its name, then numbers."""
HEARD = ("initialize", "run", "acknowledge", "end_of_input", "finish", "confirm")
"""The triggers of an attempt that a task's machine causes."""
TOLD = ("restore", "event", "barrier", "complete", "aborted", "finish")
"""The triggers of a task's machine that the driver causes."""
Values = list[Any]


@dataclass(frozen=True)
class Words:
    """A message and where it stands; with `times` as many, whose last number grows by one."""

    said: Said
    place: Place
    number: int
    times: int = 1

    def singles(self) -> Iterator[tuple[Words, Said]]:
        """Each message alone."""
        if self.times == 1:
            yield self, self.said
            return
        *same, number = self.said
        for later in range(self.times):
            yield self, (*same, number + later)


class Side:
    """The words that one side says and hears, for each process by its identity."""

    def __init__(self) -> None:
        self.said: dict[int, list[Words]] = defaultdict(list)
        self.heard: dict[int, list[Words]] = defaultdict(list)

    def note(self, event: Event, place: Place) -> None:
        """Take notice of a line whose events were possible."""
        raise NotImplementedError


class DriverSide(Side):
    """Listens to the events of the driver's trace; `places` has the machine of each process."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[int, int] = {}

    def note(self, event: Event, place: Place) -> None:
        trigger = _heard_as(event.name)
        if trigger:
            for (identity, *rest), times in _parts(event.arguments, event.times):
                words = Words((trigger, *rest), place, event.number, times)
                self.heard[identity].append(words)
        for name, *arguments in event.effects:
            message, index = _said_as(name)
            if message:
                for values, times in _parts(arguments, event.times):
                    identity, said = self._said(message, index, values)
                    self.said[identity].append(Words(said, place, event.number, times))

    def _said(self, message: str, index: int, values: Values) -> tuple[int, Said]:
        if message == "restore":
            self.places[values[0]] = index
            return values[0], (message, *values[1:])
        if message == "event":
            return values[0], (message, index, *values[1:])
        return values[1], (message, *values[2:])


@cache
def _heard_as(name: str) -> str:
    """The message that an event of the driver's machines is about; empty if about none."""
    machine, _, trigger = name.rpartition(".")
    return trigger if trigger in HEARD and machine.startswith("attempt[") else ""


@cache
def _said_as(name: str) -> tuple[str, int]:
    """The message to a process that an effect is, empty if it is none, and the first number in the
    name of its machine, 0 without one.
    """
    if not name.endswith(SAID):
        return "", 0
    machine, _, message = name.partition(".")
    return message.rpartition(".")[2], _index(machine) if "[" in machine else 0


SAID = (
    ".task.restore",
    ".wire.event",
    ".tasks.barrier",
    ".tasks.complete",
    ".tasks.aborted",
    "lifecycle.driver.finish",
)
"""The driver's effects that processes hear of."""


class TaskSide(Side):
    """Listens to the events of the trace of the process with this identity."""

    SAYS: ClassVar[dict[str, tuple[str, ...]]] = {
        "restore": ("initialize", "run"),
        "snapshot": ("acknowledge",),
        "event": ("confirm",),
        "ended": ("end_of_input",),
        "finish": ("finish",),
    }
    """What the driver hears of each effect."""

    def __init__(self, identity: int) -> None:
        super().__init__()
        self._identity = identity

    def note(self, event: Event, place: Place) -> None:
        trigger = event.name.rpartition(".")[2]
        if trigger in TOLD:
            self._add(self.heard, trigger, event.arguments, event, place)
        for name, *arguments in event.effects:
            effect = name.rpartition(".")[2]
            for said in self.SAYS.get(effect, ()):
                values = [] if effect == "restore" else arguments
                self._add(self.said, said, values, event, place)

    def _add(
        self,
        to: dict[int, list[Words]],
        name: str,
        arguments: Values,
        event: Event,
        place: Place,
    ) -> None:
        for values, times in _parts(arguments, event.times):
            to[self._identity].append(Words((name, *values), place, event.number, times))


def _parts(values: Values, times: int) -> Iterator[tuple[Values, int]]:
    """The values of the messages of a line, without those that are not written: of all at once if
    only the last one grows, and else of each.
    """
    written = [value for value in values if value is not None]
    grows = [isinstance(value, list) for value in written]
    if times == 1:
        yield written, 1
    elif any(grows) and not any(grows[:-1]):
        yield [*written[:-1], written[-1][0]], times
    else:
        for later in range(times):
            pairs = zip(written, grows, strict=True)
            yield [value[0] + later if grown else value for value, grown in pairs], 1


def _index(machine: str) -> int:
    """The first number in the name of a machine."""
    return int(machine.partition("[")[2].partition("]")[0])


@dataclass(frozen=True)
class Reach:
    """The reach of a trace into what was said: from the beginning, to the end, and whether all of
    it came in order.
    """

    has_begin: bool
    has_end: bool
    is_ordered: bool


def compare(heard: list[Words], said: list[Words], who: str, whom: str, reach: Reach) -> int:
    """Check that all that `who` has heard was said by `whom`, in this order; how many messages.

    Confirmations are compared apart from the rest: a task says them behind all else that it has to
    say of what it got at once. Raises Refused at the first message that was not said.
    """
    matched = 0
    for stream in {_stream(words): None for words in heard}:
        heard_here, said_here = (
            [words for words in each if _stream(words) == stream] for each in (heard, said)
        )
        find = _in_order if reach.is_ordered else _among
        matched += find(heard_here, said_here, who, whom, reach)
    return matched


def _stream(words: Words) -> Said:
    return words.said[:2] if words.said[0] == "confirm" else ()


def _in_order(heard: list[Words], said: list[Words], who: str, whom: str, reach: Reach) -> int:
    """Look for each message behind the one before."""
    known = None if reach.has_begin else {message for _, message in _singles(said)}
    rest, matched = _singles(said), 0
    for words, message in _singles(heard):
        if known is not None and not matched and message not in known:
            continue
        if any(other == message for _, other in rest):
            matched += 1
        elif any(other == message for _, other in _singles(said)):
            raise _unsaid(words, message, f"{who} has heard it out of order, or twice", who)
        elif reach.has_end:
            raise _unsaid(words, message, f"{whom} never said it", who)
        else:
            break
    return matched


def _among(heard: list[Words], said: list[Words], who: str, whom: str, reach: Reach) -> int:
    """Look for each message anywhere."""
    known = {message for _, message in _singles(said)}
    matched = 0
    for words, message in _singles(heard):
        if message in known:
            matched += 1
        elif reach.has_begin and reach.has_end:
            raise _unsaid(words, message, f"{whom} never said it", who)
    return matched


def _singles(all_words: Iterable[Words]) -> Iterator[tuple[Words, Said]]:
    return itertools.chain.from_iterable(words.singles() for words in all_words)


def _unsaid(words: Words, message: Said, why: str, who: str) -> Refused:
    name, *numbers = message
    told = f"{name}({', '.join(map(str, numbers))})"
    text = f"{who} has heard {told}: {why}"
    return Refused(words.place, Refusal("unsaid", text, words.number))
