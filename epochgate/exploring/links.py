"""The links of an exploration: a run, and the place in it that is looked at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from urllib.parse import quote, urlencode

from epochgate.errors import UsageError
from epochgate.fsm.checker.exploring import Run
from epochgate.pages.serving import Request

BETWEEN = "~"
"""Stands between the steps of a run: no name of a step has it, and a URL as it is."""
STEPS_MAX = 5000


@dataclass(frozen=True)
class View:
    """A run, of which the first `at` steps are taken; `cycle`: from there on it repeats for ever.
    `note` is shown above it.
    """

    run: Run = field(default_factory=Run)
    at: int = 0
    cycle: int | None = None
    note: str = ""

    @property
    def here(self) -> Run:
        """The run up to what is looked at."""
        return self.run.up_to(self.at)

    def then(self, step: str) -> View:
        """The place after one more step: the next of the run if it is that one, or of another."""
        if self.run.steps[self.at : self.at + 1] == (step,):
            return replace(self, at=self.at + 1)
        return View(self.here.then(step), self.at + 1)

    def link(self, path: str = "/", **more: str) -> str:
        """The URL that leads here."""
        values = {
            "from": str(self.run.start) if self.run.start else "",
            "run": BETWEEN.join(self.run.steps),
            "at": str(self.at),
            "cycle": "" if self.cycle is None else str(self.cycle),
            "note": self.note,
            **more,
        }
        query = urlencode({k: v for k, v in values.items() if v}, safe="[](),~", quote_via=quote)
        return f"{path}?{query}"


def view_of(request: Request) -> View:
    """The run and the place that a URL names; raises UsageError."""
    text = request.query.get("run", "")
    steps = tuple(text.split(BETWEEN)) if text else ()
    if len(steps) > STEPS_MAX:
        raise UsageError(f"a link has at most {STEPS_MAX} steps, and this one has {len(steps)}")
    at = request.number("at", len(steps))
    if at > len(steps):
        raise UsageError(f"at is {at}, and the run has {len(steps)} steps")
    cycle = request.number("cycle", 0) if "cycle" in request.query else None
    return View(Run(request.number("from", 0), steps), at, cycle, request.query.get("note", ""))
