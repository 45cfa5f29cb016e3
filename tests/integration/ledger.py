"""The notes of operators while they run, and an account drawn from these entries alone.

Each attempt writes down, entry by entry, what happens to it, however the attempt ends. The
account trusts no machine and is plain Python: what an attempt began with must be
what an earlier attempt had at one of its snapshots, and what the last one has in the end is the
outcome. On Spark the entries are lines of files; in simulation they stay in memory.

A ledger also carries words between driver and tasks that the protocol must not carry, since they
are part of the test. Any thread, any process.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Entry = list[Any]
"""`["began", values]`, `["handled", value]` or `["snapshot", checkpoint]`."""
Write = Callable[[Entry], None]


class Ledger(ABC):
    """The place where operators write things down."""

    @abstractmethod
    def open(self, operator_id: str, subtask: int, attempt: int) -> Write:
        """Return what an attempt writes with; raises when the attempt was here before."""

    @abstractmethod
    def attempts(self, operator_id: str, subtask: int) -> list[list[Entry]]:
        """Return what each attempt of a subtask has written, oldest first."""

    @abstractmethod
    def tell(self, word: str) -> None:
        """Leave a word for everybody."""

    @abstractmethod
    def is_told(self, word: str) -> bool:
        """Return whether this word was left."""


class LedgerInMemory(Ledger):
    """For processes that are simulated."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], dict[int, list[str]]] = {}
        self._words: set[str] = set()

    def open(self, operator_id: str, subtask: int, attempt: int) -> Write:
        attempts = self._lines.setdefault((operator_id, subtask), {})
        if attempt in attempts:
            raise FileExistsError(f"attempt {attempt} of {operator_id} {subtask} was here before")
        attempts[attempt] = []
        # As text, since what is written stays as it was, however the values change.
        return lambda entry: attempts[attempt].append(json.dumps(entry))

    def attempts(self, operator_id: str, subtask: int) -> list[list[Entry]]:
        numbered = sorted(self._lines[operator_id, subtask].items())
        return [[json.loads(line) for line in lines] for _, lines in numbered]

    def tell(self, word: str) -> None:
        self._words.add(word)

    def is_told(self, word: str) -> bool:
        return word in self._words


class LedgerInFiles(Ledger):
    """For processes on one machine: a file for each attempt in `folder`, and one for each word."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, operator_id: str, subtask: int, attempt: int) -> Write:
        path = Path(self._folder) / f"{operator_id}-{subtask}-{attempt}.log"
        path.touch(exist_ok=False)

        def write(entry: Entry) -> None:
            # Opened each time: no process can be relied on to close it.
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")

        return write

    def attempts(self, operator_id: str, subtask: int) -> list[list[Entry]]:
        found = Path(self._folder).glob(f"{operator_id}-{subtask}-*.log")
        numbered = sorted((int(path.stem.rsplit("-", 1)[1]), path) for path in found)
        return [
            [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            for _, path in numbered
        ]

    def tell(self, word: str) -> None:
        (Path(self._folder) / f"{word}.word").touch()

    def is_told(self, word: str) -> bool:
        return (Path(self._folder) / f"{word}.word").exists()


@dataclass
class Account:
    """The outcome of each subtask, what cannot be right, and how many values an attempt handled of
    which an earlier one had them already.
    """

    outcome: list[list[int]]
    problems: list[str]
    again: int


def account(ledger: Ledger, operator_id: str, parallelism: int) -> Account:
    """Draw up the account of an operator's subtasks."""
    drawn = Account([], [], 0)
    for subtask in range(parallelism):
        values: list[int] = []
        snapshots: list[list[int]] = [[]]
        seen: set[int] = set()
        for attempt, entries in enumerate(ledger.attempts(operator_id, subtask)):
            for what, value in entries:
                if what == "began":
                    values = list(value)
                    if values not in snapshots:
                        place = f"attempt {attempt} of {operator_id} {subtask}"
                        drawn.problems.append(f"{place} began with {values}, which is no snapshot")
                elif what == "handled":
                    values.append(value)
                    drawn.again += value in seen
                    seen.add(value)
                else:
                    snapshots.append(list(values))
        drawn.outcome.append(values)
    return drawn
