"""An exploration in the terminal: a line is a command, and its answer a place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from epochgate.errors import UsageError
from epochgate.exploring.links import View
from epochgate.exploring.seeking import Seeker
from epochgate.exploring.site import VERDICTS
from epochgate.exploring.telling import changed_line, machines
from epochgate.fsm.checker.exploring import Explorer, Place

HELP = """\
  3                take the third of the possible steps
  NAME             take the step of this name
  b, f             one step back, or forward in the run; `first` and `last` its ends
  go 12            to this step of the run
  s                the state of each machine
  c                the claims; `c NAME` goes to the counterexample or the witness of one
  / CONDITION      go to the nearest state in which the condition holds
  run              the names of the steps taken, which --load reads
  ?, q             this help, and the end"""


class Terminal:
    """Answers commands about one system."""

    def __init__(self, explorer: Explorer, max_seconds: float, first: View) -> None:
        self._explorer, self._view = explorer, first
        self._seeker = Seeker(explorer, max_seconds)
        self._place = explorer.place(first.here)

    def told(self, lines: Iterable[str]) -> Iterator[str]:
        """Answer each line, up to one that ends it."""
        yield from self._here()
        yield "? explains the commands"
        for line in lines:
            word, _, rest = line.strip().partition(" ")
            if word in ("q", "quit", "exit"):
                return
            try:
                yield from self._answer(word, rest.strip(), line.strip())
            except UsageError as error:
                yield from str(error).splitlines()

    def _answer(self, word: str, rest: str, line: str) -> Iterator[str]:
        count, at = len(self._view.run.steps), self._view.at
        moves = {"b": at - 1, "f": at + 1, "first": 0, "last": count}
        if word == "?":
            return iter(HELP.splitlines())
        if word == "s":
            return self._state()
        if word == "run":
            return iter(self._view.here.steps or ("no step was taken",))
        if word == "c" and not rest:
            return self._claims()
        if word == "c":
            return self._go(self._seeker.claim(rest))
        if line.startswith("/"):
            return self._go(self._seeker.condition(line[1:].strip()))
        if word == "go" and rest.isdecimal():
            return self._move(int(rest))
        if word in moves:
            return self._move(moves[word])
        if word.isdecimal():
            return self._take(int(word))
        return self._go(self._view.then(line)) if line else self._here()

    def _move(self, at: int) -> Iterator[str]:
        count = len(self._view.run.steps)
        if not 0 <= at <= count:
            return iter((f"the run has {count} steps",))
        return self._go(replace(self._view, at=at, note=""))

    def _take(self, number: int) -> Iterator[str]:
        if not 1 <= number <= len(self._place.possible):
            return iter((f"{len(self._place.possible)} steps are possible here",))
        return self._go(self._view.then(self._place.possible[number - 1].name))

    def _go(self, view: View) -> Iterator[str]:
        place = self._explorer.place(view.here)
        self._view, self._place = view, place
        return self._here()

    def _here(self) -> Iterator[str]:
        view, place = self._view, self._place
        if view.note:
            yield view.note
        yield from _led_here(view, place)
        broken = [one.claim.claim for one in place.claims if one.is_broken]
        yield from (f"  BROKEN {claim}" for claim in broken)
        if place.fault:
            yield f"  FAULT {place.fault}: no step is possible after it"
        elif not place.possible:
            yield "  no step is possible"
        for number, one in enumerate(place.possible, 1):
            yield f"  {number:3} {one.name}: {one.told.because}"
            yield f"      {one.fault or changed_line(one.told)}"
        if place.left_out:
            yield f"      and {place.left_out:,} more ways to take a step"

    def _state(self) -> Iterator[str]:
        for one in machines(self._place.state, self._place.last):
            fields = chain([one["state"]] if one["state"] else [], one["fields"])
            held = ", ".join(f"{field['name']} {field['now']}" for field in fields)
            yield f"  {one['name']}: {held}"

    def _claims(self) -> Iterator[str]:
        for one in self._place.claims:
            told = "broken" if one.is_broken else VERDICTS[one.is_so]
            yield f"  {one.claim.name}: {one.claim.kind}, {one.claim.claim} ({told})"


def _led_here(view: View, place: Place) -> Iterator[str]:
    where = f"step {view.at} of {len(view.run.steps)}"
    if place.last is None:
        yield f"{where}: initial state {view.run.start}"
    else:
        yield f"{where}: {place.last.label}: {place.last.because}"
        yield f"  {changed_line(place.last)}"
