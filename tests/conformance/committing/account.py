"""The prints of Flink's global committer, retold, with each listed difference as a switch.

It shares nothing with the machines. Without a name it is Flink 2.3.0: GlobalCommitterOperator
behind the writers, and SinkWriterOperator. With all NAMES it is epochgate. `differences.py` says of
each name what it stands for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from tests.conformance.committing.shell import parts, state_line

PARTLY_TAKEN = "partly-taken"
ENDED_SUBTASK = "ended-subtask"
ABORTED_APART = "aborted-apart"
LATE_NOTICE = "late-notice"
PAST_THE_END = "past-the-end"
TRIED_LAST = "tried-last"
TRIED_TOGETHER = "tried-together"
NAMES = frozenset({PARTLY_TAKEN, ENDED_SUBTASK, ABORTED_APART, TRIED_TOGETHER, LATE_NOTICE})
"""Of a global committer right behind the writers; `upstream.py` has those of the other topology."""

Collected = dict[int, dict[int, list[str]]]
"""Checkpoint -> subtask -> the committables that came for it."""


@dataclass
class Target:
    """The answers of a sink for each committable; `words` begin the lines of its calls."""

    words: str
    answers: dict[str, deque[str]] = field(default_factory=dict)


class Failed(Exception):
    """The operator's task ends, and waits to be restarted."""


class Retelling:
    """The common part of all topologies: commands, and sinks that answer; `names` are the
    differences that are on.
    """

    def __init__(self, names: Collection[str] = ()) -> None:
        self.names = frozenset(names)
        self.lines: list[str] = []
        self.is_failed = False

    def run(self, commands: Sequence[str]) -> list[list[str]]:
        """The lines of each command."""
        answers = []
        for command in commands:
            self.lines = []
            word, *arguments = command.split()
            if word in ("new", "restart") or not self.is_failed:
                try:
                    getattr(self, f"_do_{word}")(*arguments)
                except Failed:
                    self.is_failed = True
                    self.lines.append("failed")
            answers.append(self.lines)
        return answers

    def tell_state(self, checkpoint: str, collected: Iterable[Collected]) -> None:
        """Print what a stored checkpoint holds, by subtask, oldest first."""
        held: dict[int, list[str]] = {}
        for of_one in collected:
            for _, of_checkpoint in sorted(of_one.items()):
                for subtask, names in of_checkpoint.items():
                    held.setdefault(subtask, []).extend(names)
        self.lines.append(state_line(checkpoint, held))

    def try_all(self, names: list[str], tries: int, target: Target) -> list[str]:
        """Commit as often as it takes or may take; what took effect, as it is passed on."""
        left, done = names, list[str]()
        for _ in range(tries + 1):
            said = self.call(left, target)
            done += [name for name in left if said[name] in ("ok", "again")]
            left = [name for name in left if said[name] == "retry"]
        if left:
            raise Failed
        return done if TRIED_LAST in self.names else [name for name in names if name in done]

    def call(self, names: list[str], target: Target) -> dict[str, str]:
        """One call of a sink's committer, unless there is nothing to commit."""
        said: dict[str, str] = {}
        if not names:
            return said
        for name in names:
            queue = target.answers.get(name)
            said[name] = queue.popleft() if queue else "ok"
            if said[name] == "error":
                break
        told = " ".join(f"{name} {word}" for name, word in said.items())
        self.lines.append(f"{target.words} {told}")
        if "error" in said.values():
            raise Failed
        return said


