"""The report of a result to a person: a table of claims, what was never taken, and a numbered
counterexample.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Set
from typing import Any

from epochgate.fsm.checker.result import Counterexample, Result, TraceStep, changes

ROWS_SHOWN_MAX = 12
NOTES_SHOWN_MAX = 8

Place = tuple[str, str, str]
"""A machine or the class of its rows, and a row's trigger and reason."""
STATES_TO_TELL_BYTES = 10_000


def report(name: str, result: Result) -> str:
    """Everything that was found, as lines."""
    constants = " ".join(f"{n}={value}" for n, value in result.constants.items())
    lines = [
        f"{f'{name} {constants}'.rstrip()}: {result.verdict.value}",
        f"  {result.effort or _explored(result)}",
        f"  {_how(result)}",
    ]
    if result.partial_order:
        taken = result.transitions + result.left_out
        lines.append(
            f"  partial-order reduction: {result.left_out:,} of {taken:,} possible steps left out"
        )
    if result.stopped:
        lines.append(f"  stopped early: {result.stopped}")
    lines += [f"  note: {note}" for note in result.notes[:NOTES_SHOWN_MAX]]
    if len(result.notes) > NOTES_SHOWN_MAX:
        lines.append(f"  and {len(result.notes) - NOTES_SHOWN_MAX} more notes, all in --json")
    lines += [
        f"  {found.verdict.value:8}{found.kind:10} {found.claim}"
        + (f" ({found.detail})" if found.detail and found.verdict.value != "FAIL" else "")
        for found in result.properties
    ]
    for demanded in result.fairness:
        text = f"fairness, {demanded}"
        lines += textwrap.wrap(text, 96, initial_indent="  ", subsequent_indent="    ")
    lines += _coverage(result)
    if result.counterexample is not None:
        lines += ["", *counterexample(result.counterexample)]
    return "\n".join(lines)


def _explored(result: Result) -> str:
    return (
        f"{result.states:,} states, {result.transitions:,} transitions, depth {result.depth}, "
        f"{result.terminal_states:,} terminal"
    )


def _how(result: Result) -> str:
    workers = f", {result.workers} workers" if result.workers > 1 else ""
    symmetry = f", up to symmetry of {result.symmetry} (a smaller space)" if result.symmetry else ""
    order = "" if result.order == "breadth" else f", {result.order}"
    if result.partial_order:
        order += ", up to the order of independent steps (a smaller space)"
    # Of a small search, what the engine sets aside at its beginning is nearly all of it.
    is_telling = result.states >= STATES_TO_TELL_BYTES
    memory = f", {result.bytes_per_state:.0f} bytes a state" if is_telling else ""
    if result.disk_bytes:
        memory += f", {result.disk_bytes / result.states:.1f} more on disk"
    return (
        f"{result.engine}{workers}{order}{symmetry}: compiled in {result.compile_seconds:.2f} s, "
        f"searched in {result.search_seconds:.2f} s{memory}"
    )


def untaken_from(results: Iterable[Result]) -> dict[Place, list[str]]:
    """Return the rows of machines that were taken, but from some of their source states in none of
    the searches, with these states.

    The rows of environments are left out, and none is returned where a search is not complete.
    """
    found = [*results]
    if any(result.verdict.value in ("FAIL", "BOUNDED") for result in found):
        return {}
    taken: set[Place] = set()
    untaken: dict[Place, list[str]] = {}
    names: dict[Place, Place] = {}
    for row in (row for result in found for row in result.coverage if not row.is_environment):
        key = row.origin, row.trigger, row.because
        names.setdefault(key, (row.machine, row.trigger, row.because))
        if row.is_taken:
            taken.add(key)
        before = untaken.setdefault(key, [*row.untaken_from])
        untaken[key] = [state for state in before if state in row.untaken_from]
    return {names[key]: states for key, states in untaken.items() if states and key in taken}


def untaken_states(results: Iterable[Result], excused: Set[str] = frozenset()) -> list[str]:
    """Tell each row that was taken, but from some of its states in none of the searches.

    `excused` names what is left out, as `machine.trigger from state`, with or without `: because`.
    """
    lines = []
    for (machine, trigger, because), states in untaken_from(results).items():
        name = f"{machine}.{trigger} from"
        if left := [
            state
            for state in states
            if not {f"{name} {state}", f"{name} {state}: {because}"} & excused
        ]:
            lines.append(f"{name} {', '.join(left)}: {because}")
    more = len(lines) - ROWS_SHOWN_MAX
    if more > 0:
        lines[ROWS_SHOWN_MAX:] = [f"and {more} more rows, all in --json"]
    return lines


def _coverage(result: Result) -> list[str]:
    taken = sum(row.is_taken for row in result.coverage)
    lines = [f"  {taken} of {len(result.coverage)} rows taken"]
    untaken = result.untaken
    if result.verdict.value == "FAIL":
        return lines
    lines += [
        f"    never: {row.machine}.{row.trigger} from {row.source}: {row.because}"
        for row in untaken[:ROWS_SHOWN_MAX]
    ]
    if len(untaken) > ROWS_SHOWN_MAX:
        lines.append(f"    and {len(untaken) - ROWS_SHOWN_MAX} more, all in --json")
    return lines


def counterexample(found: Counterexample) -> list[str]:
    """The way to the violation, step by step."""
    lines = [f"{found.message}", f"  at {found.file}:{found.line}"]
    if found.usual:
        lines.append("  from this state, in which every claim holds; the rest is as at the start:")
        differing = changes(found.usual, found.initial)
        lines += [f"         {place}: {_shown(value)}" for place, (_, value) in differing.items()]
    elif found.begins:
        begins = ", ".join(f"{place} {_shown(value)}" for place, value in found.begins.items())
        lines.append(f"  {len(found.steps)} steps from the initial state with {begins}:")
    else:
        lines.append(f"  {len(found.steps)} steps from the initial state:")
    for step in found.steps:
        if found.cycle is not None and step.number == found.cycle + 1:
            lines.append("  from here on the steps repeat for ever:")
        lines += _step(step)
    if found.cycle is not None and found.cycle == len(found.steps):
        lines.append("  here it stays for ever")
    if found.fairness:
        lines += ["  fairness of this run:", *(f"    {line}" for line in found.fairness)]
    return lines


def _step(step: TraceStep) -> list[str]:
    lines = [f"  {step.number:3}. {step.label}: {step.because}"]
    lines += [
        f"         {place}: {_shown(before)} -> {_shown(after)}"
        for place, (before, after) in step.changed.items()
    ]
    lines += [f"         effect: {effect}" for effect in step.effects]
    if step.channels:
        held = ", ".join(f"{place} {_shown(items)}" for place, items in step.channels.items())
        lines.append(f"         in flight: {held}")
    return lines


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
