"""The in-process transport: tasks as objects, moved by a scheduler one message or one piece of work
at a time.

Every moment at which a message can be on its way, a process can die or a new one can appear is
reachable, because nothing moves unless `step` moves it. It keeps the transport's contract, except
that a process may live on without a connection; faults of single messages are the affair of
`FaultyTransport`. Messages are packed and unpacked as on Spark's wire, at the same moments: those
to a task when they are sent, those of a task when it has handled a message or done a piece of work.
What cannot be packed has the same consequence. Used by simulation and tests, on the thread that
steps it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from epochgate.fsm import Clock, VirtualClock
from epochgate.runtime.api.operator import Program, Work
from epochgate.runtime.api.packing import (
    PACK_ERRORS,
    PACKERS,
    PayloadNotPlain,
    unpacked,
    why_unsent,
)
from epochgate.runtime.api.plain_values import ValueNotPlain, insist_on_plain_events
from epochgate.runtime.api.raised import let_pass
from epochgate.runtime.api.transport import Message, TaskInbox, Transport
from epochgate.runtime.shell.worker import Worker
from epochgate.runtime.tracing.file_journal import Tracing

_log = logging.getLogger(__name__)
PIECES_PER_WAKE_UP = 50
UNHEARD_MAX = 1024
"""Messages on their way to the driver from which on a process does no work, as on Spark's wire."""


@dataclass
class Process:
    """A simulated process: its worker, and the messages on their way to and from it."""

    subtask: int
    identity: int
    worker: Worker
    said: list[Message]
    """What the task has said in the step under way, as its own objects."""
    to_task: deque[Message] = field(default_factory=deque)
    to_driver: deque[Message] = field(default_factory=deque)
    is_connected: bool = False
    is_alive: bool = True
    is_cut: bool = False
    """Its connection is gone; it lives on, and what it says may arrive late."""
    loss_reason: str | None = None
    """Set once the process or its connection is gone, until the driver has been told."""
    is_reported: bool = False

    def steps(self) -> list[str]:
        """The kinds of what can happen to it next, in a fixed order."""
        kinds = []
        if self.is_alive and not self.is_connected:
            kinds.append("connect")
        elif self.to_driver:
            kinds.append("hear")
        if self.loss_reason is not None and (self.is_cut or not self.to_driver):
            kinds.append("lose")
        if self.is_alive and self.is_connected:
            if self.to_task:
                kinds.append("tell")
            if not self.worker.is_over and len(self.to_driver) < UNHEARD_MAX:
                kinds.append("work")
        return kinds


Step = tuple[str, int]
"""What can happen next, and to the process of which identity."""


