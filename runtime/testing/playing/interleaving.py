"""The stage on which steps of the closed job begin while the events of earlier ones wait.

In a step of the closed job the surroundings act, and what they say to the driver is processed to
its end before the next step begins. In production it waits in the event queue: behind what was said
before, in front of what is said next; and what its effects lead to waits behind both, but for the
answers that a port declares to be in the event. Here the
closed job's machines have such a queue too::

    begin("process[0].hear")     the surroundings act, here and there; an event waits in each queue
    begin("store.finish_save")   another waits behind it
    process()                    the first one is processed, and what follows waits behind both

After each of these the machines have to be the same on both sides. Once no event waits, what is
possible next has to be the same as well, and all claims of the closed job hold.

Not in the queue is what happens in worker processes, and what the machine of a snapshot without a
checkpoint does inside an event. Left out are a few steps that the closed job can take only where
nothing waits; `NOT_BEHIND_ANY` and `NOT_BEHIND` say why. What a step demands of itself, that a
checkpoint fails in this very step or that a process is sent away, is dropped: another event may
come first. A system needs room for one checkpoint more than are wanted, since a request may wait
until the last one is over, and for receipts of which the model waits in vain: the coordinator may
be half built before a receipt that waits is sent.
"""

from __future__ import annotations

from collections import deque

from epochgate.fsm.checker.engines.interpreted import FAULTS
from epochgate.fsm.checker.schedule import ClaimBroken, told
from epochgate.fsm.machine import Machine
from epochgate.fsm.run_to_completion import Call
from epochgate.models.closed.job import ClosedJob
from epochgate.models.holder import BROKEN
from epochgate.models.lifecycle import RESTARTING
from epochgate.runtime.testing.fuzzing.record import InvariantViolated
from epochgate.runtime.testing.playing.stage import Diverged, ProductionStage

ELSEWHERE = ("task", "send_window")
"""Machines that run in worker processes, and where a coordinator sends."""
ASIDE = ("batch_snapshot",)
"""Machines of a system of their own, whose triggers are fired where an effect asks for it."""
FAILURES = ("user.fail_everything", "user.fail_for_good")
REQUESTS = ("requester.want", "requester.ask")

NOT_BEHIND_ANY = {
    "stale.arrive": "what is stale is told by the state, which an event that waits may change",
    "names.wrap": "numbers are used again where nothing is under way, events that wait included",
    "user.get_ready": "how a start ended waits in front of all that was said after the start",
    "user.fail_to_start": "how a start ended waits in front of all that was said after the start",
    "user.fail_to_start_for_good": "the same holds for a start that none can follow",
    "process.usurp": "the closed job forgets the end of a process that is replaced, and the driver "
    "has to hear of it where it has told the process to leave",
}
"""Steps that begin only while no event waits, and why."""
FIRST = ("person.cancel",)
"""Steps of which the events wait in front of all others."""
NOT_BEHIND = {
    "process.tell": ("process.lose_event",),
    "sender.send": ("stale.arrive",),
    **dict.fromkeys(REQUESTS, REQUESTS),
    **dict.fromkeys(FAILURES, FAILURES),
}
"""Steps that do not begin while one of these waits. In the closed job the driver knows that an
event is lost before the process can miss it, a send of an attempt that is gone counts in the
window of the gateway until it is turned away, and the checkpoints that are wanted are counted by
those that have begun. The closed job has no fence around a coordinator that is about to be
recreated or reset, since the runtime drops what such a coordinator has said; therefore no
coordinator fails while the job restarts and events wait.
"""


class QueuedModel:
    """The machines of a closed job, driven by a queue as those of a production job are."""

    def __init__(self, system: ClosedJob) -> None:
        self._system = system
        self._waiting: deque[Call] = deque()
        self._in_event = {
            name
            for machine in system.MACHINES.values()
            for field in machine.PORTS.values()
            for message in field.port.messages()
            if (answers := field.port.answers(message)) is not None and answers.success
            for name in answers.all
            if answers.is_in_event
        }
        """The triggers by which handlers answer before any other event."""

    def begin(self, machine: Machine, trigger: str, is_first: bool) -> int:
        """Let the surroundings take their part of a step; how many events wait because of it."""
        getattr(machine, trigger)()
        added = self._settle(ELSEWHERE)
        self._drop_demands()
        if is_first:
            self._waiting.rotate(added)
        return added

    def _drop_demands(self) -> None:
        self._system.store.is_failure_due = False
        self._system.requester.is_late = False
        for process in self._system.process:
            process.is_unwanted = process.is_measured = False
        for sender in self._system.sender.values():
            sender.is_sending = False

    def process(self) -> int:
        """Process the oldest event with its effects; how many wait because of it."""
        fire, call = self._waiting.popleft()
        fire(*call)
        return self._settle((*ELSEWHERE, *ASIDE))

    def _settle(self, at_once: tuple[str, ...]) -> int:
        system, before = self._system, len(self._waiting)
        kinds = tuple(system.MACHINES[name] for name in at_once if name in system.MACHINES)
        system.settle(only_effects=True)
        while system.outer_queue:
            fire, call = system.outer_queue.popleft()
            if isinstance(call[0], kinds) or fire.__name__ in self._in_event:
                fire(*call)
                system.settle(only_effects=True)
            else:
                self._waiting.append((fire, call))
        return len(self._waiting) - before


