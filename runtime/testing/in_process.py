"""The in-process transport: tasks as objects, moved by a scheduler one message or one piece of work
at a time.

Every moment at which a message can be on its way, a process can die or a new one can appear is
reachable, because nothing moves unless `step` moves it. It keeps the transport's contract, and by
order breaks it: acknowledgements that are lost, repeated or late, events that get lost, processes
that live on without a connection. Used by simulation and tests, on the thread that steps it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from epochgate.runtime.api.operator import Program, Work
from epochgate.runtime.api.transport import Message, TaskInbox, Transport
from epochgate.runtime.shell.worker import Worker

FATES = {
    "acknowledge": ("late", "repeated", "lost", "declined", "garbled"),
    "confirm": ("late", "repeated", "lost", "garbled"),
    "event": ("lost",),
}
"""What can become of the next message with this tag: `event` on the way to a task, the others on
the way to the driver. `late` and `repeated` leave a copy that arrives by a step of its own."""

HEARD_MAX = 16


@dataclass
class Process:
    """A simulated process: its worker, and the messages on their way to and from it."""

    subtask: int
    identity: int
    worker: Worker
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
            if not self.worker.is_over:
                kinds.append("work")
        return kinds


Step = tuple[str, int]
"""What can happen next, and to the process of which identity (`late`: to which late message)."""


class InProcessTransport(Transport):
    """Brings up one process for each deployment; `program` makes what each runs."""

    def __init__(
        self,
        program: Callable[[int], Program],
        *,
        parallelism: int,
        coordinators: list[str],
        run_id: str,
    ) -> None:
        self._program, self._parallelism = program, parallelism
        self._coordinators, self._run_id = coordinators, run_id
        self._inbox: TaskInbox | None = None
        self._identity = 0
        self.processes: dict[int, Process] = {}
        self.fates: dict[str, deque[str]] = {tag: deque() for tag in FATES}
        self.late: list[tuple[int, int, Message]] = []
        self.heard: deque[tuple[int, int, Message]] = deque(maxlen=HEARD_MAX)
        """The last acknowledgements and confirmations that arrived, for `repeat`."""

    @property
    def inbox(self) -> TaskInbox:
        """Where this reports; raises RuntimeError before `open`."""
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
        to_driver: deque[Message] = deque()
        worker = Worker(
            self._program(subtask),
            subtask=subtask,
            parallelism=self._parallelism,
            run_id=self._run_id,
            coordinators=self._coordinators,
            send=to_driver.append,
        )
        process = Process(subtask, self._identity, worker, to_driver=to_driver)
        self.processes[self._identity] = process
        return self._identity

    def send(self, subtask: int, identity: int, message: Message) -> None:
        """Put a message on its way."""
        process = self.processes.get(identity)
        if process is not None and process.is_alive and not process.is_cut:
            process.to_task.append(message)

    def flush(self) -> None:
        """Nothing is buffered here."""

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

    def doom(self, tag: str, fate: str) -> None:
        """Decide what becomes of the next message with `tag` that would arrive.

        Raises ValueError for what is not in `FATES`.
        """
        if fate not in FATES.get(tag, ()):
            raise ValueError(f"{tag!r} cannot be {fate!r}; possible are {FATES}")
        self.fates[tag].append(fate)

    def repeat(self, position: int) -> None:
        """Let a message of `heard` arrive once more, whoever speaks for its subtask now."""
        subtask, identity, message = self.heard[position]
        self.inbox.received(subtask, identity, [list(message)])

    def calm(self) -> None:
        """Forget the fates that no message has met."""
        for fates in self.fates.values():
            fates.clear()

    def close(self) -> None:
        """End everything."""
        for process in self.processes.values():
            if process.is_alive:
                process.is_alive = False
                process.worker.close()
        self.processes.clear()
        self.late.clear()

    def steps(self) -> list[Step]:
        """Everything that can happen next, in a fixed order."""
        steps: list[Step] = [("late", position) for position in range(len(self.late))]
        for identity, process in self.processes.items():
            steps += [(kind, identity) for kind in process.steps()]
        return steps

    def can(self, kind: str, identity: int) -> bool:
        """Whether this is one of `steps`."""
        if kind == "late":
            return identity < len(self.late)
        process = self.processes.get(identity)
        return process is not None and kind in process.steps()

    def step(self, kind: str, identity: int) -> bool:
        """Let one thing happen; False when it came to nothing (an idle, silent subtask)."""
        if kind == "late":
            subtask, sender, message = self.late.pop(identity)
            self.inbox.received(subtask, sender, [message])
            return True
        process = self.processes[identity]
        if kind == "connect":
            process.is_connected = True
            self.inbox.connected(process.subtask, identity)
        elif kind == "hear":
            self._hear(process)
        elif kind == "tell":
            self._tell(process)
        elif kind == "lose":
            self._lose(process)
        else:
            unheard = len(process.to_driver)
            outcome = process.worker.work()
            has_spoken = len(process.to_driver) > unheard
            self._leave_if_over(process)
            return has_spoken or outcome is not Work.IDLE
        return True

    def _fate(self, message: Message) -> str | None:
        fates = self.fates.get(message[0])
        return fates.popleft() if fates else None

    def _hear(self, process: Process) -> None:
        message = process.to_driver.popleft()
        fate = self._fate(message) if message[0] != "event" else None
        if fate in ("late", "repeated"):
            self.late.append((process.subtask, process.identity, list(message)))
        heard: Any = message
        if fate == "declined":
            heard = ["decline", message[1], "by order of the test"]
        elif fate == "garbled":
            heard = [message[0]]
        if fate not in ("late", "lost"):
            self.inbox.received(process.subtask, process.identity, [heard])
        if message[0] in FATES and message[0] != "event":
            self.heard.append((process.subtask, process.identity, list(message)))
        self._forget_if_gone(process)

    def _tell(self, process: Process) -> None:
        message = process.to_task.popleft()
        if message[0] == "event" and self._fate(message) == "lost":
            return
        process.worker.handle([message])
        self._leave_if_over(process)

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
        process.worker.close()
        self._forget_if_gone(process)

    def _forget_if_gone(self, process: Process) -> None:
        is_told = process.is_reported and not process.to_driver
        if not process.is_alive and is_told:
            self.processes.pop(process.identity, None)

    def _leave_if_over(self, process: Process) -> None:
        if process.worker.is_over and process.is_alive:
            self._die(process, "the process has left")
