"""The command by which a person lets a job go on without rows that its target lacks."""

from __future__ import annotations

import shlex


def give_up_command(checkpoints: str, which: str) -> str:
    """Return the command for a message. checkpoints: the directory or URL of the job's checkpoints,
    "" if that is not known. which: the rest of the arguments.

    >>> give_up_command("/data/my job", "--after 7")
    "`epochgate commits give-up '/data/my job' --after 7`"
    """
    if checkpoints:
        return f"`epochgate commits give-up {shlex.quote(checkpoints)} {which}`"
    return (
        f"`epochgate commits give-up DIR {which}`, where DIR is the directory of the job's "
        "checkpoints"
    )
