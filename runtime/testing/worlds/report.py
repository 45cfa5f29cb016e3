"""The report of a failure: the claim, the shortest schedule in lanes with the rows that both sides
took, what was drawn, the word that replays it, and the test to keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from epochgate.errors import NegativeResult
from epochgate.runtime.testing.worlds.claims import HEADINGS, ClaimBroken
from epochgate.runtime.testing.worlds.running import Run
from epochgate.runtime.testing.worlds.searching import Found, token
from epochgate.runtime.testing.worlds.trace import TEST, Happening

WIDTH: Final = 100
ROWS_AT_END: Final = 3
"""Of how many of the last steps the rows are shown, beside those at deviations."""
AROUND: Final = 12
"""How many steps are shown before the end, and after each deviation."""
DECISIVE: Final = re.compile(r"receives .*(barrier|acknowledgement) of checkpoint|state to restore")
DECISIVE_MAX: Final = 8
"""How many of the last snapshots and restores are shown."""
OF_USER: Final = re.compile(
    r"(receives|sends) .*event |is aborted|decline of checkpoint|opens split"
)
OF_USER_MAX: Final = 24
"""How many of the last steps are shown that call the user's code on the driver, carry an event or
tell of an abort.
"""


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
    yield "Give it more runs (runs=), let the test provoke it, or correct its condition."


def moments(found: Found) -> list[str]:
    """Each fault with the moments that it has met."""
    faults = sorted({fault for fault, _ in found.struck})
    return [
        f"{fault}: {', '.join(sorted(moment for other, moment in found.struck if other == fault))}"
        for fault in faults
    ] or ["none"]


def report(name: str, found: Found) -> str:
    """The report of a failure."""
    assert found.failure is not None
    return "\n".join(_report(name, found, found.failure))


def _report(name: str, found: Found, failure: Run) -> Iterator[str]:
    broken = failure.broken
    assert broken is not None
    yield f"{name}: {HEADINGS[broken.kind]}"
    yield ""
    yield f"  {broken.claim}"
    if broken.place is not None:
        yield f"  claimed at {broken.place}"
    if broken.detail and broken.detail != broken.claim:
        yield ""
        for line in broken.detail.split("\n"):
            yield f"  {line}"
    if failure.drawn:
        yield ""
        yield "values drawn:"
        for label, value in failure.drawn:
            yield f"  {label} = {value!r}"
    yield ""
    if failure.trace:
        yield f"the shortest schedule found has {_size(failure)}:"
        yield ""
        yield from lanes(failure)
        yield ""
    if failure.own:
        yield "the state of your objects at that point:"
        yield from _own(failure)
        yield ""
    replay, *kept = replayed_by(name, failure, found.node)
    yield replay
    if found.first is not None and found.tries and found.first.deviations != failure.deviations:
        yield (
            f"found     by run {found.runs} (--epochgate-seed={found.seed}), which had "
            f"{_size(found.first)}; shrunk in {found.tries} runs"
        )
    yield from kept


def replayed_by(name: str, failure: Run, node: str) -> list[str]:
    """Tell how a schedule is run again, and kept as a test."""
    word = token(failure)
    return [
        f"replay    pytest {node or '...'} --epochgate-replay={word}",
        "keep      beside the test, with `from epochgate.testing import replay`:",
        f"              test_{_short_name(name)}_again = replay({_last(name)}, {word!r})",
    ]


def _own(failure: Run) -> Iterator[str]:
    width = max(map(len, failure.own))
    for name, values in failure.own.items():
        label = name
        for key, value in values.items():
            yield f"  {label.ljust(width)}  {key} = {value}"
            label = ""


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


def lanes(one: Run) -> Iterator[str]:
    """The steps in columns, one for each lane; those far from any deviation are left out."""
    names = lanes_of(one.trace)
    shown = _shown(one.trace)
    width = max(18, (WIDTH - 10) // len(names) - 2)
    yield "  step  " + "  ".join(name.ljust(width) for name in names).rstrip()
    yield "  ────  " + "  ".join("─" * width for _ in names)
    left_out = 0
    for position, happening in enumerate(one.trace):
        if position not in shown:
            left_out += 1
            continue
        if left_out:
            yield f"        ⋮ {_count(left_out, 'step')} by the default schedule"
            left_out = 0
        yield from _row(happening, names, width, has_rows=_has_rows(position, one.trace))
    if one.broken is not None:
        yield f"     ✗  {one.broken.claim}"


def lanes_of(trace: Sequence[Happening]) -> list[str]:
    """The lanes of a trace: the test, the driver, the tasks, the store."""
    present = {happening.lane for happening in trace}
    tasks = sorted(lane for lane in present if lane.startswith("task "))
    return [lane for lane in (TEST, "driver", *tasks, "store") if lane in present]


def _shown(trace: Sequence[Happening]) -> set[int]:
    """The steps at which something deviates, those after, the last ones, the last snapshots and
    restores, and the last that concern the user's code.
    """
    shown = set(range(max(0, len(trace) - AROUND), len(trace)))
    decisive = [n for n, happening in enumerate(trace) if DECISIVE.search(happening.text)]
    shown.update(decisive[-DECISIVE_MAX:])
    of_user = [n for n, one in enumerate(trace) if one.calls or OF_USER.search(one.text)]
    shown.update(of_user[-OF_USER_MAX:])
    for position, happening in enumerate(trace):
        if happening.deviation is not None:
            shown |= set(range(max(0, position - 2), min(len(trace), position + AROUND // 2)))
        elif happening.lane == TEST or happening.is_telling:
            shown.add(position)
    return shown


def _has_rows(position: int, trace: Sequence[Happening]) -> bool:
    if len(trace) - position <= ROWS_AT_END:
        return True
    return any(one.deviation is not None for one in trace[max(0, position - 1) : position + 1])


def _row(happening: Happening, names: list[str], width: int, has_rows: bool) -> Iterator[str]:
    column = names.index(happening.lane)
    step = "{}:{}".format(*happening.at)
    mark = "*" if happening.deviation is not None else " "
    indent = " " * (column * (width + 2))
    room = max(width, WIDTH + 18 - 8 - len(indent))
    lines = wrap(happening.text, room) or [""]
    yield f"{mark}{step:>6} {indent}{lines[0]}"
    for line in lines[1:]:
        yield f"        {indent}{line}"
    for call in happening.calls:
        for line in wrap(f"calls {call.text}", room - 2, subsequent_indent="  "):
            yield f"        {indent}  {line}"
    if has_rows:
        for row in happening.rows:
            for line in wrap(str(row), room - 2, subsequent_indent="  "):
                yield f"        {indent}  {line}"


def broken_text(broken: ClaimBroken) -> str:
    """One line."""
    return f"{HEADINGS[broken.kind]}: {broken.claim}"
