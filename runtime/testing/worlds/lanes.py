"""A schedule in lanes, one for each side: all of its steps, or those that show the cause of a
failure, as many as fit. Decides which these are.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, pairwise
from textwrap import shorten, wrap
from typing import Final

from epochgate.runtime.testing.worlds.differences import members_in
from epochgate.runtime.testing.worlds.running import Run
from epochgate.runtime.testing.worlds.trace import TEST, Happening

WIDTH: Final = 100
LINES_MAX: Final = 25
"""How many lines of steps a report has, unless the whole schedule is asked for."""
TRIED_MAX: Final = 300
"""How many steps are tried for a place."""
FILLED: Final = 18
"""Up to how many lines steps are shown that user code has nothing to do with."""
NEAR: Final = 5
"""How many calls of user code, and how many of its steps, are shown around the first deviation and
the last step of the trail, before others have a place.
"""
BEFORE: Final = 16
"""How many steps before the last of the trail a call of the same side is looked for."""
TRAIL_MAX: Final = 3
"""How many steps are shown of the trail: the last that changed what one side of the claim lacks."""
TIMER_MIN: Final = 4
"""At how many different times a step is to come again, to be taken for the work of a timer."""
OF_USER: Final = re.compile(
    r"(receives|sends) .*event |is aborted|decline of checkpoint|opens split|notice that checkpoint"
)
DECISIVE: Final = re.compile(r"receives .*(barrier|acknowledgement) of checkpoint|state to restore")
ROUTINE: Final = re.compile(r"\.handle_")
"""The calls that a timer may well repeat."""
FIGURE: Final = re.compile(r"\d+")


def lanes(one: Run, is_whole: bool = False) -> Iterator[str]:
    """The steps in columns, one for each lane; `is_whole`: each of them, with the rows that the
    machines took.
    """
    drawing = _Drawing(one, is_whole)
    if is_whole:
        yield from drawing.lines(set(range(len(one.trace))))
        return
    shown: set[int] = set()
    for positions, most in ((drawing.telling(), LINES_MAX), (drawing.others(), FILLED)):
        for position in islice(positions, TRIED_MAX):
            if position not in shown and drawing.size(shown | {position}) <= most:
                shown.add(position)
    yield from drawing.lines(shown)


def lanes_of(trace: Sequence[Happening]) -> list[str]:
    """The lanes of a trace: the test, the driver, the tasks, the store."""
    present = {happening.lane for happening in trace}
    tasks = sorted(lane for lane in present if lane.startswith("task "))
    return [lane for lane in (TEST, "driver", *tasks, "store") if lane in present]


class _Drawing:
    """The steps of one run, and what each of them is worth."""

    def __init__(self, one: Run, is_whole: bool) -> None:
        self.one, self.trace, self._is_whole = one, one.trace, is_whole
        self.names = lanes_of(one.trace)
        self.width = max(18, (WIDTH - 10) // len(self.names) - 2)
        sides = one.broken.sides if one.broken is not None else None
        self.odd = Counter[str]() if sides is None else sides.odd
        self.shapes = [FIGURE.sub("#", f"{each.lane} {each.text}") for each in one.trace]
        times: defaultdict[str, set[float]] = defaultdict(set)
        for shape, happening in zip(self.shapes, one.trace, strict=True):
            times[shape].add(happening.now_s)
        self._timed = {shape for shape, when in times.items() if len(when) >= TIMER_MIN}

    # which steps are shown

    def telling(self) -> Iterator[int]:
        """The steps that are worth a place, the most telling first."""
        end = len(self.trace) - 1
        struck = [n for n, one in enumerate(self.trace) if one.deviation is not None]
        struck = struck or [n for n, one in enumerate(self.trace) if one.is_fault]
        telling = [n for n in range(end + 1) if self._is_telling(n)]
        trail = self._trail()
        around = [*struck[:1], *trail[-1:]] or [end]
        near = sorted(telling, key=lambda n: (_distance(n, around), n))
        calling = [n for n in near if self.trace[n].calls]
        tests = [n for n, one in enumerate(self.trace) if one.lane == TEST]
        yield from struck
        yield from reversed(trail)
        yield from self._just_before(trail)
        yield from reversed([n for n in telling if self.trace[n].is_telling])
        yield from calling[:NEAR]
        yield from sorted(tests, key=lambda n: _distance(n, around))[:NEAR]
        yield from near[:NEAR]
        yield from reversed(tests)
        yield from reversed(telling)

    def others(self) -> Iterator[int]:
        """Snapshots, restores and all that no timer repeats, the last one first."""
        backwards = range(len(self.trace) - 1, -1, -1)
        yield from (n for n in backwards if DECISIVE.search(self.trace[n].text))
        yield from (n for n in backwards if not self._is_timed(n))

    def _just_before(self, trail: list[int]) -> list[int]:
        """The call of the same side that came before the last step of the trail: the snapshot
        before a notice, for instance.
        """
        if not trail:
            return []
        side = self.trace[trail[-1]].lane
        before = range(max(0, trail[-1] - BEFORE), trail[-1])
        return [n for n in before if self.trace[n].calls and self.trace[n].lane == side][-1:]

    def _trail(self) -> list[int]:
        """The last steps that changed what one side of the claim has and the other has not: by the
        first of it, then by all; as members of collections, then as values.
        """
        for kind in ("members", "values"):
            for wanted in (Counter(list(self.odd)[:1]), self.odd):
                found = [
                    n
                    for n, one in enumerate(self.trace)
                    if any(members_in(getattr(each, kind), wanted) for each in one.changes)
                ]
                if found:
                    return found[-TRAIL_MAX:]
        return []

    def _is_telling(self, position: int) -> bool:
        """Return whether user code has to do with a step, and no timer repeats it."""
        one = self.trace[position]
        is_of_user = bool(one.calls or _told(one) or OF_USER.search(one.text))
        return one.is_telling or (is_of_user and not self._is_timed(position))

    def _is_timed(self, position: int) -> bool:
        calls = (call.text for call in self.trace[position].calls)
        return self.shapes[position] in self._timed and all(map(ROUTINE.search, calls))

    # how they are drawn

    def size(self, shown: set[int]) -> int:
        """Return how many lines these steps take, with those that count the others."""
        ends = [-1, *sorted(shown), len(self.trace)]
        gaps = sum(one + 1 < after for one, after in pairwise(ends))
        return len(self._head()) + gaps + sum(len(self._step(position)) for position in shown) + 1

    def _head(self) -> list[str]:
        return [
            "  step  " + "  ".join(name.ljust(self.width) for name in self.names).rstrip(),
            "  ────  " + "  ".join("─" * self.width for _ in self.names),
        ]

    def lines(self, shown: set[int]) -> Iterator[str]:
        """These steps; the others are counted, with what came most often among them."""
        yield from self._head()
        left_out: list[int] = []
        for position in range(len(self.trace)):
            if position not in shown:
                left_out.append(position)
                continue
            yield from self._folded(left_out)
            left_out = []
            yield from self._step(position)
        yield from self._folded(left_out)
        if self.one.broken is not None:
            yield f"     ✗  {self.one.broken.claim}"

    def _folded(self, left_out: list[int]) -> Iterator[str]:
        """Count the steps that are left out, and name the most frequent; a single one that takes no
        more room is shown.
        """
        if not left_out:
            return
        count = len(left_out)
        if count == 1 and len(only := self._step(left_out[0])) == 1:
            yield from only
            return
        told = f"        ⋮ {count} step{'s' * (count > 1)} by the default schedule"
        shape, times = Counter(self.shapes[position] for position in left_out).most_common(1)[0]
        like = next(self.trace[position] for position in left_out if self.shapes[position] == shape)
        often = f", {times} of them like: {like.lane} {like.text}" if times >= TIMER_MIN else ""
        yield told + often

    def _step(self, position: int) -> list[str]:
        """The lines of one step."""
        happening = self.trace[position]
        indent = " " * (self.names.index(happening.lane) * (self.width + 2))
        room = max(self.width, WIDTH + 18 - 8 - len(indent))
        mark = "*" if happening.deviation is not None else " "
        first, *others = wrap(happening.text, room) or [""]
        lines = ["{}{:>6} {}{}".format(mark, "{}:{}".format(*happening.at), indent, first)]
        lines += [f"        {indent}{line}" for line in others]
        told = [f"calls {call.text}" for call in happening.calls] + _told(happening, self.odd)
        below = ["; ".join(told)] if told else []
        if self._is_whole:
            below += map(str, happening.rows)
        for text in below:
            kept = text if self._is_whole else shorten(text, 2 * room - 8, placeholder=" …")
            wrapped = wrap(kept, room - 2, subsequent_indent="  ")
            lines += [f"        {indent}  {line}" for line in wrapped]
        return lines


def _distance(position: int, around: Sequence[int]) -> int:
    """Return how far a step is from the nearest of others; those behind it count as nearer."""
    return min(position - one if position >= one else 3 * (one - position) for one in around)


def _told(happening: Happening, odd: Collection[str] = ()) -> list[str]:
    """The changes of a step; the values with which an object begins stand in its call."""
    return [one.told(odd) for one in happening.changes if one.before or not happening.calls]
