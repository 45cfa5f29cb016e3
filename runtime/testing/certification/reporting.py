"""A certificate for a person to read, and as JSON."""

from __future__ import annotations

import re
import textwrap
from typing import Any, Final

from epochgate.runtime.testing.certification.certifying import Certificate, Failure
from epochgate.runtime.testing.certification.claims import Guarantee

WIDTH: Final = 100
STEPS_MAX, STEPS_NEAR = 40, 8
_TITLE: Final = max(len(guarantee.title) for guarantee in Guarantee)


def report(certificate: Certificate) -> str:
    """Return the table of guarantees, and the shortest schedule of each that fails."""
    lines = [
        f"{certificate.name}: {certificate.points} fault points, "
        f"{_schedules(certificate.schedules)} in {certificate.seconds:.1f} s",
        "",
    ]
    lines += [f"  {g.title:{_TITLE}}  {_verdict(certificate, g)}" for g in Guarantee]
    for word, found in (("FAILS", certificate.failures), ("warning", certificate.warnings)):
        for guarantee in Guarantee:
            if guarantee in found:
                lines += ["", *_told(word, guarantee, found[guarantee])]
                if earlier := _same_cause(certificate, guarantee):
                    lines += _wrapped(
                        "  cause     ", f"probably the same as above: {earlier.title}"
                    )
    if certificate.unseen:
        lines += ["", *_wrapped("not certified: ", certificate.unseen)]
    lines += ["", _sentence(certificate)]
    return "\n".join(lines)


def _sentence(certificate: Certificate) -> str:
    if not certificate.has_passed:
        return f"{certificate.name} is not certified."
    if certificate.only:
        return (
            f"{certificate.name} holds in schedule {certificate.only}; the others were not played."
        )
    return f"{certificate.name} is certified."


def _verdict(certificate: Certificate, guarantee: Guarantee) -> str:
    tried = certificate.tried.get(guarantee, 0)
    if guarantee in certificate.failures:
        return f"FAILS in {_schedules(certificate.failures[guarantee].schedules)}"
    if guarantee in certificate.warnings:
        return f"not held in {_schedules(certificate.warnings[guarantee].schedules)}, a warning"
    if guarantee in certificate.untried:
        return "not tried: nothing was seen inside commit"
    if not tried:
        reason = certificate.not_tried.get(guarantee)
        return f"not tried: {reason}" if reason else "not tried"
    answers = certificate.answers_to_going_back if guarantee is Guarantee.BACK else ()
    told = f": the sink {' or '.join(sorted(answers))}" if answers else ""
    if guarantee in certificate.not_tried:
        told += f"; growth not tried: {certificate.not_tried[guarantee]}"
    return f"holds in {_schedules(tried)}{told}"


def _same_cause(certificate: Certificate, guarantee: Guarantee) -> Guarantee | None:
    """The first guarantee above this one that fails with the same finding, but for numbers and the
    moment of the look.
    """
    if guarantee not in certificate.failures:
        return None
    for earlier in Guarantee:
        if earlier is guarantee:
            return None
        other = certificate.failures.get(earlier)
        if other and _kind(other) == _kind(certificate.failures[guarantee]):
            return earlier
    return None


def _kind(failure: Failure) -> str:
    without_numbers = re.sub(r"\brows? \d[\d, -]*|\d+", "N ", failure.broken.finding)
    return re.split(r" (?:before|after|afterwards|when)\b", without_numbers)[0]


def why_untried(certificate: Certificate, guarantee: Guarantee) -> str:
    """Say why no schedule was played for a guarantee."""
    if reason := certificate.not_tried.get(guarantee):
        return reason
    if certificate.failures:
        return "the schedules ended at a failure"
    return "no schedule of it was played"


def _schedules(count: int) -> str:
    return "1 schedule" if count == 1 else f"{count} schedules"


def _told(word: str, guarantee: Guarantee, failure: Failure) -> list[str]:
    return [*_wrapped(f"{word}: ", f"{guarantee.title} ({guarantee.sentence})"), *shown(failure)]


