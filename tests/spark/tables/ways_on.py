"""The ways on that a message names, as arguments to follow to the letter."""

from __future__ import annotations

import re
import shlex

COMMAND = re.compile(r"`epochgate (commits give-up [^`]+)`")


def give_up_command_in(said: str) -> list[str]:
    """The arguments of the one command that a message names. Raises AssertionError."""
    commands = [shlex.split(found) for found in COMMAND.findall(said)]
    assert len(commands) == 1, said
    return commands[0]