class InterleavedStage(ProductionStage):
    """Plays on a production job with the constants and machines of `system`, event by event.

    Raises NotPlayable.
    """

    def __init__(self, system: ClosedJob) -> None:
        super().__init__(system)
        self._closed, self._model = system, QueuedModel(system)
        self._instances = dict(zip(self._actions, system.step_instances(), strict=True))
        self.waiting: deque[tuple[str, int, int]] = deque()
        """What has happened and is not processed: its name, its events there and here."""

    def possible(self) -> list[str]:
        """The steps that may begin now; raises Diverged if no event waits and they differ.

        While events wait, a timer that has fired is gone here and can elapse again there: then what
        both have something for is possible.
        """
        if not self.waiting:
            return super().possible()
        found = self.really_possible()
        return [s for s in self.machines.possible() if s in found and self._may_wait(s)]

    def _may_wait(self, step: str) -> bool:
        key, index = self._actions[step]
        waiting = {self._actions[name][0] for name, *_ in self.waiting if name in self._actions}
        if key in NOT_BEHIND_ANY or waiting.intersection(NOT_BEHIND.get(key, ())):
            return False
        # One of the events that wait may take the coordinator back, and with it what it has said.
        is_behind_a_restore = self._closed.lifecycle.state == RESTARTING
        is_broken = key in FAILURES and self._closed.holder[index[0]].state == BROKEN
        return key not in FAILURES or not (is_behind_a_restore or is_broken)

    def take(self, step: str) -> None:
        """Begin a step, and process all that waits."""
        self.begin(step)
        while self.waiting:
            self.process()

    def begin(self, step: str) -> None:
        """Let a step happen; what it tells the driver waits. Raises ClaimBroken and Diverged."""
        known, machine = self._instances[step]
        key, index = self._actions[step]
        before = self.job.master.queue.waiting
        try:
            there = self._model.begin(machine, known.trigger, key in FIRST)
        except FAULTS as fault:
            raise ClaimBroken(f"{step}: {told(fault)}") from fault
        self.actions[key].begin(self.job, *index)
        queue = self.job.master.queue
        self._look(step, step, there, queue.waiting - before)
        if key in FIRST and (there or queue.waiting > before):
            self.waiting.rotate(1)

    def process(self) -> str:
        """Process the oldest of what waits, here and there; returns its name.

        Raises ClaimBroken for what the runtime shows or a machine refuses, and Diverged.
        """
        step, there, here = self.waiting.popleft()
        queue = self.job.master.queue
        before = queue.waiting - here
        try:
            follow = sum([self._model.process() for _ in range(there)])
        except FAULTS as fault:
            raise ClaimBroken(f"{step}: {told(fault)}") from fault
        try:
            for _ in range(here):
                self.job.process_event()
            self.job.look()
        except InvariantViolated as violated:
            raise ClaimBroken(str(violated)) from None
        except Exception as error:
            # Whatever it is, in production the queue would have stopped with it.
            raise ClaimBroken(f"the job master has stopped: {error}") from error
        self._look(step, f"what follows from {step}", follow, queue.waiting - before)
        return step

    def _look(self, step: str, follows: str, there: int, here: int) -> None:
        """Compare both sides, and remember what waits because of a step."""
        if there or here:
            self.waiting.append((follows, there, here))
        if different := self.differences():
            raise Diverged(f"after {step}: {different[0]}")
        if not self.waiting:
            self._expect_claims(step)

    def _expect_claims(self, step: str) -> None:
        try:
            self.machines.words()  # finds what has left its bound
        except FAULTS as fault:
            raise ClaimBroken(f"after {step}: {told(fault)}") from fault
        self.machines.expect_claims()