def shown(failure: Failure) -> list[str]:
    """Return the lines of what was found, seen and expected, and of the schedule that shows it."""
    broken, lines = failure.broken, list[str]()
    lines += _wrapped("  found     ", broken.finding)
    lines += _wrapped("  seen      ", broken.seen)
    lines += _wrapped("  expected  ", broken.expected)
    lines.append("  the shortest schedule that shows it:")
    steps = merged(failure.story)
    width, before = len(str(len(steps))), 0
    for number, step in shortened(steps):
        if number > before + 1:
            lines.append(f"    {'':{width}}  ... {number - before - 1} steps without a failure")
        mark, text = ("*", step[2:]) if step.startswith("* ") else (" ", step)
        lines += _wrapped(f"  {mark} {number:{width}}. ", text)
        before = number
    if failure.token:
        lines.append(f"  replay    the same command with --only {failure.token}")
    return lines


def _wrapped(lead: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_on_hyphens=False,
    ) or [lead.rstrip()]


def merged(story: tuple[str, ...]) -> list[str]:
    """Put the calls of each actor in one step, as long as no other kind of step comes between.

    >>> merged(("run-0 subtask 0: write", "run-0 subtask 0: write", "checkpoint 1 is complete"))
    ['run-0 subtask 0: write twice', 'checkpoint 1 is complete']
    """
    steps: list[str] = []
    block: dict[str, list[str]] = {}
    kind = ""

    def end_block() -> None:
        steps.extend(f"{actor}: {_counted(calls)}" for actor, calls in block.items())
        block.clear()

    for line in story:
        actor, colon, call = line.partition(": ")
        kind_of_line = actor.partition(" ")[0] if colon and not line.startswith("* ") else ""
        is_call = kind_of_line == "driver" or kind_of_line.startswith("run-")
        if not is_call or kind_of_line != kind:
            end_block()
        kind = kind_of_line
        if is_call:
            block.setdefault(actor, []).append(call)
        else:
            steps.append(line)
    end_block()
    return steps


def shortened(steps: list[str]) -> list[tuple[int, str]]:
    """Return the steps with their numbers, from 1; of a long row of steps that are as always, those
    in the middle are left out.
    """
    numbered = list(enumerate(steps, 1))
    marks = [number for number, step in numbered if step.startswith("* ")]
    near = [*marks, 1, len(steps)]
    return [
        (number, step)
        for number, step in numbered
        if len(steps) <= STEPS_MAX or min(abs(number - mark) for mark in near) <= STEPS_NEAR
    ]


def _counted(calls: list[str]) -> str:
    counted: list[list[Any]] = []
    for call in calls:
        if counted and counted[-1][0] == call:
            counted[-1][1] += 1
        else:
            counted.append([call, 1])
    return ", ".join(
        call if times == 1 else f"{call} {'twice' if times == 2 else f'{times} times'}"
        for call, times in counted
    )


def to_json(certificate: Certificate) -> dict[str, Any]:
    """Return plain values: the figures, and each guarantee with its verdict."""
    return {
        "sink": certificate.name,
        "module": certificate.module,
        "passed": certificate.has_passed,
        "points": certificate.points,
        "schedules": certificate.schedules,
        "seconds": round(certificate.seconds, 3),
        "remarks": [certificate.unseen] if certificate.unseen else [],
        "guarantees": [_guarantee_to_json(certificate, guarantee) for guarantee in Guarantee],
    }


def _guarantee_to_json(certificate: Certificate, guarantee: Guarantee) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": guarantee.title,
        "sentence": guarantee.sentence,
        "schedules": certificate.tried.get(guarantee, 0),
    }
    for verdict, found in (("fails", certificate.failures), ("warning", certificate.warnings)):
        if guarantee in found:
            failure = found[guarantee]
            return told | {
                "verdict": verdict,
                "failed": failure.schedules,
                "finding": failure.broken.finding,
                "seen": failure.broken.seen,
                "expected": failure.broken.expected,
                "schedule": list(failure.story),
                "token": failure.token,
            }
    if guarantee is Guarantee.BACK:
        told["answers"] = sorted(certificate.answers_to_going_back)
    not_tried = {**certificate.not_tried, **certificate.untried}
    if guarantee in not_tried:
        told["not_tried"] = not_tried[guarantee]
    holds = told["schedules"] and guarantee not in certificate.untried
    return told | {"verdict": "holds" if holds else "not tried"}
