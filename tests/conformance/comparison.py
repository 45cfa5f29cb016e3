"""Holds our shell against Flink's holder, line by line, and explains what differs.

A schedule is explained only as a whole: the account with no switch set must print every line that
Flink printed, and with all set every line that we printed. What it is explained by is then the
smallest set of switches found that still gives our lines, dropping one name after the other.
Of a line that begins with EXC or GLOBAL only that word is compared: what follows is a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.conformance.account import NAMES, Account

Lines = list[list[str]]
"""For each command, in order, its lines."""


class Retelling(Protocol):
    """An account: what one side prints, with the differences that are switched on."""

    def run(self, commands: Sequence[str]) -> Lines:
        """The lines of each command."""
        ...


def comparable(answers: Lines) -> Lines:
    """The lines without the messages of exceptions."""
    return [
        [line.split(" ", 1)[0] if line.startswith(("EXC", "GLOBAL")) else line for line in answer]
        for answer in answers
    ]


def explanation(
    commands: Sequence[str],
    flink: Lines,
    ours: Lines,
    account: Callable[[Collection[str]], Retelling] = Account,
    every: frozenset[str] = NAMES,
) -> frozenset[str] | None:
    """The names of the differences that explain what differs; empty if nothing does, None if
    anything is left over. `every`: all names that `account` knows.
    """
    flink, ours = comparable(flink), comparable(ours)
    if flink == ours:
        return frozenset()
    if account(()).run(commands) != flink or account(every).run(commands) != ours:
        return None
    needed = set(every)
    for name in sorted(every):
        if account(needed - {name}).run(commands) == ours:
            needed.discard(name)
    return frozenset(needed)


def first_difference(flink: Lines, ours: Lines) -> tuple[int, list[str], list[str]] | None:
    """The position of the first command that is answered differently, with both answers."""
    pairs = zip(comparable(flink), comparable(ours), strict=True)
    return next(((i, f, o) for i, (f, o) in enumerate(pairs) if f != o), None)


Explain = Callable[[Sequence[str], Lines, Lines], frozenset[str] | None]
"""What names the differences of a schedule, as `explanation` does."""


@dataclass
class Comparison:
    """The outcomes of many schedules; `explain` names what they differ by."""

    explain: Explain = explanation
    compared: int = 0
    commands: int = 0
    same: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    """How many schedules each difference was needed for."""
    unexplained: list[list[str]] = field(default_factory=list)
    example: list[str] = field(default_factory=list)
    """One that differs, if any does; an unexplained one before others."""

    def add(self, commands: Sequence[str], flink: Lines, ours: Lines) -> None:
        """Compare one schedule."""
        self.compared += 1
        self.commands += len(commands)
        names = self.explain(commands, flink, ours)
        if names is None:
            self.unexplained.append(list(commands))
            self.example = self.unexplained[0]
        elif names:
            self.explained.update(names)
            self.example = self.example or list(commands)
        else:
            self.same += 1

    def __str__(self) -> str:
        """One line for the whole and one for each difference."""
        differing = self.compared - self.same - len(self.unexplained)
        lines = [
            f"{self.compared} schedules, {self.commands} commands: {self.same} alike, "
            f"{differing} explained, {len(self.unexplained)} not explained"
        ]
        lines += [f"  {count:6} {name}" for name, count in self.explained.most_common()]
        return "\n".join(lines)


def transcript(commands: Sequence[str], flink: Lines, ours: Lines) -> str:
    """A schedule with both answers, side by side where they differ."""
    lines = []
    for command, theirs, own in zip(commands, flink, ours, strict=True):
        said = f"{command:20} {' | '.join(theirs)}"
        if comparable([theirs]) != comparable([own]):
            said += f"   <- Flink; epochgate -> {' | '.join(own)}"
        lines.append(said.rstrip())
    return "\n".join(lines)


def shrunk(commands: Sequence[str], sign: Callable[[Sequence[str]], object]) -> list[str]:
    """The commands without those that `sign` does not depend on: delta debugging, which leaves a
    schedule of which no single command can be left out. `sign` is None for what is of no interest.
    """
    kept = list(commands)
    wanted = sign(kept)
    size = max(1, len(kept) // 2)
    while True:
        start, has_shrunk = 0, False
        while start < len(kept):
            without = kept[:start] + kept[start + size :]
            if without and sign(without) == wanted:
                kept, has_shrunk = without, True
            else:
                start += size
        if size == 1 and not has_shrunk:
            return kept
        size = size if has_shrunk and size == 1 else max(1, size // 2)
