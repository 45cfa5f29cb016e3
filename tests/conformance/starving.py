"""Loops in which Flink's holder lets no checkpoint complete although nothing fails any more.

Each breaks I6 of docs/protocol.md: checkpoints keep completing once failures stop. A loop is what
stands around the holder: its coordinator, whose answers depend on what it is told, and `Master`,
which asks for one checkpoint after the other and does for each what Flink's checkpoint coordinator
does. Both sides are driven by the same loop, so that what differs is theirs.
Decides nothing of the protocol. Runs on whatever thread calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.conformance.account import HALF_MARKED, LATE_SENDS, UNTOLD_NOTICE

COMPLETED, FAILED, EXPIRED = "completed", "failed", "expired"


class Side(Protocol):
    """Flink's holder or ours, behind the line protocol."""

    def run(self, lines: Sequence[str]) -> list[list[str]]: ...


@dataclass
class Coordinator:
    """Answers each question at once."""

    unanswered: list[int] = field(default_factory=list)
    ended: set[int] = field(default_factory=set)
    """The checkpoints of whose end it was told."""

    def hear(self, lines: Sequence[str]) -> None:
        """Lines that came out of the holder."""
        for line in lines:
            match line.split():
                case ["coord", "checkpoint", checkpoint]:
                    self.unanswered.append(int(checkpoint))
                case ["coord", "complete" | "aborted", checkpoint]:
                    self.ended.add(int(checkpoint))

    def answers(self) -> list[str]:
        """The commands that complete the futures it is ready to complete, if any."""
        ready = [checkpoint for checkpoint in self.unanswered if self.is_ready(checkpoint)]
        self.unanswered = [c for c in self.unanswered if c not in ready]
        return [command for checkpoint in ready for command in self.answer(checkpoint)]

    def is_ready(self, checkpoint: int) -> bool:
        return True

    def answer(self, checkpoint: int) -> list[str]:
        return [f"cdone {checkpoint} s{checkpoint}"]


class LastWords(Coordinator):
    """Before each answer it sends to the first attempt of subtask 0, which was replaced; both in
    one step of the main thread.
    """

    def answer(self, checkpoint: int) -> list[str]:
        return ["auto 0", f"send 0 0 x{checkpoint}", *super().answer(checkpoint), "auto 1"]


class OneAtATime(Coordinator):
    """Has something open for each checkpoint that it is asked for, a transaction say, and waits for
    its end before it opens the next.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[int] = set()

    def hear(self, lines: Sequence[str]) -> None:
        super().hear(lines)
        self.asked.update(self.unanswered)

    def is_ready(self, checkpoint: int) -> bool:
        return all(other in self.ended for other in self.asked if other < checkpoint)


@dataclass
class Master:
    """Takes checkpoints one after the other; an id that was refused is asked for again."""

    side: Side
    coordinator: Coordinator
    attempts: dict[int, int]
    """Subtask -> the number of the attempt that runs."""
    next_id: int
    faults: list[str] = field(default_factory=list)
    """What restarts something or was not handled."""

    def say(self, *commands: str) -> list[str]:
        """Have it done, and let the coordinator hear what comes out of it and answer."""
        lines: list[str] = []
        while commands:
            said = [line for answer in self.side.run(commands) for line in answer]
            self.coordinator.hear(said)
            lines += said
            commands = tuple(self.coordinator.answers())
        self.faults += [line for line in lines if line.startswith(("EXC", "GLOBAL", "failover"))]
        return lines

    def checkpoint(self) -> str:
        """Take one, and say how it ended; one that is not decided has reached its timeout."""
        checkpoint = self.next_id
        lines = self.say(f"ckpt {checkpoint}")
        was_asked = f"coord checkpoint {checkpoint}" in lines
        results = [line.split()[2] for line in lines if line.startswith(f"ckptfuture {checkpoint}")]
        self.next_id += was_asked
        if results in ([], ["FAILED"]):
            self.say(f"aborted {checkpoint}", "abort")
            return FAILED if results else EXPIRED
        assert results == [f"s{checkpoint}"], lines
        self.say(
            *(f"ack {subtask} {number} {checkpoint}" for subtask, number in self.attempts.items())
        )
        self.say(f"complete {checkpoint}")
        return COMPLETED


@dataclass(frozen=True)
class Loop:
    """One coordinator, what happens before the failures stop, and what Flink then does for ever."""

    difference: str
    coordinator: type[Coordinator]
    before: tuple[str, ...]
    attempts: tuple[tuple[int, int], ...]
    """Subtask and number of the attempts that run from then on."""
    next_id: int
    flink: str
    """How each checkpoint ends in Flink; with us each completes."""

    def play(self, side: Side, rounds: int) -> tuple[list[str], list[str]]:
        """Return how `rounds` checkpoints in a row end, and what has failed meanwhile."""
        master = Master(side, self.coordinator(), dict(self.attempts), self.next_id)
        for command in self.before:
            master.say(command)
        master.faults.clear()
        return [master.checkpoint() for _ in range(rounds)], master.faults


LOOPS = (
    Loop(
        LATE_SENDS,
        LastWords,
        before=("new 1", "start", "running 0", "reset 0 -1", "running 0"),
        attempts=((0, 1),),
        next_id=1,
        flink=FAILED,
    ),
    Loop(
        UNTOLD_NOTICE,
        OneAtATime,
        before=(
            *("new 1", "start", "running 0", "ckpt 1"),
            *("auto 0", "aborted 1", "reset 0 -1", "auto 1", "running 0"),
        ),
        attempts=((0, 1),),
        next_id=2,
        flink=EXPIRED,
    ),
    Loop(
        HALF_MARKED,
        Coordinator,
        before=(
            *("new 2", "start", "running 0", "running 1", "ckpt 2", "aborted 2"),
            *("reset 0 -1", "running 0", "ckpt 1", "reset 1 -1", "running 1"),
        ),
        attempts=((0, 1), (1, 1)),
        next_id=1,
        flink=FAILED,
    ),
)
