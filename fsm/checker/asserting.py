"""For tests of machines: a check whose failure is an assertion that shows the way to it."""

from __future__ import annotations

from typing import Any

from epochgate.fsm.checker import Result, Verdict, check
from epochgate.fsm.checker.report import report
from epochgate.fsm.closed import ClosedSystem

__all__ = ["assert_fails", "assert_passes"]


def assert_passes(system: ClosedSystem | type[ClosedSystem], **options: Any) -> Result:
    """Check a closed system with the options of `epochgate.fsm.checker.check`; return the result.

    Raises AssertionError unless every claim holds, everything was explored and nothing is vacuous;
    its text is what `epochgate check` prints.
    """
    result = check(system, **options)
    if result.verdict is not Verdict.PASS:
        raise AssertionError(report(result.system, result))
    return result


def assert_fails(
    system: ClosedSystem | type[ClosedSystem], *, steps: int | None = None, **options: Any
) -> Result:
    """Check that a claim of a closed system breaks, in exactly `steps` steps if they are given.

    Raises AssertionError otherwise.
    """
    result = check(system, **options)
    found = result.counterexample
    if found is None or (steps is not None and len(found.steps) != steps):
        wanted = "a violation" if steps is None else f"a violation in {steps} steps"
        raise AssertionError(f"expected {wanted}\n{report(result.system, result)}")
    return result
