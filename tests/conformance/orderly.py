"""Schedules in which the surroundings keep the order that Flink's scheduler keeps.

Coordinators are asked while all subtasks run; barriers follow when a part is ready, and a second
checkpoint may begin then. A failure aborts what is under way, names the newest as the one that is
being triggered, and everything posted is done before a reset. Calls are answered: a lost event
fails its attempt in the next command, and what an aborted checkpoint waited for is answered before
the next one begins. Acknowledgements and futures of aborted checkpoints come late, others again.
"""

from __future__ import annotations

import random

from tests.conformance.maker import Maker


class Triggered:
    """A checkpoint that is under way."""

    def __init__(self, checkpoint: int, subtasks: int) -> None:
        self.checkpoint = checkpoint
        self.has_future = True
        """The coordinator has not completed its future yet."""
        self.due = list(range(subtasks))


class Orderly(Maker):
    """A job that is checkpointed, fails and recovers."""

    def __init__(self, chance: random.Random) -> None:
        self.triggered: list[Triggered] = []
        self.ended: list[int] = []
        super().__init__(chance)

    def _is_ready(self, checkpoint: Triggered) -> bool:
        return self.account.parts[checkpoint.checkpoint].is_over

    def _settle(self) -> None:
        self.say("auto 1")

    def _send(self) -> None:
        subtask = self.any_subtask()
        self.send(subtask, self.attempt(subtask))

    def _answer(self) -> None:
        under_way = self.under_way()
        if not under_way:
            return
        name = self.chance.choice(under_way)
        if self.happens(0.04):
            self._settle()
            failover = self.say(f"sendack {name} lost")[0]
            self._fail_one(int(failover.split()[1]))
        else:
            self.say(f"sendack {name}")

    def _answer_all(self) -> None:
        while under_way := self.under_way():
            self.say(f"sendack {self.chance.choice(under_way)}")

    def _advance(self) -> None:
        """Ask, complete the future, acknowledge or complete, whichever is next."""
        newest = self.triggered[-1] if self.triggered else None
        if newest is not None and newest.has_future:
            self._complete_future(newest)
        elif newest is None or (len(self.triggered) < 2 and self.happens(0.15)):
            self._settle()
            if newest is None or self._is_ready(newest):
                self.last += 1
                self.triggered.append(Triggered(self.last, self.subtasks))
                self.say(f"ckpt {self.last}")
        elif self._is_ready(self.triggered[0]):
            self._acknowledge(self.triggered[0])

    def _complete_future(self, newest: Triggered) -> None:
        newest.has_future = False
        if self.happens(0.05):
            self._settle()
            self.say(f"cfail {newest.checkpoint}")
            self._give_up()
        else:
            self.say(f"cdone {newest.checkpoint} s{newest.checkpoint}")

    def _acknowledge(self, oldest: Triggered) -> None:
        if oldest.due:
            subtask = oldest.due.pop(self.chance.randrange(len(oldest.due)))
            self.say(f"ack {subtask} {self.attempt(subtask)} {oldest.checkpoint}")
        else:
            self.triggered.remove(oldest)
            self.completed = oldest.checkpoint
            self.say(f"complete {oldest.checkpoint}")

    def _give_up(self) -> None:
        """Abort what is under way, the one that is being triggered first."""
        if self.triggered and not self._is_ready(self.triggered[-1]):
            self.say("abort")
        self.say(*(f"aborted {checkpoint.checkpoint}" for checkpoint in self.triggered))
        self.ended += [checkpoint.checkpoint for checkpoint in self.triggered]
        self.triggered.clear()
        self._answer_all()

    def _expire(self) -> None:
        if self.triggered:
            self._settle()
            self._give_up()

    def _fail(self) -> None:
        self._settle()
        self._fail_one(self.any_subtask())

    def _fail_one(self, subtask: int) -> None:
        self.say(f"fail {subtask}")
        self._give_up()
        self.say(f"reset {subtask} {self.completed}", f"running {subtask}")

    def _fail_all(self) -> None:
        self._settle()
        self.say(*(f"fail {subtask}" for subtask in range(self.subtasks)))
        self._give_up()
        state = f"{self.completed} s{self.completed}" if self.completed else "-1"
        self.say(f"restore {state}")
        self.say(*(f"running {subtask}" for subtask in range(self.subtasks)))

    def _late(self) -> None:
        """The future of a checkpoint that was aborted, or a subtask's acknowledgement of it."""
        if not self.ended:
            return
        checkpoint = self.chance.choice(self.ended[-2:])
        subtask = self.any_subtask()
        if self.happens(0.5):
            self.say(f"cdone {checkpoint} late")
        elif self.account.gateways[subtask].latest >= checkpoint:
            self.say(f"ack {subtask} {self.attempt(subtask)} {checkpoint}")

    def _repeat(self) -> None:
        subtask = self.any_subtask()
        if self.account.gateways[subtask].latest >= self.completed > 0:
            self.say(f"ack {subtask} {self.attempt(subtask)} {self.completed}")

    KINDS = (
        (_send, 26),
        (_answer, 22),
        (_advance, 36),
        (_expire, 1),
        (_fail, 1),
        (_fail_all, 0.5),
        (_late, 2),
        (_repeat, 1),
        (Maker.event, 2),
        (Maker.toggle, 5),
    )
