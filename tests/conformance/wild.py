"""Schedules in which the surroundings decide anything at any moment.

What would meet a listed difference is made rare here, not impossible, so that most of a schedule
lies before the first.
"""

from __future__ import annotations

import random

from tests.conformance.account import BATCH, CREATED, RUNNING, Gateway
from tests.conformance.maker import Maker


class Wild(Maker):
    """Failures, resets, aborts, repeated and late messages in no particular order."""

    def __init__(self, chance: random.Random) -> None:
        self.asked: list[int] = []
        self.answered: list[str] = []
        self.rarely = 0.25 if chance.random() < 0.2 else 0.03
        """How often something is done that would meet a listed difference."""
        super().__init__(chance)

    def _send(self) -> None:
        subtask = self.any_subtask()
        attempt = self.attempt(subtask)
        if attempt > 0 and self.happens(0.2):
            attempt = self.chance.randrange(attempt)
        self.send(subtask, attempt)

    def _answer(self) -> None:
        under_way = self.under_way()
        if self.answered and self.happens(0.05):
            self.say(f"sendack {self.chance.choice(self.answered)}")
        elif under_way:
            name = under_way[0] if self.happens(0.4) else self.chance.choice(under_way)
            self.answered.append(name)
            self.say(f"sendack {name}" + " lost" * self.happens(0.08))

    def _ask(self) -> None:
        if self.last > 1 and self.happens(0.03):
            unused = [id for id in range(1, self.last) if id not in self.asked]
            if unused:
                self.say(f"ckpt {self.chance.choice(unused)}")
                return
        self.last += self.chance.choice((1, 1, 1, 2))
        self.asked.append(self.last)
        self.say(f"ckpt {self.last}")

    def _ask_again(self) -> None:
        """An id for which only new gateways can be marked, and once more when all are new."""
        unused = [id for id in range(1, self.last) if id not in self.asked]
        if self.subtasks == 1 or not unused:
            return
        self._replace(0)
        self.say(f"ckpt {unused[0]}")
        for subtask in range(1, self.subtasks):
            self._replace(subtask)
        self.say(f"ckpt {unused[0]}")
        self.asked.append(unused[0])

    def _ask_batch(self) -> None:
        part = self.account.parts.get(BATCH)
        if self.account.is_automatic and (part is None or part.is_over):
            self.say(f"ckpt {BATCH}")

    def _checkpoint_for(self, gateways: list[Gateway]) -> int | None:
        """One of the last checkpoints; rarely one that some of the gateways have not seen."""
        seen = [id for id in self.asked[-3:] if all(g.latest >= id for g in gateways)]
        if seen and not self.happens(self.rarely / 2):
            return self.chance.choice(seen)
        return self.last or 1 if self.happens(self.rarely) else None

    def _complete_future(self) -> None:
        asked = [id for id in (*self.asked[-3:], BATCH) if id in self.account.parts]
        if not asked:
            return
        checkpoint = self.chance.choice(asked)
        marks = {checkpoint in gateway.marked for gateway in self.account.gateways}
        if self.happens(0.06):
            self.say(f"cfail {checkpoint}")
        elif len(marks) == 1 or self.happens(self.rarely):
            self.say(f"cdone {checkpoint} s{checkpoint}")

    def _acknowledge(self) -> None:
        subtask = self.any_subtask()
        attempt = self.attempt(subtask)
        if attempt > 0 and self.happens(0.1):
            attempt -= 1
        gateway = self.account.gateways[subtask]
        if not gateway.held and self.happens(0.7):
            return
        checkpoint = self._checkpoint_for([gateway])
        if checkpoint is not None:
            self.say(f"ack {subtask} {attempt} {checkpoint}")

    def _abort(self) -> None:
        self.say("abort")

    def _notify(self) -> None:
        checkpoint = self._checkpoint_for(self.account.gateways)
        if checkpoint is not None:
            self.say(f"{self.chance.choice(('complete', 'aborted'))} {checkpoint}")

    def _fail(self) -> None:
        self.say(f"fail {self.any_subtask()}")

    def _finish(self) -> None:
        self.say(f"finish {self.any_subtask()}")

    def _reset(self) -> None:
        subtask = self.any_subtask()
        if self.happens(0.5):
            self.say(f"fail {subtask}")
        self._replace(subtask)

    def _recover(self) -> None:
        """A subtask that does not run gets a new attempt, or the one it has runs."""
        stages = [attempt.stage for attempt in self.account.attempts]
        down = [subtask for subtask, stage in enumerate(stages) if stage != RUNNING]
        if not down:
            return
        subtask = self.chance.choice(down)
        if stages[subtask] == CREATED:
            self.say(f"running {subtask}")
        else:
            self._replace(subtask)

    def _replace(self, subtask: int) -> None:
        if not self.happens(4 * self.rarely):
            self.say("auto 1")
            marked = {id for gateway in self.account.gateways for id in gateway.marked}
            self.say(*(f"aborted {id}" for id in sorted(marked) if not self.happens(self.rarely)))
        self.say(f"reset {subtask} {self.completed}")
        if self.happens(0.8):
            self.say(f"running {subtask}")

    def _restore(self) -> None:
        if self.happens(0.5):
            self.say(*(f"fail {subtask}" for subtask in range(self.subtasks)))
        state = f"{self.completed} s{self.completed}" if self.happens(0.6) else "-1"
        self.say(f"restore {state}")
        for subtask in range(self.subtasks):
            if self.happens(0.85):
                self.say(f"running {subtask}")

    def _run(self) -> None:
        self.say(f"running {self.any_subtask()}")

    def _drain(self) -> None:
        self.say("drain")

    KINDS = (
        (_send, 24),
        (_answer, 16),
        (_ask, 9),
        (_ask_batch, 0.7),
        (_ask_again, 0.2),
        (_complete_future, 14),
        (_acknowledge, 16),
        (_abort, 1.5),
        (_notify, 4),
        (_fail, 1.5),
        (_finish, 0.5),
        (_reset, 2),
        (_restore, 1),
        (_recover, 12),
        (_run, 1),
        (Maker.event, 2),
        (Maker.toggle, 6),
        (_drain, 2),
    )
