"""Goes through a trace line by line: the state of every machine before and after each.

The whole trace is checked once, as `validation` does, and its events are kept with a state for
every few of them, from which the machines take the events between once more: the rows that have
run. A line that the rows do not allow is the last place, with what was wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final

from epochgate.errors import UsageError
from epochgate.fsm.traces.replaying import Event, Refusal, Replay
from epochgate.fsm.traces.states import State, written_state
from epochgate.runtime.tracing.segments import Place, Refused, chain_of, chains, found, opened_trace
from epochgate.runtime.tracing.validation import Verdict, events_of, role, system_of

LINES_MAX: Final = 50_000
"""Lines of a trace that can be gone through; they are kept in memory."""
STATE_EVERY: Final = 200


class TraceUnreadable(UsageError):
    """A trace of which nothing can be gone through."""


@dataclass(frozen=True)
class At:
    """A place: how many lines were taken, the last of them, and the states around it."""

    number: int
    event: Event | None
    where: Place | None
    before: State
    state: State


class Stepper:
    """One trace; its files are the segments of one process. One call at a time, from any thread.

    Raises TraceUnreadable for a trace whose head is refused.
    """

    def __init__(self, files: list[str]) -> None:
        self.name = chain_of(files[0])[1]
        try:
            trace = opened_trace(files)
            self._replay = Replay(system_of(trace))
        except Refused as refused:
            raise TraceUnreadable(f"{refused.place}: {refused.refusal}") from refused
        head = trace.head
        self.about = f"{role(head['process'])} of {head['job_id']}"
        self.events: list[tuple[Place, Event]] = []
        self.refusal: Refusal | None = None
        self.refused_at: Place | None = None
        self.is_cut = False
        """The trace goes on after LINES_MAX lines."""
        self._states: list[tuple[int, State]] = []
        verdict = Verdict(trace.name, files)
        lines = events_of(trace, verdict, self._replay)
        try:
            first = next(lines, None)
            self._begin(head["first"] - 1, head["state"])
            if first is not None:
                self._keep(*first)
            for line in islice(lines, LINES_MAX - 1):
                self._keep(*line)
            self.is_cut = next(lines, None) is not None
        except Refused as refused:
            if not self._states:
                self._begin(head["first"] - 1, head["state"])
            self.refusal, self.refused_at = refused.refusal, refused.place
            self._replay = Replay(system_of(trace))  # an event that failed has left things behind
        self.note = verdict.note

    def _begin(self, number: int, state: State) -> None:
        self._states.append((number, state))

    def _keep(self, place: Place, event: Event) -> None:
        self.events.append((place, event))
        if len(self.events) % STATE_EVERY == 0:
            self._states.append((self._replay.number, written_state(self._replay.system)))

    def at(self, number: int) -> At:
        """Go behind this many lines; the last one behind all. Raises TraceUnreadable."""
        if not 0 <= number <= len(self.events):
            raise TraceUnreadable(f"there is no line {number}: the trace has {len(self.events)}")
        since = max(0, number - 1) // STATE_EVERY
        replay = self._replay
        replay.system.emitted.clear()
        replay.begin(*self._states[since])
        for _, event in self.events[since * STATE_EVERY : max(0, number - 1)]:
            replay.take(event)
        before = written_state(replay.system)
        if not number:
            return At(0, None, None, before, before)
        place, event = self.events[number - 1]
        replay.take(event)
        return At(number, event, place, before, written_state(replay.system))

    def next_of(self, text: str, after: int) -> int | None:
        """The first line behind `after` whose event has this text in its name; None for none."""
        for number, (_, event) in enumerate(self.events[after:], after + 1):
            if text in event.name:
                return number
        return None


def steppers(paths: list[str]) -> list[Stepper]:
    """Each trace at these paths. Raises NoTraces, TraceUnreadable, OSError."""
    return [Stepper(files) for files in chains(found(paths))]
