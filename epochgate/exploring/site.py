"""The pages of an exploration: a place at each URL, and searches that lead to one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from epochgate.exploring.links import View, view_of
from epochgate.exploring.seeking import Seeker
from epochgate.exploring.telling import (
    MACHINES_MAX,
    as_json,
    changed_line,
    differences,
    machines,
)
from epochgate.fsm.checker.exploring import Explorer, Place, Run
from epochgate.fsm.checker.seeking import example
from epochgate.pages import SERVED_POLICY, page
from epochgate.pages.serving import JSON, Answer, NotThere, Request, go_to

PATH_SHOWN = 60
"""Steps of a run that are listed around the present one."""
STARTS_SHOWN = 50
SOUGHT = {"sometimes": "witness", "terminal": "deadlock"}
VERDICTS = {True: "true here", False: "false here", None: "about steps"}


class Site:
    """Answers for one system; `first` is where it begins."""

    def __init__(self, name: str, explorer: Explorer, max_seconds: float, first: View) -> None:
        self._name, self._explorer = name, explorer
        self._seeker = Seeker(explorer, max_seconds)
        self._first = first
        self._lock = threading.Lock()  # the machines are in one place at a time

    def answer(self, request: Request) -> Answer:
        """Answer a request; raises UsageError."""
        if request.path == "/":
            if not request.query and self._first != View():
                return go_to(self._first.link())
            return self._shown(view_of(request), request.query.get("condition", ""))
        if request.path == "/state.json":
            with self._lock:
                place = self._explorer.place(view_of(request).here)
            return Answer(json.dumps(as_json(place)), JSON)
        if request.path == "/search":
            text = request.query.get("condition", "").strip()
            return go_to(self._seeker.condition(text).link(condition=text))
        if request.path == "/claim":
            return go_to(self._seeker.claim(request.query.get("name", "")).link())
        if request.path == "/load":
            text = request.query.get("text", "")
            run = Run(request.number("from", 0), tuple(text.split()))
            return go_to(View(run, len(run.steps)).link())
        raise NotThere(f"there is no page {request.path[:80]}")

    def _shown(self, view: View, condition: str) -> Answer:
        with self._lock:
            place = self._explorer.place(view.here)
            values = self._values(view, place)
        return Answer(page("explore.html", policy=SERVED_POLICY, condition=condition, **values))

    def _values(self, view: View, place: Place) -> dict[str, Any]:
        all_machines = list(machines(place.state, place.last))
        count = len(self._explorer.starts)
        return {
            "system": self._name,
            "constants": list(self._explorer.system.constants.items()),
            "view": view,
            "links": self._links(view),
            "count": len(view.run.steps),
            "last": place.last,
            "changes": [] if place.last is None else differences(place.last),
            "fault": place.fault,
            "possible": list(self._possible(view, place)),
            "left_out": place.left_out,
            "claims": [
                {
                    "held": one,
                    "told": "broken" if one.is_broken else VERDICTS[one.is_so],
                    "link": f"/claim?name={quote(one.claim.name)}",
                    "sought": SOUGHT.get(one.claim.kind, "counterexample"),
                }
                for one in place.claims
            ],
            "machines": all_machines[:MACHINES_MAX],
            "more_machines": max(0, len(all_machines) - MACHINES_MAX),
            "path": list(_path(view)),
            "starts": [
                (number, View(Run(number)).link())
                for number in range(min(count, STARTS_SHOWN) if count > 1 else 0)
            ],
            "starts_count": count,
            "example": example(self._explorer.system),
        }

    def _links(self, view: View) -> dict[str, str]:
        count = len(view.run.steps)

        def to(at: int) -> str:
            moved = View(view.run, at, view.cycle, view.note)
            return moved.link() if 0 <= at <= count and at != view.at else ""

        return {
            "first": to(0),
            "previous": to(view.at - 1),
            "next": to(view.at + 1),
            "last": to(count),
            "here": view.link(),
            "json": view.link("/state.json"),
        }

    def _possible(self, view: View, place: Place) -> Iterator[dict[str, Any]]:
        coming = view.run.steps[view.at : view.at + 1]
        for number, one in enumerate(place.possible, 1):
            yield {
                "number": number,
                "name": one.name,
                "because": one.told.because,
                "link": view.then(one.name).link(),
                "changes": changed_line(one.told),
                "fault": one.fault,
                "is_next": (one.name,) == coming,
            }


def _path(view: View) -> Iterator[dict[str, Any]]:
    """The steps of the run around the present one."""
    first = max(0, view.at - PATH_SHOWN // 2)
    for number, name in enumerate(view.run.steps[first : first + PATH_SHOWN], first + 1):
        yield {
            "number": number,
            "name": name,
            "link": View(view.run, number, view.cycle, view.note).link(),
            "is_now": number == view.at,
            "repeats": view.cycle is not None and number > view.cycle,
        }
