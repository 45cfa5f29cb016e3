"""Looks for a run that breaks a claim: the default schedule first, then many at random.

A search is only worth what its runs are repeatable: the first is run twice, and a difference is an
error of its own.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from epochgate.errors import UsageError
from epochgate.fsm import Row
from epochgate.runtime.testing.worlds.data import (
    Draws,
    FirstDraw,
    NoOutcome,
    packed,
    unpacked,
)
from epochgate.runtime.testing.worlds.escapes import Escapes, guarded
from epochgate.runtime.testing.worlds.faults import FAULTS
from epochgate.runtime.testing.worlds.motion import WorldMisused
from epochgate.runtime.testing.worlds.running import Body, Run, run
from epochgate.runtime.testing.worlds.schedule import (
    ORDERS,
    At,
    AtRandom,
    Choosing,
    Deviation,
    Listed,
    Looking,
    TokenMalformed,
    deviations_of,
    token_of,
)
from epochgate.runtime.testing.worlds.shrinking import Shrinking, is_like
from epochgate.runtime.testing.worlds.trace import Keeps

VALUES_TRIES_MAX: Final = 100
"""How often values are drawn until a run accepts them."""

REACH_TRIES: Final = 12
"""With how many other values the default schedule is run to see how long a run can be: a list that
is drawn may be empty, and faults are aimed at steps that there are.
"""

_now_s = time.monotonic


class NotRepeatable(UsageError):
    """Two runs of the same schedule differ."""


class NotReplayed(UsageError, AssertionError):
    """A replayed run held all claims, and did not do what its token says."""


@dataclass
class Found:
    """The outcome of a search, over all its runs; `node` is pytest's name of the test."""

    node: str = ""
    runs: int = 0
    seeds: int = 0
    """How many seeds were tried, beside the default schedule; a seed whose draws the test refuses
    has no run.
    """
    steps: int = 0
    seconds: float = 0.0
    failure: Run | None = None
    """The shrunk run that fails."""
    first: Run | None = None
    """The run that failed first, before it was shrunk."""
    seed: int = 0
    """Of the run that failed first."""
    tries: int = 0
    """How many runs shrinking took."""
    missed: str = ""
    """What a replayed run did not do of what its token says."""
    taken: set[tuple[str, str, Row]] = field(default_factory=set)
    struck: set[tuple[str, str]] = field(default_factory=set)
    points: set[tuple[str, str]] = field(default_factory=set)
    """Each fault that could strike in the default schedule, with what the job was doing."""
    reached: dict[str, bool] = field(default_factory=dict)
    is_part: bool = False
    """Whether there were fewer runs than the test says, so that `sometimes` is not judged."""

    def add(self, one: Run) -> None:
        """Count a run."""
        self.runs += 1
        self.steps += one.steps
        self.taken |= one.taken
        self.struck |= one.struck
        for text, has_come_true in one.reached.items():
            self.reached[text] = self.reached.get(text, False) or has_come_true

    @property
    def has_passed(self) -> bool:
        """True if nothing was found, and nothing is vacuous as far as that is judged."""
        return self.failure is None and (self.is_part or not self.never)

    @property
    def unmet(self) -> set[tuple[str, str]]:
        """The points at which a fault could strike, and struck in no run."""
        return self.points - self.struck

    @property
    def never(self) -> list[str]:
        """The texts of what should happen sometimes and never did."""
        return [text for text, has_come_true in self.reached.items() if not has_come_true]


def parsed(word: str) -> tuple[list[Deviation], bytes]:
    """The deviations and the drawn values that a token names; raises TokenMalformed."""
    schedule, _, drawn = word.partition("+")
    deviations = deviations_of(schedule)
    for one in deviations:
        if one.what not in (*ORDERS, *FAULTS):
            raise TokenMalformed(
                f"{one.what!r} in the token {word!r} is neither a fault nor a change of order; "
                f"there are {', '.join((*ORDERS, *FAULTS))}"
            )
    try:
        values = unpacked(drawn)
    except ValueError as error:
        raise TokenMalformed(
            f"{drawn!r} behind the + of the token holds no drawn values: copy the token as it is"
        ) from error
    return deviations, values


