"""The stages on which the job with concurrent attempts is played: step by step, and event by event
while others wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.concurrent import ConcurrentAttempts
from epochgate.runtime.testing.playing import Diverged
from epochgate.runtime.testing.playing.interleaving import QueuedModel
from epochgate.runtime.testing.playing.stage import shape
from tests.playing.gates import Lie, the_truth
from tests.playing.job_concurrent import ConcurrentWorld
from tests.playing.stage import GatedStage


class ConcurrentStage(GatedStage):
    """Compares channels by their lengths, since futures are in the real ones."""

    def __init__(self, system: ClosedSystem, lie: Lie = the_truth) -> None:
        assert isinstance(system, ConcurrentAttempts)
        self.played = ConcurrentWorld(system, lie)
        super().__init__(system, self.played)

    def take(self, step: str) -> None:
        """Take a step on both sides, and let all be processed that follows."""
        self.machines.take(step)
        act, index = self._acts[step]
        act.do(self.played, *index)
        self.played.settle()
        for different in (*self.differences(), *self.played.unheeded()):
            raise Diverged(f"after {step}: {different}")

    def differences(self) -> Iterator[str]:
        yield from self.differences_of_machines()
        for what, told, really in self.played.facts():
            if told != really:
                yield f"{what} is {told!r} in the model, and really {really!r}"

    def differences_of_machines(self) -> Iterator[str]:
        """Return what is not the same in the machines of both sides."""
        for name, index, real in self.played.machines():
            model = self._machine(name, index)
            for field, value in real.values().items():
                spec = real.FIELDS.get(field)
                told, seen = shape(spec, model.values()[field]), shape(spec, value)
                if told != seen:
                    place = name + "".join(f"[{i}]" for i in index)
                    yield f"{place}.{field} is {told!r} in the model, and really {seen!r}"


class QueuedAttempts(QueuedModel):
    """The machines of the closed system, driven by a queue as those of a production job are."""

    def __init__(self, system: ConcurrentAttempts) -> None:
        super().__init__(system)  # type: ignore[arg-type]  # of another closed system
        self._attempts = system

    def _drop_demands(self) -> None:
        for record in self._attempts.record:
            record.is_due = False


class ConcurrentEvents(ConcurrentStage):
    """Begins steps whose events wait, and processes these one by one."""

    def __init__(self, system: ClosedSystem, lie: Lie = the_truth) -> None:
        super().__init__(system, lie)
        assert isinstance(system, ConcurrentAttempts)
        self._queued = QueuedAttempts(system)
        self._instances = dict(zip(self.steps, system.step_instances(), strict=True))
        self.waiting: deque[tuple[str, int, int]] = deque()
        """What has happened and is not processed: its name, its events there and here."""

    def possible(self) -> list[str]:
        if not self.waiting:
            return super().possible()
        return [step for step in self.machines.possible() if self._is_there(step)]

    def _is_there(self, step: str) -> bool:
        act, index = self._acts[step]
        return bool(act.is_there(self.played, *index))

    def begin(self, step: str) -> None:
        """Let the surroundings act, here and there."""
        known, machine = self._instances[step]
        before = self.played.master.queue.waiting
        there = self._queued.begin(machine, known.trigger, is_first=False)
        act, index = self._acts[step]
        act.do(self.played, *index)
        self._look(step, step, there, self.played.master.queue.waiting - before)

    def process(self) -> None:
        """Process the oldest of what waits. Raises ClaimBroken and Diverged."""
        step, there, here = self.waiting.popleft()
        before = self.played.master.queue.waiting - here
        follow = sum([self._queued.process() for _ in range(there)])
        for _ in range(here):
            self.played.process_event()
        self._look(step, f"what follows from {step}", follow, self._added(before))

    def _added(self, before: int) -> int:
        return self.played.master.queue.waiting - before

    def _look(self, step: str, follows: str, there: int, here: int) -> None:
        if there or here:
            self.waiting.append((follows, there, here))
        found = self.differences_of_machines() if self.waiting else self.differences()
        for different in found:
            raise Diverged(f"after {step}: {different}")
        if not self.waiting:
            self.machines.expect_claims()
