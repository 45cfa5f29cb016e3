"""Follows the messages of a counterexample from the step that put them into a channel to the one
that took them out.

A trace records what channels hold before and after each step, not who pushed what; here the
difference decides. Blind spots: a message that comes and goes within one step leaves no trace, and
one of several equal messages in a channel is taken to be the oldest. Runs wherever it is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from epochgate.fsm.checker.result import Counterexample, TraceStep


@dataclass
class Message:
    """One item of a channel; steps count from 1, and 0 is before the first."""

    channel: str
    """`instance.field`, with an index for each dimension of an array of channels."""
    value: Any
    pushed_at: int
    sender: str
    """The instance whose step pushed it; for what was there before, the channel's owner."""
    taken_at: int | None = None
    """None: it is still in flight at the end."""
    taker: str = ""

    @property
    def owner(self) -> str:
        """The instance that declares the channel."""
        return owner_of(self.channel)

    @property
    def label(self) -> str:
        """The channel's own name and what was in it."""
        return f"{self.channel.partition('.')[2]} {shown(self.value)}"


def shown(value: Any) -> str:
    """A value of a field as a person reads it."""
    return value if isinstance(value, str) else repr(value)


def changes(step: TraceStep) -> Iterator[tuple[str, Any, Any]]:
    """The changes of a step, each as its place, what it was and what it is; of an array the
    elements that differ, and a channel as a whole.
    """
    for place, (was, now) in step.changed.items():
        if place in step.channels:
            yield place, was, now
        else:
            yield from parts_that_differ(place, was, now)


def parts_that_differ(place: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """The elements that differ.

    >>> list(parts_that_differ("job.is_free", [True, True], [True, False]))
    [('job.is_free[1]', True, False)]
    """
    if not (isinstance(was, list) and isinstance(now, list) and len(was) == len(now)):
        yield place, was, now
        return
    for position, (before, after) in enumerate(zip(was, now, strict=True)):
        if before != after:
            yield from parts_that_differ(f"{place}[{position}]", before, after)


def owner_of(place: str) -> str:
    """The instance of `instance.field`."""
    return place.partition(".")[0]


def effects_by_owner(step: TraceStep) -> dict[str, list[str]]:
    """The effects of a step by the instances that they left, in order."""
    found: dict[str, list[str]] = {}
    for effect in step.effects:
        owner, _, told = effect.partition(".")
        found.setdefault(owner, []).append(told)
    return found


def touched(step: TraceStep) -> list[str]:
    """The instances other than the acting one that took a row, changed, or emitted effects."""
    names = [row.instance for row in step.rows] + [owner_of(place) for place in step.changed]
    names += effects_by_owner(step)
    return [name for name in dict.fromkeys(names) if name != step.instance]


def lanes(found: Counterexample) -> list[str]:
    """The instances that have a part in it, in the order in which the system declares them."""
    present = {message.owner for message in messages(found)}
    for step in found.steps:
        present |= {step.instance, *touched(step)}
    return [name for name in found.initial if name in present] or list(found.initial)


def messages(found: Counterexample) -> list[Message]:
    """Every message, in the order in which they were pushed."""
    places = dict.fromkeys(place for step in found.steps for place in step.channels)
    told: list[Message] = []
    in_flight: dict[str, list[Message]] = {}
    for place in places:
        for channel, items in _channels(place, _at(found.initial, place)):
            waiting = [Message(channel, item, 0, owner_of(place)) for item in items]
            in_flight[channel] = waiting
            told += waiting
    for step in found.steps:
        for place in places:
            for channel, items in _channels(place, _at(step.after, place)):
                told += _advance(in_flight.setdefault(channel, []), channel, items, step)
    return told


def _advance(
    waiting: list[Message], channel: str, items: list[Any], step: TraceStep
) -> list[Message]:
    """Bring a channel up to date with what it holds after a step, and return what came new."""
    kept = _kept([message.value for message in waiting], items)
    for position, message in enumerate(waiting):
        if position not in kept:
            message.taken_at, message.taker = step.number, step.instance
    pushed = [Message(channel, item, step.number, step.instance) for item in items[len(kept) :]]
    waiting[:] = [waiting[position] for position in kept] + pushed
    return pushed


def _kept(before: list[Any], after: list[Any]) -> list[int]:
    """The positions of `before` that are still there.

    >>> _kept([1, 2], [2, 3])  # the oldest was taken, another one came
    [1]
    >>> _kept([1, 2, 3], [1, 3])  # one was lost on the way
    [0, 2]
    """
    for taken in range(len(before)):
        if before[taken:] == after[: len(before) - taken]:
            return list(range(taken, len(before)))
    kept: list[int] = []
    for position, item in enumerate(before):
        if len(kept) < len(after) and item == after[len(kept)]:
            kept.append(position)
    return kept if len(kept) == len(after) else []


def _at(state: dict[str, dict[str, Any]], place: str) -> Any:
    name, _, field = place.partition(".")
    return state[name][field]


def _channels(place: str, value: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """A channel, or each channel of an array of them."""
    if any(isinstance(item, list) for item in value):
        for position, item in enumerate(value):
            yield from _channels(f"{place}[{position}]", item)
    else:
        yield place, value
