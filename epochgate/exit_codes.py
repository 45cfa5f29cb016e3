"""The exit codes of a check: the one table of them, which `--help` and the docs show."""

from __future__ import annotations

from enum import IntEnum

from epochgate.errors import EpochgateError


class ExitCode(IntEnum):
    """The end of a check; of several systems the first of WORST_FIRST that occurs is given."""

    PASS = 0
    FAIL = 1
    MISUSE = 2
    VACUOUS = 3
    BOUNDED = 4
    UNTAKEN = 5
    RUN_FAILED = 6
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.PASS: "every claim holds, and every row was taken",
    ExitCode.FAIL: "a claim is broken, a step fails, or there is a deadlock",
    ExitCode.MISUSE: "the command, its options or the declaration of a system is wrong",
    ExitCode.VACUOUS: "a claim holds only because what it is about never happens",
    ExitCode.BOUNDED: "stopped by a budget before an answer",
    ExitCode.UNTAKEN: "every claim holds, but some rows were never taken",
    ExitCode.RUN_FAILED: "the run failed (no memory, no disk, a fault of epochgate): no answer",
    ExitCode.INTERRUPTED: "interrupted",
}
WORST_FIRST = (
    ExitCode.FAIL,
    ExitCode.RUN_FAILED,
    ExitCode.BOUNDED,
    ExitCode.VACUOUS,
    ExitCode.UNTAKEN,
    ExitCode.PASS,
)


class RunFailed(EpochgateError):
    """A check could not be carried through; that says nothing of the claims."""

    exit_code = ExitCode.RUN_FAILED


def table() -> str:
    """The codes and what they say, a line each."""
    return "\n".join(f"  {code.value:3}  {meaning}" for code, meaning in MEANINGS.items())
