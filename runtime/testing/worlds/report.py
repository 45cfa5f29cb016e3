"""The report of a failure: the claim with the two sides that differ, the steps of the shortest
schedule that show the cause, what was drawn, the word that replays it, and the test to keep.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from textwrap import shorten, wrap
from typing import Final

from epochgate.errors import NegativeResult
from epochgate.runtime.testing.worlds.claims import HEADINGS, ClaimBroken
from epochgate.runtime.testing.worlds.lanes import WIDTH, lanes
from epochgate.runtime.testing.worlds.running import Run
from epochgate.runtime.testing.worlds.searching import Found, token

DETAIL_MAX: Final = 12
"""How many lines of what a claim or assertion adds are shown."""
STATE_MAX: Final = 180
"""How long the values of one of the user's objects are shown."""


class SimulationFailed(AssertionError):
    """A simulated test found a schedule that breaks a claim; the message is the report."""


class Vacuous(NegativeResult, AssertionError):
    """A vacuous claim: what should happen sometimes never did, so that the test says nothing about
    it.
    """

    def __init__(self, name: str, found: Found) -> None:
        super().__init__(vacuous(name, found))


def vacuous(name: str, found: Found) -> str:
    """Tell what never happened, and which faults did."""
    return "\n".join(_vacuous(name, found))


def _vacuous(name: str, found: Found) -> Iterator[str]:
    yield f"{name} is vacuous: in {found.runs} runs these never happened"
    for text in found.never:
        yield f"  sometimes: {text}"
    yield "Faults that happened, and what the job was doing:"
    for line in moments(found):
        yield f"  {line}"
    if found.unmet:
        yield "Faults that could have happened and did not; more runs may meet them:"
        yield from (f"  {line}" for line in by_fault(found.unmet))
    yield "Give it more runs (runs=), let the test provoke it, or correct its condition."


def moments(found: Found) -> list[str]:
    """Each fault with the moments that it has met."""
    return by_fault(found.struck) or ["none"]


def by_fault(points: Collection[tuple[str, str]]) -> list[str]:
    """A line for each fault, with its moments."""
    return [
        f"{fault}: {', '.join(sorted(moment for other, moment in points if other == fault))}"
        for fault in sorted({fault for fault, _ in points})
    ]


def report(name: str, found: Found, *, is_whole: bool = False) -> str:
    """The report of a failure: what shows its cause, or the whole schedule."""
    assert found.failure is not None
    return "\n".join(_report(name, found, found.failure, is_whole))


def _report(name: str, found: Found, failure: Run, is_whole: bool) -> Iterator[str]:
    broken = failure.broken
    assert broken is not None
    yield f"{name}: {HEADINGS[broken.kind]}"
    yield ""
    yield f"  {broken.claim}"
    if broken.place is not None:
        yield f"  claimed at {broken.place}"
    yield from _part("", _detail(broken, is_whole))
    drawn = [f"{label} = {value!r}" for label, value in failure.drawn]
    yield from _part("values drawn:", drawn)
    yield ""
    if failure.trace:
        yield f"the shortest schedule found has {_size(failure)}:"
        yield from lanes(failure, is_whole)
        yield ""
    if failure.own:
        yield "the state of your objects at that point:"
        yield from _own(failure, is_whole)
        yield ""
    replay, *kept = replayed_by(name, failure, found.node)
    yield replay
    if not is_whole:
        yield "whole     the same with --epochgate-whole: every step, with the rows of the machines"
    if found.first is not None and found.tries and found.first.deviations != failure.deviations:
        yield (
            f"found     by run {found.runs} (--epochgate-seed={found.seed}), which had "
            f"{_size(found.first)}; shrunk in {found.tries} runs"
        )
    yield from kept


def _part(heading: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        if heading:
            yield heading
        yield from (f"  {line}" for line in lines)


def _detail(broken: ClaimBroken, is_whole: bool) -> list[str]:
    """The difference of what was expected and what was seen. Sides by name say more than what
    pytest has made of an assertion.
    """
    lines = broken.detail.split("\n") if broken.detail not in ("", broken.claim) else []
    sides = [] if broken.sides is None else list(broken.sides.lines())
    if broken.kind == "assertion" and sides:
        by_pytest = [n for n, line in enumerate(lines) if line.startswith("assert ")]
        lines = lines[: by_pytest[0]] if by_pytest else lines
        lines = [line for line in lines if line != broken.claim]
    told = [line for line in lines if line or not sides]
    return [*_limited(told, None if is_whole else DETAIL_MAX, "line"), *sides]


def _limited(lines: Sequence[str], most: int | None, noun: str) -> list[str]:
    if most is None or len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], f"  … and {_count(len(lines) - most + 1, f'more {noun}')}"]


def replayed_by(name: str, failure: Run, node: str) -> list[str]:
    """Tell how a schedule is run again, and kept as a test."""
    word = token(failure)
    return [
        f"replay    pytest {node or '...'} --epochgate-replay={word}",
        "keep      beside the test, with `from epochgate.testing import replay`:",
        f"              test_{_short_name(name)}_again = replay({_last(name)}, {word!r})",
    ]


def _own(failure: Run, is_whole: bool) -> Iterator[str]:
    width = max(map(len, failure.own)) + 2
    for name, values in failure.own.items():
        told = "; ".join(f"{key} = {value}" for key, value in values.items())
        kept = told if is_whole else shorten(told, STATE_MAX, placeholder=" …")
        lines = wrap(kept, WIDTH - width) or [""]
        for label, line in zip_longest([name], lines, fillvalue=""):
            yield f"  {label.ljust(width)}{line}"


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _short_name(name: str) -> str:
    return _last(name).removeprefix("test_")


def _size(one: Run) -> str:
    faults = one.faults
    others = len(one.deviations) - faults
    return (
        f"{_count(faults, 'fault')} and {_count(others, 'deviation')} from the default order, "
        f"in {_count(one.steps, 'step')}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def broken_text(broken: ClaimBroken) -> str:
    """One line."""
    return f"{HEADINGS[broken.kind]}: {broken.claim}"