class InProcessTransport(Transport):
    """Brings up one process for each deployment; `program` makes what each runs, and `clock` is
    that of its wake-ups, one that stands still if none is given; `tracing` is where each writes.
    `on_broken(reason)` is called when a message of the driver cannot be packed: the job must then
    end as failed. Without it `send` raises RuntimeError. `on_unreadable(reason)` is told of a
    message that its receiver refuses, and so ends the process.
    """

    on_broken: Callable[[str], None]
    on_unreadable: Callable[[str], None]

    def __init__(
        self,
        program: Callable[[int], Program],
        *,
        parallelism: int,
        coordinators: list[str],
        run_id: str,
        clock: Clock | None = None,
        tracing: Tracing | None = None,
        commits_in_tasks: bool = False,
    ) -> None:
        self._program, self._parallelism = program, parallelism
        self._clock = VirtualClock() if clock is None else clock
        self._coordinators, self._run_id, self._tracing = coordinators, run_id, tracing
        self._commits_in_tasks = commits_in_tasks
        self._inbox: TaskInbox | None = None
        self._identity = 0
        self.on_broken = _raise
        self.on_unreadable = _pass
        self.processes: dict[int, Process] = {}
        self.released: dict[int, int] = {}
        """Subtask -> the process that was released, until another is brought up or connects."""

    @property
    def inbox(self) -> TaskInbox:
        """The inbox to which this reports; raises RuntimeError before `open`."""
        if self._inbox is None:
            raise RuntimeError("the transport is not open; start the job master first")
        return self._inbox

    def open(self, inbox: TaskInbox) -> None:
        """Begin."""
        self._inbox = inbox

    def deploy(self, subtask: int, attempt: int) -> None:
        """Bring a process up, which connects in a later step."""
        self.launch(subtask)

    def launch(self, subtask: int) -> int:
        """Bring up a process that may not be wanted, as Spark does after a retry; its identity."""
        self._identity += 1
        self.released.pop(subtask, None)
        said: list[Message] = []
        worker = Worker(
            self._program(subtask),
            subtask=subtask,
            parallelism=self._parallelism,
            run_id=self._run_id,
            coordinators=self._coordinators,
            send=said.append,
            clock=self._clock,
            journal=None if self._tracing is None else self._tracing.task(subtask, self._identity),
            commits_in_tasks=self._commits_in_tasks,
        )
        self.processes[self._identity] = Process(subtask, self._identity, worker, said)
        return self._identity

    def send(self, subtask: int, identity: int, message: Message) -> None:
        """Put a message on its way."""
        process = self.processes.get(identity)
        if process is None or not process.is_alive or process.is_cut:
            return
        try:
            process.to_task.append(_carried(message))
        except PayloadNotPlain as error:
            self._refuse(process, error)
        except PACK_ERRORS as error:
            reason = why_unsent(message[0], error)
            self.on_broken(f"a message for the task of subtask {subtask} cannot be sent: {reason}")

    def flush(self) -> None:
        """Nothing is buffered here."""

    def release(self, subtask: int, identity: int, reason: str) -> None:
        """Kill the process, unless it cannot be reached; `launch` lets it come back."""
        if identity in self.living():
            self.released[subtask] = identity
        self.end(subtask, identity, reason)

    def end(self, subtask: int, identity: int, reason: str) -> None:
        """Kill the process, unless it cannot be reached."""
        process = self.processes.get(identity)
        if process is not None and not process.is_cut:
            self.kill(identity, reason)

    def kill(self, identity: int, reason: str = "killed") -> None:
        """End a process at once: what is on its way to it is gone, what it said may arrive."""
        process = self.processes.get(identity)
        if process is not None and process.is_alive:
            self._die(process, reason)

    def cut(self, identity: int, reason: str = "its connection broke") -> None:
        """Break the connection of a process that lives on: a zombie, whose words arrive late."""
        process = self.processes[identity]
        if process.is_alive and process.is_connected and not process.is_cut:
            process.is_cut = True
            process.loss_reason = reason

    def living(self, is_connected: bool = False) -> list[int]:
        """The identities of the processes that live and can be reached, or only of those whose
        connection stands.
        """
        return [
            identity
            for identity, process in self.processes.items()
            if process.is_alive
            and not process.is_cut
            and (process.is_connected or not is_connected)
        ]

    def close(self) -> None:
        """End everything."""
        for process in self.processes.values():
            if process.is_alive:
                process.is_alive = False
                self._close(process)
        self.processes.clear()

    def steps(self) -> list[Step]:
        """Everything that can happen next, in a fixed order."""
        steps: list[Step] = []
        for identity, process in self.processes.items():
            steps += [(kind, identity) for kind in process.steps()]
        return steps

    def can(self, kind: str, identity: int) -> bool:
        """Return whether this is one of `steps`."""
        process = self.processes.get(identity)
        return process is not None and kind in process.steps()

    def next_due_s(self) -> float | None:
        """Return when the next wake-up of a process that may work is due; None without."""
        due_s = [
            process.worker.wake_up.due_s
            for process in self.processes.values()
            if "work" in process.steps()
        ]
        return min((at_s for at_s in due_s if at_s is not None), default=None)

    def wake(self) -> None:
        """Let the processes whose wake-up is due work until they are idle, as a task does; one that
        always finds more to do is left to `step`.
        """
        for identity, process in list(self.processes.items()):
            if process.worker.wake_up.in_s() == 0.0:
                for _ in range(PIECES_PER_WAKE_UP):
                    if not (self.can("work", identity) and self.step("work", identity)):
                        break

    def step(self, kind: str, identity: int) -> bool:
        """Let one thing happen; False when nothing did (an idle, silent subtask)."""
        process = self.processes[identity]
        if kind == "connect":
            process.is_connected = True
            self.released.pop(process.subtask, None)
            self.inbox.connected(process.subtask, identity)
        elif kind == "hear":
            self._hear(process)
        elif kind == "tell":
            self._tell(process)
        elif kind == "lose":
            self._lose(process)
        else:
            outcome = process.worker.work()
            has_spoken = bool(process.said)
            self._carry(process)
            return has_spoken or outcome is not Work.IDLE
        return True

    def _hear(self, process: Process) -> None:
        message = process.to_driver.popleft()
        self.inbox.received(process.subtask, process.identity, [message])
        self._forget_if_gone(process)

    def _tell(self, process: Process) -> None:
        message = process.to_task.popleft()
        process.worker.handle([message])
        self._carry(process)

    def _carry(self, process: Process) -> None:
        """Put what a task has said on its way, all of it or nothing; one that cannot is over."""
        said = process.said
        if said:
            try:
                process.to_driver.extend(_carried(said))
            except PayloadNotPlain as error:
                self._refuse(process, error)
            except PACK_ERRORS as error:
                process.to_driver.append(["failed", self._blamed(said, error), True])
                self._die(process, "the process has left")
            said.clear()
        self._leave_if_over(process)

    def _refuse(self, process: Process, error: PayloadNotPlain) -> None:
        self.on_unreadable(str(error))
        self._die(process, str(error))

    def _blamed(self, said: list[Message], error: Exception) -> str:
        """Say which operator has sent what cannot be packed."""
        try:
            insist_on_plain_events(said, self._coordinators)
        except ValueNotPlain as blamed:
            return str(blamed)
        return why_unsent(said[0][0], error)

    def _lose(self, process: Process) -> None:
        reason, process.loss_reason = process.loss_reason, None
        process.is_reported = True
        if process.is_connected:
            self.inbox.lost(process.subtask, process.identity, reason or "killed")
        else:
            self.launch(process.subtask)  # the one that was asked for never came: try again
        self._forget_if_gone(process)

    def _die(self, process: Process, reason: str) -> None:
        process.is_alive = False
        process.to_task.clear()
        if not process.is_reported and process.loss_reason is None:
            process.loss_reason = reason
        self._close(process)
        self._forget_if_gone(process)

    def _close(self, process: Process) -> None:
        try:
            process.worker.close()
        except BaseException as error:  # noqa: BLE001  # as on Spark: the attempt is over
            let_pass(error)
            _log.exception("an operator of subtask %d failed to close", process.subtask)

    def _forget_if_gone(self, process: Process) -> None:
        is_told = process.is_reported and not process.to_driver
        if not process.is_alive and is_told:
            self.processes.pop(process.identity, None)

    def _leave_if_over(self, process: Process) -> None:
        if process.worker.is_over and process.is_alive:
            self._die(process, "the process has left")


def _carried(value: list[Any]) -> list[Any]:
    """Return what arrives of a message, or of several. Raises PACK_ERRORS, and PayloadNotPlain,
    which is one of them, where only the receiver refuses it.
    """
    arrived: list[Any] = unpacked(PACKERS.packer.pack(value))
    return arrived


def _raise(reason: str) -> None:
    raise RuntimeError(reason)


def _pass(reason: str) -> None:
    """The loss of the process says so."""
