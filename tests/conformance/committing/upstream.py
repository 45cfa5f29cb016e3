"""The prints of Flink where each subtask has a committer and a global one follows, retold, with
each listed difference as a switch.

It shares nothing with the machines. Without a name it is Flink 2.3.0: SinkWriterOperator and
CommitterOperator in each task, and GlobalCommitterOperator (commitOnInput) in a task of its own
behind channels, of which a barrier blocks one until all have brought it. With all NAMES it is
epochgate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from tests.conformance.committing.account import (
    ABORTED_APART,
    ENDED_SUBTASK,
    LATE_NOTICE,
    PARTLY_TAKEN,
    PAST_THE_END,
    TRIED_LAST,
    Collected,
    Retelling,
    Target,
)
from tests.conformance.committing.shell import parts

NAMES = frozenset(
    {PARTLY_TAKEN, ENDED_SUBTASK, PAST_THE_END, ABORTED_APART, TRIED_LAST, LATE_NOTICE}
)

END = "end of data"
Held = dict[int, list[str]]
"""Checkpoint -> the committables of one subtask for it."""
Item = str | int | tuple[int, list[str]]
"""In a channel: END, a barrier, or what was committed of a checkpoint."""


@dataclass
class Task:
    """A writer, its committer, and the channel to the global committer's task."""

    number: int
    target: Target
    known: int
    """The newest checkpoint that the writer has handed something over for."""
    newest: int
    """The newest checkpoint that the committer knows to be completed."""
    held: Held
    is_ended: bool = False
    again: list[str] = field(default_factory=list)
    """What it hands over again, of aborted checkpoints."""
    channel: deque[Item] = field(default_factory=deque)
    taken: tuple[Held, bool] = ({}, False)
    """What the last barrier found: the committer's state, and whether the input had ended."""

    def hand_over(self, checkpoint: int, names: list[str]) -> None:
        self.known = checkpoint
        self.held[checkpoint] = names


@dataclass
class Stored:
    """One checkpoint."""

    collected: Collected = field(default_factory=dict)
    """Of the global committer."""
    tasks: Mapping[int, tuple[Held, bool]] = field(default_factory=dict)


class UpstreamAccount(Retelling):
    """A job with a committer in each task."""

    def _do_new(self, subtasks: str, tries: str, _: str) -> None:
        self.subtasks, self.tries = int(subtasks), int(tries)
        self.targets = [Target(f"commit {number}") for number in range(self.subtasks)]
        self.answers: dict[str, deque[str]] = {}
        for target in self.targets:
            target.answers = self.answers
        self.target = Target("global")
        self.stored = {0: Stored()}
        self.completed = 0
        self._do_restart()

    def _do_restart(self) -> None:
        self.is_failed = False
        stored = self.stored[self.completed]
        self.collected = deepcopy(stored.collected)
        self.newest, self.pending = self.completed, 0
        self.blocked, self.ended = set[int](), 0
        self._commit_globally()
        self.tasks: list[Task] = []
        had_ended = []
        for number in range(self.subtasks):
            held, is_ended = stored.tasks.get(number, ({}, False))
            task = Task(number, self.targets[number], self.completed, 0, deepcopy(held))
            self.tasks.append(task)
            had_ended += [task] if is_ended else []
            self._tell(task, self.completed)
        for task in had_ended:
            self._end(task, [])
        self._flow()

    def _end(self, task: Task, names: list[str]) -> None:
        if task.is_ended:
            return
        task.is_ended = True
        if ENDED_SUBTASK in self.names:
            task.again += names
        else:
            task.hand_over(task.known + 1, names)
        task.channel.append(END)

    def _do_answer(self, name: str, said: str, whose: str = "") -> None:
        answers = self.target.answers if whose else self.answers
        answers.setdefault(name, deque()).append(said)

    def _do_barrier(self, subtask: str, checkpoint: str, names: str) -> None:
        task = self.tasks[int(subtask)]
        if self.pending != int(checkpoint):
            self.blocked.clear()
            self.pending = int(checkpoint)
            if LATE_NOTICE in self.names:
                self._tell_all(self.completed)
        again, task.again = task.again, []
        if again or not task.is_ended or ENDED_SUBTASK in self.names:
            task.hand_over(self.pending, again + parts(names))
        task.taken = (deepcopy(task.held), task.is_ended)
        task.channel.append(self.pending)
        self._flow()

    def _do_end(self, subtask: str, names: str) -> None:
        self._end(self.tasks[int(subtask)], parts(names))
        self._flow()

    def _do_abort(self, checkpoint: str) -> None:
        self.pending = 0
        self.blocked.clear()
        self._flow()
        holding = [task for task in self.tasks if int(checkpoint) in task.held]
        is_whole = len(holding) == self.subtasks
        if (ABORTED_APART if is_whole else PARTLY_TAKEN) in self.names:
            for task in holding:
                task.again = task.held.pop(int(checkpoint)) + task.again

    def _do_complete(self, checkpoint: str, how: str = "") -> None:
        self.completed = int(checkpoint)
        stored = self.stored[self.completed]
        of_tasks = [
            {number: {task: names}}
            for task, (held, _) in stored.tasks.items()
            for number, names in held.items()
        ]
        self.tell_state(checkpoint, [stored.collected, *of_tasks])
        if not how:
            self._tell_all(self.completed)

    def _do_told(self, checkpoint: str, only: str = "") -> None:
        newest = self.completed if LATE_NOTICE in self.names else int(checkpoint)
        self._tell_all(newest, int(only) if only else None)

    def _tell_all(self, checkpoint: int, only: int | None = None) -> None:
        for task in self.tasks:
            if only in (None, task.number):
                self._tell(task, checkpoint)

    def _tell(self, task: Task, checkpoint: int) -> None:
        """A committer learns that a checkpoint is completed."""
        task.newest = max(task.newest, checkpoint)
        for number in sorted(number for number in task.held if number <= task.newest):
            done = self.try_all(task.held[number], self.tries, task.target)
            task.channel.append((number, done))
            del task.held[number]
        self._flow()

    def _flow(self) -> None:
        """Take what the channels hold, as far as barriers let it through."""
        while True:
            for task in self.tasks:
                while task.channel and task.number not in self.blocked:
                    self._take(task, task.channel.popleft())
            if len(self.blocked) < self.subtasks:
                return
            taken = {task.number: task.taken for task in self.tasks}
            self.stored[self.pending] = Stored(deepcopy(self.collected), taken)
            self.blocked.clear()

    def _take(self, task: Task, item: Item) -> None:
        match item:
            case str():
                self.ended += 1
            case int() if item == self.pending:
                self.blocked.add(task.number)
            case (checkpoint, names) if self.ended < self.subtasks or PAST_THE_END in self.names:
                self.collected.setdefault(checkpoint, {})[task.number] = names
                self.newest = max(self.newest, checkpoint)
                self._commit_globally()

    def _commit_globally(self) -> None:
        """Every checkpoint up to the newest that it has heard of, oldest first."""
        for number in sorted(number for number in self.collected if number <= self.newest):
            held = self.collected[number]
            if len(held) < self.subtasks:
                return
            names = [name for subtask in sorted(held) for name in held[subtask]]
            self.try_all(names, self.tries, self.target)
            del self.collected[number]
