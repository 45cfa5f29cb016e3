"""The check of traces: each one alone, then what the processes of a run have said to each other.

A trace alone is accepted when its lines are whole and in order, when the rows of the system that it
names allow each event in the state that the events before have led to, when these have the effects
that were written, and when the machines are in the states that heads and foot tell. The system is
that of this epochgate: a trace that other rows have made is foreign.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from typing import Any

from epochgate.fsm import DeclarationError, System
from epochgate.fsm.run_to_completion import Observer
from epochgate.fsm.traces.replaying import Event, Refusal, Replay
from epochgate.fsm.traces.shapes import digest
from epochgate.runtime.tracing.conversation import DriverSide, Reach, Side, TaskSide, compare
from epochgate.runtime.tracing.segments import (
    Line,
    Place,
    Refused,
    Segment,
    Trace,
    chain_of,
    chains,
    found,
    opened_trace,
)

KILLED = "its process was killed, or goes on"


@dataclass
class Verdict:
    """The verdict on one trace.

    name: that of its files without their numbers. role: "driver", "task 3 (identity 17)" or "".
    events and lines: that were accepted. is_closed: it has its foot; otherwise its process was
    killed, or goes on. note: what a person should know of an accepted trace. refusal, path, line:
    why and where it is refused; None if it is accepted.
    """

    name: str
    files: list[str]
    job_id: str = ""
    run_id: str = ""
    role: str = ""
    events: int = 0
    lines: int = 0
    is_closed: bool = False
    note: str = ""
    path: str = ""
    line: int = 0
    refusal: Refusal | None = None

    def is_accepted(self) -> bool:
        """Return whether the rows allow it."""
        return self.refusal is None

    def refuse(self, refused: Refused) -> None:
        """Refuse it at this place."""
        self.refusal = refused.refusal
        self.path, self.line = refused.place.path, refused.place.line

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        values = {name: value for name, value in vars(self).items() if name != "refusal"}
        refusal = None if self.refusal is None else asdict(self.refusal)
        return {**values, "is_accepted": self.is_accepted(), "refusal": refusal}


@dataclass
class Validation:
    """The verdicts on all traces; `messages` between driver and tasks were found on both sides."""

    verdicts: list[Verdict]
    messages: int = 0
    joined: int = 0
    """Traces of tasks that were compared with that of their driver."""

    def is_accepted(self) -> bool:
        """Return whether all are accepted."""
        return all(verdict.is_accepted() for verdict in self.verdicts)

    @property
    def events(self) -> int:
        """The events of all."""
        return sum(verdict.events for verdict in self.verdicts)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "is_accepted": self.is_accepted(),
            "events": self.events,
            "messages": self.messages,
            "joined": self.joined,
            "traces": [verdict.to_json() for verdict in self.verdicts],
        }


@dataclass
class _Checked:
    """A trace that was checked alone, and what it says of the others."""

    verdict: Verdict
    trace: Trace | None = None
    side: Side | None = None

    @property
    def reach(self) -> Reach:
        assert self.trace is not None, "it was opened"
        head = self.trace.head
        return Reach(head["first"] == 1, self.verdict.is_closed, head["is_ordered"])


def validated(paths: Iterable[str | os.PathLike[str]], *, is_whole: bool = False) -> Validation:
    """Check all traces at these paths, and those of one run against each other; `is_whole`: refuse
    those that were cut off. Raises NoTraces, OSError.
    """
    all_checked = [checked_alone(files, is_whole=is_whole) for files in chains(found(paths))]
    validation = Validation([checked.verdict for checked in all_checked])
    for run in _runs(all_checked):
        _join(run, validation)
    return validation


def checked_alone(
    files: list[str], *, is_whole: bool = False, observer: Observer | None = None
) -> _Checked:
    """Check one trace, and listen to what it says; `observer` hears of the rows that it takes."""
    folder, name = chain_of(files[0])
    verdict = Verdict(os.path.join(folder, name), files)
    checked = _Checked(verdict)
    try:
        trace = checked.trace = opened_trace(files)
        head = trace.head
        verdict.job_id, verdict.run_id = head["job_id"], head["run_id"]
        verdict.role = role(head["process"])
        checked.side = _side(head["process"])
        place = Place(files[0], 1)
        replay = Replay(system_of(trace))
        replay.system.observer = observer
        for place, event in events_of(trace, verdict, replay):
            verdict.lines += 1
            if checked.side is not None:
                checked.side.note(event, place)
        if is_whole and not verdict.is_closed:
            raise Refused(place, Refusal("cut", verdict.note))
    except Refused as refused:
        verdict.refuse(refused)
    return checked


def events_of(trace: Trace, verdict: Verdict, replay: Replay) -> Iterator[tuple[Place, Event]]:
    """The events of a trace, each once `replay` has taken it; raises Refused."""
    for segment in trace.segments:
        place = Place(segment.path, 1)
        with _at(place):
            _enter(replay, segment, is_first=segment is trace.segments[0])
        try:
            for line in trace.lines(segment):
                place = line.place
                event = _taken(replay, line, verdict)
                if event is not None:
                    verdict.events += event.times
                    yield place, event
        except Refusal as refusal:
            raise Refused(place, refusal) from refusal
    if not verdict.is_closed and not verdict.note:
        verdict.note = f"cut off after event {replay.number}: {KILLED}"


@contextmanager
def _at(place: Place) -> Iterator[None]:
    """Give a refusal its place."""
    try:
        yield
    except Refusal as refusal:
        raise Refused(place, refusal) from refusal


def _enter(replay: Replay, segment: Segment, *, is_first: bool) -> None:
    number = segment.head["first"] - 1
    if is_first:
        replay.begin(number, segment.head["state"])
        return
    if number != replay.number:
        text = f"the segment goes on after event {number}, and the one before ends with event"
        raise Refusal("missing", f"{text} {replay.number}: a line was lost", replay.number + 1)
    replay.require(segment.head["state"])


def _taken(replay: Replay, line: Line, verdict: Verdict) -> Event | None:
    """Take the events of a line; None for the foot and for a torn line."""
    if verdict.is_closed:
        raise Refusal("repeated", "there are lines behind the foot")
    if line.values is None:
        verdict.note = f"cut off within a line, after event {replay.number}: {KILLED}"
        return None
    if "end" in line.values:
        if line.values["end"] != replay.number:
            text = f"the trace ends with event {line.values['end']}, and event {replay.number} is"
            raise Refusal("missing", f"{text} the last one here", replay.number + 1)
        replay.require(line.values["state"])
        verdict.is_closed = True
        return None
    if "trace" in line.values:
        raise Refusal("repeated", "a second head: two files were put together")
    event = Event.of(line.values)
    replay.take(event)
    return event


def system_of(trace: Trace) -> System:
    """A system as the trace was made by; raises Refused."""
    head = trace.head
    place = Place(trace.segments[0].path, 1)
    known = _known(head["system"])
    if known is None:
        text = f"the system {head['system']} is not one of this epochgate"
        raise Refused(place, Refusal("foreign", text))
    kind, ours = known
    if ours != head["digest"]:
        text = (
            f"other rows, guards or actions of {head['system']} have made it: their digest is "
            f"{head['digest']} there and {ours} here; it was written by epochgate "
            f"{head['epochgate']}"
        )
        raise Refused(place, Refusal("foreign", text))
    try:
        return kind(**head["constants"])
    except (DeclarationError, TypeError) as error:
        raise Refused(place, Refusal("malformed", str(error))) from None


@cache
def _known(path: str) -> tuple[type[System], str] | None:
    """The system that a head names, and its digest; only one of epochgate's own models, or one that
    is imported already, so that no trace makes this process run other code.
    """
    module, _, name = path.partition(":")
    if module.startswith("epochgate.models."):
        try:
            import_module(module)
        except ImportError:
            return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, System):
        return found, digest(found)
    return None


def role(process: dict[str, Any]) -> str:
    """Name the process that has written a trace."""
    if process["role"] == "driver":
        return "driver"
    return f"task {process['subtask']} (identity {process['identity']})"


def _side(process: dict[str, Any]) -> Side:
    return DriverSide() if process["role"] == "driver" else TaskSide(process["identity"])


def _runs(all_checked: list[_Checked]) -> Iterator[list[_Checked]]:
    """The accepted traces of each run."""
    runs: dict[tuple[str, str], list[_Checked]] = {}
    for checked in all_checked:
        if checked.verdict.is_accepted():
            key = checked.verdict.job_id, checked.verdict.run_id
            runs.setdefault(key, []).append(checked)
    yield from runs.values()


def _join(run: list[_Checked], validation: Validation) -> None:
    """Compare the traces of tasks with that of their driver, if it is there."""
    drivers = [each for each in run if isinstance(each.side, DriverSide)]
    if len(drivers) != 1:
        return
    driver = drivers[0]
    assert isinstance(driver.side, DriverSide), "it was chosen for that"
    for task in run:
        if task is driver or task.trace is None or task.side is None:
            continue
        identity = task.trace.head["process"]["identity"]
        who = task.verdict.role
        try:
            heard, said = task.side.heard[identity], driver.side.said[identity]
            validation.messages += compare(heard, said, who, "the driver", driver.reach)
        except Refused as refused:
            task.verdict.refuse(refused)
            continue
        try:
            heard, said = driver.side.heard[identity], task.side.said[identity]
            validation.messages += compare(heard, said, f"the driver, of {who},", "it", task.reach)
        except Refused as refused:
            driver.verdict.refuse(refused)
        validation.joined += 1