def missed(one: Run, deviations: list[Deviation], values: bytes) -> str:
    """Tell what a run did not do of a schedule, in words."""
    absent = [str(each) for each in deviations if each not in one.deviations]
    if absent:
        return f"the deviation{'s' * (len(absent) > 1)} {', '.join(absent)} did not happen"
    if not one.values.startswith(values):
        return "the values of the token were not drawn"
    return ""


def token(one: Run) -> str:
    """One word that replays a run: its schedule, and behind `+` what was drawn."""
    drawn = packed(one.values)
    return token_of(one.deviations) + (f"+{drawn}" if drawn else "")


@dataclass
class Search:
    """Searches the runs of one test; `kinds` are the deviations that may happen."""

    body: Body
    kinds: tuple[str, ...]
    faults_max: int
    node: str = ""
    draws_values: bool = field(default=False, init=False)
    """Whether a run has drawn a value; from then on Hypothesis begins each run."""

    def at_random(
        self,
        runs: int,
        seed: int,
        seconds: float | None = None,
        progress: Callable[[], None] | None = None,
    ) -> Found:
        """Run the default schedule, then one for each seed from `seed` on, until there were `runs`
        or the seconds have passed, and shrink the first failure. Raises NotRepeatable.
        """
        found = self.scan(range(seed, seed + runs - 1), seconds, progress)
        if found.first is not None:
            self._shrink(found)
        return found

    def scan(
        self,
        seeds: Iterable[int],
        seconds: float | None = None,
        progress: Callable[[], None] | None = None,
    ) -> Found:
        """Run the default schedule, and one for each seed, up to the first that fails, which is not
        shrunk. Raises NotRepeatable.
        """
        found, began_s = Found(self.node), _now_s()
        with guarded() as escapes, silent():
            steps = self._reach(self._default(found, escapes), found, escapes)
            for number in seeds:
                if found.first is not None or self._is_late(began_s, seconds):
                    break
                self._one_at_random(number, steps, found, escapes)
                found.seeds += 1
                if progress is not None:
                    progress()
        insist_on_a_job(found)
        found.seconds = _now_s() - began_s
        return found

    def _shrink(self, found: Found) -> None:
        assert found.first is not None
        began_s = _now_s()
        with guarded() as escapes:
            with silent():
                shrinking = Shrinking(lambda schedule, draws: self.listed(schedule, draws, escapes))
                found.failure = shrinking.shrunk(found.first)
            found.tries = shrinking.tries
        self.show(found)
        found.seconds += _now_s() - began_s

    def show(self, found: Found) -> None:
        """Run the failure that a search has found once more, for what it logs, and with what the
        user's objects have behind each step.
        """
        assert found.failure is not None
        again = self.replay(token(found.failure)).failure
        if again is not None and is_like(again, found.failure):
            found.failure = again

    def _is_late(self, began_s: float, seconds: float | None) -> bool:
        return seconds is not None and _now_s() - began_s > seconds

    def _default(self, found: Found, escapes: Escapes) -> Run:
        """The default schedule, twice."""
        for attempt in range(VALUES_TRIES_MAX):
            one = self.listed([], Draws(attempt), escapes)
            if one is not None:
                self._insist_on_repeat(one, self._look(found, attempt, escapes))
                self._add(one, found, attempt)
                return one
        raise WorldMisused(
            f"none of {VALUES_TRIES_MAX} runs came to an end: what is drawn is refused each time, "
            "by `assume` or `filter`; draw values that are right from the beginning"
        )

    def _reach(self, longest: Run, found: Found, escapes: Escapes) -> list[At]:
        """The steps of the longest of some runs of the default schedule; the same for all seeds, so
        that a seed alone is what it is among others.
        """
        for attempt in range(REACH_TRIES if longest.drawn else 0):
            if found.first is not None:
                break
            one = self._look(found, attempt, escapes)
            if one is None:
                continue
            if one.broken is not None:
                self._add(one, found, attempt)
            if len(one.moments) > len(longest.moments):
                longest = one
        return longest.moments

    def _look(self, found: Found, attempt: int, escapes: Escapes) -> Run | None:
        """Run the default schedule, and see at which points faults could strike."""
        looking = Looking(self.kinds)

        def afresh() -> Choosing:
            nonlocal looking
            looking = Looking(self.kinds)
            return looking

        one = self._run(afresh, Draws(attempt), escapes)
        found.points |= looking.points
        return one

    def _one_at_random(self, seed: int, steps: list[At], found: Found, escapes: Escapes) -> None:
        def choosing() -> Choosing:
            return AtRandom(seed, self.faults_max, steps, self.kinds)

        one = self._run(choosing, Draws(seed), escapes)
        if one is not None:
            self._add(one, found, seed)

    def _add(self, one: Run, found: Found, seed: int) -> None:
        found.add(one)
        if one.broken is not None:
            found.seed, found.first = seed, one

    def replay(self, word: str, keeps: Keeps = "own") -> Found:
        """Run what a token says, without shrinking; raises TokenMalformed. `keeps`: what the trace
        has behind each step.
        """
        deviations, values = parsed(word)
        found = Found(self.node)
        with guarded() as escapes:
            try:
                one = self.once(lambda: Listed(deviations), Draws(0, values), escapes, True, keeps)
            except NoOutcome:
                found.missed = "the test refuses the values that are drawn"
                return found
        found.add(one)
        if one.broken is not None:
            found.failure = found.first = one
        else:
            found.missed = missed(one, deviations, values)
        return found

    def listed(self, deviations: list[Deviation], drawing: Draws, escapes: Escapes) -> Run | None:
        """Run one schedule; None without an outcome."""
        return self._run(lambda: Listed(deviations), drawing, escapes)

    def _run(
        self, makes_choosing: Callable[[], Choosing], drawing: Draws, escapes: Escapes
    ) -> Run | None:
        try:
            return self.once(makes_choosing, drawing, escapes)
        except NoOutcome:
            return None

    def once(
        self,
        makes_choosing: Callable[[], Choosing],
        draws: Draws,
        escapes: Escapes,
        keeps_values: bool = False,
        keeps: Keeps = "nothing",
    ) -> Run:
        """Run the test once, by Hypothesis if it draws; `keeps_values` also of a run that holds all
        claims. Raises NoOutcome, and what `run` raises.
        """

        def act() -> Run:
            return run(self.body, makes_choosing(), draws, escapes, keeps=keeps)

        if not self.draws_values:
            try:
                return act()
            except FirstDraw:
                self.draws_values = True
        one, values = draws.around(act, lambda one: keeps_values or one.broken is not None)
        one.values = values
        return one

    def _insist_on_repeat(self, one: Run, again: Run | None) -> None:
        if again is None:
            raise NotRepeatable("a run had an outcome, and the same run once more had none")
        if (difference := first_difference(one, again)) is not None:
            raise NotRepeatable(difference)


