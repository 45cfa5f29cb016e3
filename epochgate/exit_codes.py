"""The exit codes of the commands: the one table of them, which `--help` and the docs show.

An error that a user can mend ends each command with 2; see `epochgate.errors`.
"""

from __future__ import annotations

import textwrap
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

OF_COMMANDS: dict[str, dict[int, str]] = {
    "demo": {
        0: "every row arrived once",
        1: "a row is lost or duplicated, or the job ended before all kills",
        2: "misuse",
    },
    "ingest": {
        0: "finished or stopped",
        3: "the same, and rows or files were left out (--on-bad-row reject, --on-bad-file skip); "
        "another with --exit-code-left-out",
        1: "the job failed",
        2: "misuse",
        130: "canceled",
    },
    "unread": {0: "listed, also if there is nothing to list", 2: "misuse"},
    "files": {
        0: "listed, also if there is nothing to list",
        1: "the newest checkpoint is damaged",
        2: "misuse, or there is no checkpoint of an ingestion",
    },
    "backlog": {
        0: "shown, also if nothing is left",
        1: "the newest checkpoint is damaged",
        2: "misuse, or there is no checkpoint of an ingestion",
    },
    "compact": {
        0: "done, or nothing to do",
        1: "it could not be done, and nothing was changed",
        2: "misuse",
    },
    "status": {
        0: "it runs, or has finished",
        1: "it has failed, or was canceled or killed",
        2: "there is no such job",
    },
    "ui": {0: "ended by Ctrl-C", 2: "there is no such job"},
    "checkpoints": {
        0: "all is well",
        1: "a checkpoint is damaged or unreadable",
        2: "there is none",
    },
    "commits": {0: "done, or nothing is in doubt", 1: "a commit has failed", 2: "misuse"},
    "savepoint": {
        0: "it is written",
        1: "the job could not make it",
        2: "there is nothing to make it of, or PATH is taken",
    },
    "set": {
        0: "a completed checkpoint holds the change; or shown",
        1: "the job has refused it, or has not answered in time",
        2: "misuse, or no job runs",
    },
    "control": {
        0: "success",
        1: "the store failed",
        2: "there is no such control or value",
    },
    "bench": {0: "measured", 2: "misuse"},
    "draw": {
        0: "drawn, compared, or fresh",
        1: "--check found a stale or orphaned file",
        2: "misuse",
    },
    "check": {code.value: meaning for code, meaning in MEANINGS.items()},
    "explore": {0: "ended, also by Ctrl-C", 2: "misuse"},
    "fuzz": {0: "nothing found", 1: "a test has failed", 2: "misuse"},
    "validate": {0: "all are accepted", 1: "one is refused", 2: "there is no trace"},
    "certify-sink": {
        0: "every guarantee holds",
        1: "one does not, or no write was seen inside commit",
        2: "misuse",
    },
    "class-archive": {0: "written", 2: "this Java has written none"},
    "completion": {0: "printed", 2: "shtab does not know the shell"},
}
"""By command, in the order in which its help tells them. Each command can also end with 141, where
the reader of its output has left, and with 130, after Ctrl-C, unless Ctrl-C is its usual end.
"""


def codes_of(command: str) -> str:
    """Return the codes of a command as the lines that end its help."""
    codes = "; ".join(f"{code}\xa0{meaning}" for code, meaning in OF_COMMANDS[command].items())
    return textwrap.fill(f"Exit codes: {codes}.", 79, break_on_hyphens=False).replace("\xa0", " ")


class RunFailed(EpochgateError):
    """A check could not be carried through; that says nothing of the claims."""

    exit_code = ExitCode.RUN_FAILED


def table() -> str:
    """The codes and what they say, a line each."""
    return "\n".join(f"  {code.value:3}  {meaning}" for code, meaning in MEANINGS.items())
