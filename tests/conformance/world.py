"""One coordinator's machines, the queue of what is posted, and the wires to the subtasks.

Decides nothing of the protocol: a schedule says what happens, and this calls the machines' triggers
in the place where Flink calls its holder. What Flink posts is a step that waits in the queue; what
runs inline there runs at once here, before all that waits. Everything that can be observed is a
line.

The wire is Flink's RPC layer: a call is answered once, whether its attempt has handled the event;
calls of an attempt that ends fail with it. Calls are answered one by one and in any order; the
machine is told of each that is lost, and of the number up to which all are answered, as a receiver
in order would say it. A lost one is among those: whether its attempt goes on is for the schedule to
say. An answer is known when it comes in and has its effect when its step runs, unless an attempt is
replaced before: then it has its effect first, so that nothing overtakes, and the lines that it
brought about keep their place in the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from epochgate.fsm import TransitionRefused
from epochgate.models.gateway import SenderPort
from epochgate.models.snapshot import SnapshotPort
from epochgate.runtime.api.coordinator import BATCH_CHECKPOINT
from tests.conformance.batch import Batch
from tests.conformance.lanes import Lane, Lanes
from tests.conformance.standins import (
    Coordinator,
    HolderAlone,
    SurroundingsPort,
    bind,
    fire,
)
from tests.conformance.wire import Answer, Send, Wire

CREATED, RUNNING, FINISHED, FAILED = "created", "running", "finished", "failed"


class World(SenderPort, SnapshotPort, SurroundingsPort):
    """One holder with its gateways; `lines` is what was observed and not taken yet."""

    def __init__(self, subtasks: int, is_manual: bool, system: type[HolderAlone]) -> None:
        self.lines: list[str] = []
        self.is_manual = is_manual
        self.coordinator = Coordinator(self._say)
        self.lanes = Lanes(lambda: self._made(system, subtasks), lambda s: self.wires[s])
        self.machines = self.lanes.machines
        self.holder = self.machines.holder[0]
        self.stages = [CREATED] * subtasks
        self.is_announced = [False] * subtasks
        self.wires = [Wire(self._call) for _ in range(subtasks)]
        self.unanswered: dict[str, deque[Send]] = {}
        self.undecided: dict[Send, None] = {}
        """Sends that have gone through a gateway, and whose senders do not know their
        outcome."""
        self.queue: deque[Any] = deque()
        self.newest = 0
        self.batch = Batch(self)
        self._lanes_of: dict[int, Lane] = {}
        """Each checkpoint that the coordinator was asked for."""
        self._states: dict[int, str] = {}
        self._answering: Answer | None = None

    def _made(self, system: type[HolderAlone], subtasks: int) -> HolderAlone:
        made = system(subtasks=subtasks)
        for name in ("attempt", "checkpoint", "lifecycle"):
            bind(made, name, "job", self)
        bind(made, "holder", "user", self.coordinator)
        bind(made, "snapshot", "user", self.coordinator)
        bind(made, "snapshot", "results", self)
        bind(made, "gateway", "sender", self)
        return made

    def _say(self, line: str) -> None:
        self.lines.append(line)

    # the queue

    def post(self, step: Callable[..., object], *arguments: Any) -> None:
        self.queue.append((step, arguments))

    def drain(self) -> None:
        """Run what is posted, in order; what is refused is a line, as for an actor that goes on."""
        while self.queue:
            step = self.queue.popleft()
            try:
                if isinstance(step, Answer):
                    self._hear(step)
                elif isinstance(step, list):
                    self.lines += step
                else:
                    step[0](*step[1])
            except TransitionRefused as refused:
                self._say(f"EXC TransitionRefused: {refused}")

    # the coordinator and attempts: what is inline

    def start(self) -> None:
        """The coordinator starts, which it can."""
        fire(self.holder.start)
        fire(self.holder.started)

    def run(self, subtask: int) -> None:
        """The attempt restores or runs; the coordinator hears of it if it still does."""
        if self.stages[subtask] == CREATED:
            self.stages[subtask] = RUNNING
        if not self.is_announced[subtask]:
            self.is_announced[subtask] = True
            if self.stages[subtask] == RUNNING:
                fire(self.holder.attempt_ready, subtask, self.number(subtask))

    def finish(self, subtask: int) -> None:
        self._end(subtask, FINISHED)

    def fail(self, subtask: int) -> None:
        if self.stages[subtask] != FAILED:
            self._end(subtask, FAILED)
            fire(self.holder.attempt_failed, subtask, self.number(subtask), "it has failed")

    def reset(self, subtask: int, checkpoint: int) -> None:
        """A new attempt of one subtask, and what its coordinator hears."""
        self._end(subtask, FAILED)
        self._let_answers_take_effect()
        self._renew(subtask)
        fire(self.holder.subtask_reset, subtask, checkpoint)

    def restore(self, checkpoint: int, state: str) -> None:
        """New attempts of all subtasks, and a coordinator that goes back."""
        for subtask in range(len(self.stages)):
            self._end(subtask, FAILED)
        self._let_answers_take_effect()
        self.coordinator.state = state
        fire(self.holder.reset, checkpoint)
        fire(self.holder.restored)
        for subtask in range(len(self.stages)):
            self._renew(subtask)

    def event(self, subtask: int, attempt: int, event: str) -> None:
        if self._is_refused(subtask, attempt):
            return
        fire(self.holder.event, subtask, attempt, event)

    def acknowledge(self, subtask: int, attempt: int, checkpoint: int) -> None:
        if self._is_refused(subtask, attempt):
            return
        self.lanes.reopen(subtask, checkpoint)

    def number(self, subtask: int) -> int:
        """The number of the subtask's present attempt."""
        return self.machines.attempt[subtask].number

    def _is_refused(self, subtask: int, attempt: int) -> bool:
        if attempt == self.number(subtask) and self.stages[subtask] == RUNNING:
            return False
        self._say(f"EXC TaskNotRunning: attempt {attempt} of {subtask}")
        return True

    def _end(self, subtask: int, stage: str) -> None:
        if self.stages[subtask] != FAILED:
            self.stages[subtask] = stage
            for send in self.wires[subtask].calls:
                self._answer(send, is_ok=False)

    def _renew(self, subtask: int) -> None:
        attempt = self.number(subtask) + 1
        self.stages[subtask], self.is_announced[subtask] = CREATED, False
        self.wires[subtask] = Wire(self._call)
        first = len(self.queue)
        brought = self._captured(lambda: self.lanes.renew(subtask, attempt))
        if brought:  # the part of a checkpoint has failed with the first of the sends given up
            self.queue.insert(first, brought)

    # sending

    def send(self, subtask: int, attempt: int, name: str) -> None:
        """Post a send through a gateway that the coordinator was handed."""
        if (subtask, attempt) not in self.coordinator.gateways:
            self._say(f"EXC no gateway: attempt {attempt} of {subtask} was never ready")
            return
        self.post(self._send, Send(subtask, attempt, name))

    def _send(self, send: Send) -> None:
        self.undecided[send] = None
        self.lanes.send(send)

    def answer(self, name: str, is_ok: bool) -> None:
        """Answer the oldest unanswered call with an event of this name, if there is one."""
        if calls := self.unanswered.get(name):
            self._answer(calls.popleft(), is_ok)

    def _call(self, send: Send) -> None:
        """Call the attempt, which has to run."""
        if self.stages[send.subtask] != RUNNING:
            self._answer(send, is_ok=False)
            return
        self._say(f"deliver {send.subtask} {send.attempt} {send.name}")
        if self.is_manual:
            self.unanswered.setdefault(send.name, deque()).append(send)
        else:
            self._answer(send, is_ok=True)

    def _answer(self, send: Send, is_ok: bool) -> None:
        if send.is_ok is None:
            send.is_ok = is_ok
            self.queue.append(Answer(send))

    def _hear(self, answer: Answer) -> None:
        self._let_take_effect(answer)
        send = answer.send
        if answer.has_fault and (send.attempt, RUNNING) == (
            self.number(send.subtask),
            self.stages[send.subtask],
        ):
            self._say(f"failover {send.subtask} {send.attempt}")
        self.lines += answer.lines or ()
        self._tell_sender(send)

    def _let_answers_take_effect(self) -> None:
        for step in self.queue:
            if isinstance(step, Answer):
                self._let_take_effect(step)

    def _let_take_effect(self, answer: Answer) -> None:
        if answer.lines is None:
            self._answering = answer
            answer.lines = self._captured(lambda: self._tell_gateway(answer.send))
            self._answering = None

    def _tell_gateway(self, send: Send) -> None:
        wire = self.wires[send.subtask]
        if not send.is_ok:
            self.lanes.lose(send)
        if number := wire.number_confirmed_with(send):
            self.lanes.confirm(wire.calls[number - 1])

    def _tell_sender(self, send: Send) -> None:
        del self.undecided[send]
        self.batch.decided(send)
        self._say(f"sent {send.name} {'ok' if send.is_ok else 'FAILED'}")

    def _captured(self, action: Callable[[], object]) -> list[str]:
        outer, self.lines = self.lines, []
        try:
            action()
        finally:
            outer, self.lines = self.lines, outer
        return outer

    # checkpoints: what is posted

    def ask(self, checkpoint: int) -> None:
        self.post(self._ask, checkpoint)

    def _ask(self, checkpoint: int) -> None:
        if checkpoint == BATCH_CHECKPOINT:
            self.batch.ask()
            return
        lane = self.lanes.free()
        if lane is None:
            self._say("EXC TooManyCheckpoints: all lanes are taken by unfinished checkpoints")
            return
        try:
            fire(lane.snapshot.ask, checkpoint)
            self.newest = checkpoint
            self._lanes_of[checkpoint] = lane
        except TransitionRefused as refused:
            self.part_has_failed(checkpoint)
            self._say(f"GLOBAL TransitionRefused: {refused}")

    def future(self, checkpoint: int, state: str | None) -> None:
        """The coordinator's future succeeds with a state, or fails; only the first time counts."""
        if checkpoint not in self.coordinator.futures:
            self._say(f"EXC NoSuchFuture: the coordinator was not asked for {checkpoint}")
            return
        if not self.coordinator.futures[checkpoint]:
            return
        self.coordinator.futures[checkpoint] = False
        if checkpoint == BATCH_CHECKPOINT:
            self.post(self.batch.answer, state)
            return
        self.post(self._answer_part, checkpoint, state)

    def _answer_part(self, checkpoint: int, state: str | None) -> None:
        snapshot = self._lanes_of[checkpoint].snapshot
        if state is None:
            fire(snapshot.fail, checkpoint, "its future has failed")
        else:
            fire(snapshot.succeed, checkpoint, state)

    def abort_triggering(self) -> None:
        """The abort names the checkpoint that was triggered last."""
        self.post(lambda: self._reopen(self.newest))

    def complete(self, checkpoint: int) -> None:
        self.post(self._conclude, checkpoint, self.holder.checkpoint_complete)

    def abort(self, checkpoint: int) -> None:
        self.post(self._conclude, checkpoint, self.holder.checkpoint_aborted)

    def _conclude(self, checkpoint: int, tell: Callable[[int], object]) -> None:
        self._reopen(checkpoint)
        fire(tell, checkpoint)

    def _reopen(self, checkpoint: int) -> None:
        for subtask in range(len(self.stages)):
            self.lanes.reopen(subtask, checkpoint)

    # what the machines ask of their surroundings

    def attempt_is_faulty(self) -> None:
        assert self._answering is not None
        self._answering.has_fault = True

    def part_is_ready(self, checkpoint: int) -> None:
        self._say(f"ckptfuture {checkpoint} {self._states.pop(checkpoint)}")

    def part_has_failed(self, checkpoint: int) -> None:
        self._say(f"ckptfuture {checkpoint} FAILED")

    def job_fails(self) -> None:
        self._say("GLOBAL the coordinator has failed the job")

    # what the machines say through their ports; of calls on the wire the wire tells

    def keep(self, checkpoint: int, state: str) -> None:
        self._states[checkpoint] = state

    def turned_away(self, event: Send) -> None:
        event.is_ok = False
        self.post(self._tell_sender, event)
