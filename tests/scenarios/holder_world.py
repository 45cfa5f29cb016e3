"""Scenarios in the line protocol of tests/conformance, which tells posted from inline calls."""

from __future__ import annotations

from tests.conformance.shell import Shell


class HolderWorld:
    """One coordinator's machines behind the shell; `manual=1` leaves sends unanswered."""

    def __init__(self, constants: dict[str, int]) -> None:
        self._shell = Shell()
        self.spoken: list[str] = []
        """The protocol's commands so far."""
        self.lines: list[str] = []
        mode = " manual" * constants.get("manual", 0)
        self.say(f"new {constants.get('subtasks', 1)}{mode}")

    def say(self, command: str) -> None:
        """Answer one command of the protocol."""
        self.spoken.append(command)
        self.lines += self._shell.answer(command)

    def do_up(self, subtasks: int) -> None:
        """Start the coordinator and let this many subtasks run."""
        self.say("start")
        for subtask in range(subtasks):
            self.say(f"running {subtask}")
        self.lines[:] = [f"{subtasks} subtasks run"]