def insist_on_a_job(found: Found) -> None:
    """Raise WorldMisused if there were runs and none of them had a job: such a test claims nothing
    of anything.
    """
    if found.runs and found.first is None and not found.taken:
        raise WorldMisused(
            f"the test has made no job in {found.runs} run{'s' * (found.runs > 1)}: begin with "
            "world.job(...), world.pipeline(...), or a suite such as agree(world, ...)"
        )


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Log nothing of hundreds of runs; the one that is reported is run once more, with its log."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


def first_difference(one: Run, again: Run) -> str | None:
    """Tell where two runs of the same schedule part, in words; None if they do not."""
    last = "the beginning"
    for before, after in zip_longest(one.trace, again.trace):
        if str(before) != str(after) or before.rows != after.rows:
            return (
                f"the same schedule was run twice, and the runs differ after {last}:\n"
                f"  first   {_with_rows(before)}\n  again   {_with_rows(after)}\n"
                "Something that user code does depends on more than its calls: the order of a set, "
                "an id or a hash of an object, a global or class variable that outlives a run, a "
                "file, or a clock behind a library. Make it depend on what it is told alone, or "
                "begin afresh in each run of the test's body"
            )
        last = f"step {before}"
    return None


def _with_rows(happening: Any) -> str:
    if happening is None:
        return "has ended"
    rows = "; ".join(map(str, happening.rows))
    return f"{happening}" + (f" [{rows}]" if rows else "")