class Account(Retelling):
    """One global committer, its writers and its sink."""

    def _do_new(self, subtasks: str, tries: str) -> None:
        self.subtasks, self.tries = int(subtasks), int(tries)
        self.target = Target("commit")
        self.stored: dict[int, tuple[Collected, set[int]]] = {0: ({}, set())}
        self.completed = 0
        self._open()

    def _open(self) -> None:
        collected, ended = self.stored[self.completed]
        self.collected, self.ended = deepcopy(collected), set(ended)
        self.known = [self.completed] * self.subtasks
        """Of each subtask: the newest checkpoint that it has handed something over for."""
        self.again: dict[int, list[str]] = {}
        """Of each subtask: what it hands over again, of aborted checkpoints."""
        self.pending = 0
        self.taken: dict[int, bool] = {}
        """Of each subtask whose barrier waits for the others': whether its input had ended."""
        self.behind: list[tuple[int, list[str]]] = []
        """What came from subtasks behind such a barrier."""
        self.newest = -1
        self.asked = self.completed
        """With us: the newest checkpoint that the commit under way covers; 0 for none."""
        self.is_failed = False

    def _do_restart(self) -> None:
        self._open()
        if self.completed:
            self._commit(self.completed)
        for number in self.ended:
            self._hand_over(number, self.completed + 1, [])

    def _do_answer(self, name: str, said: str) -> None:
        self.target.answers.setdefault(name, deque()).append(said)

    def _do_barrier(self, subtask: str, checkpoint: str, names: str) -> None:
        number, said = int(subtask), parts(names)
        if self.pending != int(checkpoint):
            self._unblock()
            self.pending = int(checkpoint)
        again = self.again.pop(number, [])
        if number not in self.ended:
            self._hand_over(number, self.pending, again + said)
        elif again:
            self._hand_over(number, self.pending, again)
        self.taken[number] = number in self.ended
        if len(self.taken) == self.subtasks:
            had_ended = {ended for ended, had in self.taken.items() if had}
            self.stored[self.pending] = (deepcopy(self.collected), had_ended)
            self._unblock()

    def _unblock(self) -> None:
        self.taken.clear()
        for number, names in self.behind:
            self._hand_over(number, self.known[number] + 1, names)
        self.behind.clear()

    def _do_end(self, subtask: str, names: str) -> None:
        number = int(subtask)
        if ENDED_SUBTASK in self.names:
            self.again.setdefault(number, []).extend(parts(names))
        elif number not in self.ended:
            self.ended.add(number)
            if number in self.taken:
                self.behind.append((number, parts(names)))
            else:
                self._hand_over(number, self.known[number] + 1, parts(names))

    def _hand_over(self, subtask: int, checkpoint: int, names: list[str]) -> None:
        self.known[subtask] = checkpoint
        self.collected.setdefault(checkpoint, {}).setdefault(subtask, []).extend(names)

    def _do_abort(self, checkpoint: str) -> None:
        number, self.pending = int(checkpoint), 0
        self._unblock()
        held = self.collected.get(number, {})
        is_whole = len(held) == self.subtasks
        if (ABORTED_APART if is_whole else PARTLY_TAKEN) in self.names:
            for subtask, names in self.collected.pop(number, {}).items():
                self.again[subtask] = names + self.again.get(subtask, [])

    def _do_complete(self, checkpoint: str, how: str = "") -> None:
        self.completed, self.pending = int(checkpoint), 0
        self.asked = self.asked or self.completed
        stored = self.stored[self.completed][0]
        if LATE_NOTICE in self.names:
            for number in stored.keys() - self.collected.keys():
                del stored[number]
        self.tell_state(checkpoint, [stored])
        if not how:
            self._commit(self.completed)

    def _do_told(self, checkpoint: str) -> None:
        self._commit(self.completed if LATE_NOTICE in self.names else int(checkpoint))

    def _commit(self, checkpoint: int) -> None:
        """Every checkpoint up to the newest that is known to be completed, oldest first."""
        self.newest = max(self.newest, checkpoint)
        due: list[int] = []
        for number in sorted(number for number in self.collected if number <= self.newest):
            if len(self.collected[number]) < self.subtasks:
                break
            due.append(number)
        if TRIED_TOGETHER in self.names:
            later = [number for number in due if number > self.asked]
            self._try([number for number in due if number <= self.asked], later)
            self._try(later)
        else:
            for number in due:
                self._try([number])
        self.asked = 0

    def _try(self, numbers: list[int], later: list[int] | None = None) -> None:
        """Commit checkpoints in one go, as often as it takes or may take; a further go takes those
        along that come later.
        """
        left = {number: self._names_of(number) for number in numbers}
        for _ in range(self.tries + 1):
            if self._is_done(left):
                return
            left |= {number: self._names_of(number) for number in later or ()}
            if later:
                later.clear()
        raise Failed

    def _names_of(self, number: int) -> list[str]:
        held = self.collected.pop(number)
        return [name for subtask in sorted(held) for name in held[subtask]]

    def _is_done(self, left: dict[int, list[str]]) -> bool:
        """One go; what asks for another stays, and what is older unless that was left out."""
        for number in list(left):
            said = self.call(left[number], self.target)
            left[number] = [name for name in left[number] if said[name] == "retry"] or left[number]
            if "retry" in said.values():
                return False
            if "known" in said.values():
                for earlier in [earlier for earlier in left if earlier <= number]:
                    del left[earlier]
        return True
