"""Scenarios of a whole job on the in-process transport: what user code sees is the output."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import msgpack

from epochgate.runtime import (
    Committables,
    Committer,
    CoordinatorContext,
    CoordinatorProvider,
    JobConfiguration,
    Operator,
    OperatorContext,
    OperatorCoordinator,
    Program,
    SubtaskGateway,
    Work,
)
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.store import CheckpointOutcomeUnknown
from epochgate.runtime.testing.faulty_transport import Fate
from epochgate.runtime.testing.simulation import SimulatedJob

Lines = list[str]


class ToldCoordinator(OperatorCoordinator):
    """Does what the scenario says, and tells what it hears."""

    def __init__(self, name: str, context: CoordinatorContext, lines: Lines) -> None:
        self.name, self.context, self.lines = name, context, lines
        self.gateways: dict[int, SubtaskGateway] = {}
        self.old: dict[tuple[int, int], SubtaskGateway] = {}
        self.results: dict[int, Future[bytes]] = {}
        self.sent: list[str] = []
        self.reason = ""

    def start(self) -> None:
        self.lines.append(f"{self.name}: start")

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self.lines.append(f"{self.name}: asked for checkpoint {checkpoint_id}")
        if reason := self.reason:
            self.reason = ""
            raise ValueError(reason)
        self.results[checkpoint_id] = result

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        value = None if state is None else msgpack.unpackb(state)
        self.lines.append(f"{self.name}: reset to checkpoint {checkpoint_id}, {value}")
        self.sent = list(value or ())

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self.lines.append(f"{self.name}: attempt {attempt} of subtask {subtask} is ready")
        self.gateways[subtask] = self.old[subtask, attempt] = gateway

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self.lines.append(f"{self.name}: attempt {attempt} of subtask {subtask}: {reason}")

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        self.lines.append(f"{self.name}: subtask {subtask} goes back to {checkpoint_id}")

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.lines.append(f"{self.name}: checkpoint {checkpoint_id} is complete")

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.lines.append(f"{self.name}: checkpoint {checkpoint_id} is aborted")

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        self.lines.append(f"{self.name}: {event} from attempt {attempt} of subtask {subtask}")

    def close(self) -> None:
        self.lines.append(f"{self.name}: close")


class ToldProvider(CoordinatorProvider):
    def __init__(self, name: str, lines: Lines) -> None:
        self._name, self._lines = name, lines
        self.coordinator: ToldCoordinator

    @property
    def operator_id(self) -> str:
        return self._name

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        self.coordinator = ToldCoordinator(self._name, context, self._lines)
        return self.coordinator


class ToldOperator(Operator):
    def __init__(self, lines: Lines) -> None:
        self.lines, self.seen = lines, list[str]()

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.seen = [] if state is None else list(msgpack.unpackb(state))

    def _say(self, text: str) -> None:
        self.lines.append(f"subtask {self.context.subtask}: {self.context.operator_id} {text}")

    def handle_event(self, event: Any) -> None:
        if event == "poison":
            raise ValueError("it was poison")
        self.seen.append(event)
        self._say(f"handles {event}")

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        return ["".join(self.seen)] if self.seen else []

    def snapshot(self, checkpoint_id: int) -> bytes:
        self._say(f"snapshot {checkpoint_id}: {' '.join(self.seen) or 'nothing'}")
        return bytes(msgpack.packb(self.seen))


class ToldProgram(Program):
    def __init__(self, names: list[str], lines: Lines) -> None:
        self._operators = {name: ToldOperator(lines) for name in names}

    @property
    def operators(self) -> dict[str, ToldOperator]:
        return self._operators

    def work(self) -> Work:
        return Work.IDLE


class ToldCommitter(Committer):
    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self._lines.append(f"committed: {checkpoint_id} {committables}")


class JobWorld:
    """A simulated job; nothing moves unless a command says so."""

    def __init__(self, constants: dict[str, int]) -> None:
        self.lines: Lines = []
        self._constants = constants
        self._names = [f"op{n + 1}" for n in range(constants.get("coordinators", 1))]
        self._providers: list[ToldProvider] = []
        self.simulated = SimulatedJob(
            self._configuration,
            lambda _: ToldProgram(self._names, self.lines),
            committer=lambda: ToldCommitter(self.lines),
        )

    def _configuration(self, start: int) -> JobConfiguration:
        self._providers = [ToldProvider(name, self.lines) for name in self._names]
        return JobConfiguration(
            "scenario",
            self._constants.get("subtasks", 1),
            tuple(self._providers),
            checkpoint_interval_s=None,
            checkpoint_timeout_s=10.0,
            tolerable_checkpoint_failures=self._constants.get("tolerable", 3),
            restart_strategy=FixedDelay(self._constants.get("restarts", 10), 1.0),
        )

    def _coordinator(self, number: int) -> ToldCoordinator:
        return self._providers[number - 1].coordinator

    def do_up(self) -> None:
        """Let everything come up, silently."""
        self.simulated.settle()
        self.lines[:] = ["the job runs"]

    def do_flow(self, *held: str) -> None:
        """Let everything move, but for these kinds of steps."""
        self.simulated.flow(held)

    def do_step(self, kind: str, identity: int) -> None:
        """One message, or one process."""
        self.simulated.step((kind, identity))
        self.simulated.drain()

    def do_send(self, coordinator: int, subtask: int, *events: str) -> None:
        """Send, and let the job master process that."""
        told = self._coordinator(coordinator)
        for event in events:
            told.sent.append(event)
            told.gateways[subtask].send_event(event)
        self.simulated.drain()

    def do_send_to_attempt(self, coordinator: int, subtask: int, attempt: int, event: str) -> None:
        """Send through the gateway of an attempt of the past."""
        future = self._coordinator(coordinator).old[subtask, attempt].send_event(event)
        self.simulated.drain()
        error = future.exception()
        self.lines.append("on its way" if error is None else str(error))

    def do_checkpoint(self) -> None:
        """Ask for one."""
        wanted = self.simulated.master.request_checkpoint()
        wanted.add_done_callback(
            lambda done: self.lines.append(f"asked for: {done.exception() or done.result()}")
        )
        self.simulated.drain()

    def do_complete(self, coordinator: int, checkpoint: int) -> None:
        """A coordinator's future succeeds with what it has sent."""
        told = self._coordinator(coordinator)
        told.results[checkpoint].set_result(msgpack.packb(told.sent))
        self.simulated.drain()

    def do_break(self, coordinator: int, checkpoint: int, reason: str) -> None:
        """A coordinator's future fails."""
        self._coordinator(coordinator).results[checkpoint].set_exception(ValueError(reason))
        self.simulated.drain()

    def do_raise_next(self, coordinator: int, reason: str) -> None:
        """A coordinator raises when it is asked for its next checkpoint."""
        self._coordinator(coordinator).reason = reason

    def do_fail_job(self, coordinator: int, reason: str) -> None:
        """A coordinator fails the job."""
        self._coordinator(coordinator).context.fail_job(reason)
        self.simulated.drain()

    def do_wait(self, seconds: int) -> None:
        """Time passes."""
        self.simulated.wait(seconds)
        self.simulated.drain()

    def do_kill(self, identity: int) -> None:
        """A process dies; the driver has not heard of it."""
        self.simulated.transport.kill(identity)

    def do_cut(self, identity: int) -> None:
        """A connection breaks; the process lives on."""
        self.simulated.transport.cut(identity)

    def do_launch(self, subtask: int) -> None:
        """A process comes up that nobody asked for."""
        self.lines.append(f"process {self.simulated.transport.launch(subtask)}")

    def do_repeat(self, position: int) -> None:
        """An acknowledgement or confirmation arrives again, the last one at -1."""
        subtask, _, message = self.simulated.faults.heard[position]
        self.lines.append(f"heard again from subtask {subtask}: {' '.join(map(str, message[:2]))}")
        self.simulated.faults.repeat(position)
        self.simulated.drain()

    def do_doom(self, tag: str, fate: Fate) -> None:
        """What is made of the next message of a kind."""
        self.simulated.faults.doom(tag, fate)

    def do_fail_store(self, is_stored: str = "not_stored") -> None:
        """The next save fails; `stored` and `unknown`: its outcome is unknown, with the checkpoint
        in the store or not.
        """
        error = None if is_stored != "unknown" else CheckpointOutcomeUnknown("by order")
        self.simulated.store.fail_next_save(error, is_stored=is_stored == "stored")

    def do_blocking(self) -> None:
        """The oldest save or commit runs; the job master has not heard of it."""
        self.simulated.run_blocking()

    def do_stop(self) -> None:
        """Stop with a last checkpoint."""
        self.simulated.master.stop()
        self.simulated.drain()

    def do_cancel(self) -> None:
        """End now."""
        self.simulated.master.cancel()
        self.simulated.drain()

    def do_crash(self) -> None:
        """The driver dies with all processes; another starts from what is stored."""
        self.simulated.crash_driver()

    def do_states(self) -> None:
        """The states of the machines."""
        job = self.simulated.master.job
        attempts = ", ".join(f"{a.state} (process {a.identity})" for a in job.attempt)
        self.lines.append(f"job {job.lifecycle.state}; attempts {attempts}")
        gateways = ", ".join(f"op{c + 1} to {s} {g.state}" for (c, s), g in job.gateway.items())
        self.lines.append(f"checkpoint {job.checkpoint.state}; gateways {gateways}")

    def do_result(self) -> None:
        """How the job ended."""
        result = self.simulated.result
        self.lines.append(f"{result.state}: {result.reason}")
