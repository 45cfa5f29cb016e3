"""The in-process transport: tasks as objects, moved by a scheduler one message or one piece of work at a time.

Every moment at which a message can be on its way, a process can die or a new one can appear is reachable, because nothing moves
unless `step` moves it. Used by simulation and tests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from epochgate.runtime.operator import Program, Work
from epochgate.runtime.transport import Message, TaskInbox, Transport
from epochgate.runtime.worker import Worker


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
    loss_reason: str | None = None
    """Set once the process or its connection is gone, until the driver has been told."""


Step = tuple[str, int]
"""What can happen next, and to the process of which identity."""


class InProcessTransport(Transport):
    """Brings up one process for each deployment; `program` makes what each runs."""

    def __init__(
        self, program: Callable[[int], Program], *, parallelism: int, coordinators: list[str], run_id: str
    ) -> None:
        self._program, self._parallelism = program, parallelism
        self._coordinators, self._run_id = coordinators, run_id
        self._inbox: TaskInbox | None = None
        self._identity = 0
        self.processes: dict[int, Process] = {}

    @property
    def inbox(self) -> TaskInbox:
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
        if process is not None and process.is_alive:
            process.to_task.append(message)

    def flush(self) -> None:
        """Nothing is buffered here."""

    def end(self, subtask: int, identity: int, reason: str) -> None:
        """Kill the process."""
        self.kill(identity, reason)

    def kill(self, identity: int, reason: str = "killed") -> None:
        """End a process at once: what is on its way to it is gone, what it has sent may still arrive."""
        process = self.processes.get(identity)
        if process is not None and process.is_alive:
            process.is_alive = False
            process.to_task.clear()
            process.loss_reason = reason
            process.worker.close()

    def close(self) -> None:
        """End everything."""
        for process in self.processes.values():
            if process.is_alive:
                process.is_alive = False
                process.worker.close()
        self.processes.clear()

    def steps(self) -> list[Step]:
        """Everything that can happen next, in a fixed order."""
        steps: list[Step] = []
        for identity, process in self.processes.items():
            if process.is_alive and not process.is_connected:
                steps.append(("connect", identity))
            elif process.to_driver:
                steps.append(("hear", identity))
            elif process.loss_reason is not None:
                steps.append(("lose", identity))
            if process.is_alive and process.is_connected:
                if process.to_task:
                    steps.append(("tell", identity))
                if not process.worker.is_over:
                    steps.append(("work", identity))
        return steps

    def step(self, kind: str, identity: int) -> bool:
        """Let one thing happen; False when it came to nothing (work of an idle subtask)."""
        process = self.processes[identity]
        if kind == "connect":
            process.is_connected = True
            self.inbox.connected(process.subtask, identity)
        elif kind == "hear":
            self.inbox.received(process.subtask, identity, [process.to_driver.popleft()])
        elif kind == "tell":
            process.worker.handle([process.to_task.popleft()])
            self._leave_if_over(process)
        elif kind == "lose":
            reason, process.loss_reason = process.loss_reason, None
            del self.processes[identity]
            if process.is_connected:
                self.inbox.lost(process.subtask, identity, reason or "killed")
            else:
                self.launch(process.subtask)  # the one that was asked for never came: try again
        else:
            outcome = process.worker.work()
            self._leave_if_over(process)
            return outcome is not Work.IDLE
        return True

    def _leave_if_over(self, process: Process) -> None:
        if process.worker.is_over and process.is_alive:
            process.is_alive = False
            process.to_task.clear()
            process.loss_reason = "the process has left"
            process.worker.close()
