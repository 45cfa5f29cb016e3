"""The pages of traces that jobs have written, and the same in the terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

from epochgate.exploring.telling import MACHINES_MAX, brief, machines_of
from epochgate.fsm.checker.result import changes
from epochgate.pages import SERVED_POLICY, page
from epochgate.pages.serving import Answer, NotThere, Request, go_to
from epochgate.reports.messages import parts_that_differ
from epochgate.runtime.tracing.stepping import At, Stepper

EVENTS_SHOWN = 30
HELP = """\
  b, f             one line back, or forward; `first` and `last` the ends
  go 12            behind this line
  s                the state of each machine
  / NAME           to the next event with this in its name
  ?, q             this help, and the end"""


def called(event: Any) -> str:
    """An event with its arguments; … stands for what a trace does not hold."""
    arguments = ", ".join("…" if one is None else str(one) for one in event.arguments)
    times = f", {event.times} times" if event.times > 1 else ""
    return f"{event.name}({arguments}){times}"


def effects(event: Any) -> list[str]:
    """The effects of an event."""
    return [
        f"{name}({', '.join('…' if one is None else str(one) for one in values)})"
        for name, *values in event.effects
    ]


def differences(at: At) -> list[tuple[str, str, str]]:
    """The places that the line changed, with what each was and is."""
    return [
        (place, brief(was), brief(now))
        for field, (before, after) in changes(at.before, at.state).items()
        for place, was, now in parts_that_differ(field, before, after)
    ]


class TraceSite:
    """Answers for some traces, each by its number."""

    def __init__(self, traces: list[Stepper]) -> None:
        self._traces = traces
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Answer:
        """Answer a request; raises UsageError."""
        number = request.number("trace", 0)
        if number >= len(self._traces):
            raise NotThere(f"there is no trace {number}; there are {len(self._traces)}")
        trace, at = self._traces[number], request.number("at", 0)
        if request.path == "/find":
            name = request.query.get("name", "")
            there = trace.next_of(name, at)
            note = "" if there else f"&missing={len(name)}"
            return go_to(f"/?trace={number}&at={there or at}{note}")
        if request.path != "/":
            raise NotThere(f"there is no page {request.path[:80]}")
        with self._lock:
            place = trace.at(at)
        is_missing = "missing" in request.query
        return Answer(page("trace.html", **self._values(number, trace, place, is_missing)))

    def _values(self, number: int, trace: Stepper, place: At, is_missing: bool) -> dict[str, Any]:
        count = len(trace.events)

        def to(at: int) -> str:
            is_there = 0 <= at <= count and at != place.number
            return f"/?trace={number}&at={at}" if is_there else ""

        changed = changes(place.before, place.state)
        acting = "" if place.event is None else place.event.name.rpartition(".")[0]
        cards = list(machines_of(place.state, changed, acting))
        first = max(0, place.number - EVENTS_SHOWN // 2)
        return {
            "policy": SERVED_POLICY,
            "trace": trace,
            "number": number,
            "traces": [(f"/?trace={n}&at=0", one.name) for n, one in enumerate(self._traces)],
            "place": place,
            "count": count,
            "links": {
                "first": to(0),
                "previous": to(place.number - 1),
                "next": to(place.number + 1),
                "last": to(count),
            },
            "called": "" if place.event is None else called(place.event),
            "effects": [] if place.event is None else effects(place.event),
            "changes": differences(place),
            "is_missing": is_missing,
            "refusal": trace.refusal if place.number == count else None,
            "events": [
                (n, f"/?trace={number}&at={n}", called(event))
                for n, (_, event) in enumerate(
                    trace.events[first : first + EVENTS_SHOWN], first + 1
                )
            ],
            "machines": cards[:MACHINES_MAX],
            "more_machines": max(0, len(cards) - MACHINES_MAX),
        }


def in_terminal(trace: Stepper, lines: Iterable[str]) -> Iterator[str]:
    """Answer each line, up to one that ends it."""
    at = trace.at(0)
    yield f"{trace.name}: {trace.about}, {len(trace.events)} lines"
    yield "? explains the commands"
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        count = len(trace.events)
        moves = {"b": at.number - 1, "f": at.number + 1, "first": 0, "last": count}
        to = int(rest) if word == "go" and rest.isdecimal() else moves.get(word)
        if word == "q":
            return
        if line.startswith("/"):
            to = trace.next_of(line[1:].strip(), at.number)
            if to is None:
                yield "no later event has this in its name"
                continue
        if to is not None and 0 <= to <= count:
            at = trace.at(to)
            yield from _told(trace, at)
        elif to is not None:
            yield f"the trace has {count} lines"
        elif word == "s":
            for one in machines_of(at.state, changes(at.before, at.state), ""):
                held = ", ".join(f"{field['name']} {field['now']}" for field in one["fields"])
                state = one["state"]["now"] if one["state"] else ""
                yield f"  {one['name']}: {', '.join(filter(None, (state, held)))}"
        else:
            yield from HELP.splitlines()


def _told(trace: Stepper, at: At) -> Iterator[str]:
    count = len(trace.events)
    if at.event is None:
        yield f"line 0 of {count}: the state at the beginning"
    else:
        yield f"line {at.number} of {count}: {called(at.event)} at {at.event.now_s:g} s, {at.where}"
        yield from (f"  {place}: {was} → {now}" for place, was, now in differences(at))
        yield from (f"  effect {one}" for one in effects(at.event))
    if trace.refusal is not None and at.number == count:
        yield f"  REFUSED {trace.refused_at}: {trace.refusal} [{trace.refusal.kind}]"
        yield from (f"    {detail}" for detail in trace.refusal.details)
