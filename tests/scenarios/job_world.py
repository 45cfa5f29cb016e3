"""Scenarios of a whole job on the in-process transport: what user code sees is the output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgpack

from epochgate.runtime import Committables, Committer, JobConfiguration
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.store import CheckpointOutcomeUnknown
from epochgate.runtime.testing.faulty_transport import Fate
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.testing import (
    Script,
    ScriptedCoordinator,
    ScriptedOperator,
    ScriptedProgram,
    ScriptedProvider,
)

Lines = list[str]


def _sent(state: bytes | None) -> list[Any] | None:
    return None if state is None else [e for events in msgpack.unpackb(state)[0] for e in events]


WORDS: dict[str, Callable[..., str]] = {
    "start": lambda: "start",
    "checkpoint": lambda n: f"asked for checkpoint {n}",
    "reset_to_checkpoint": lambda n, state: f"reset to checkpoint {n}, {_sent(state)}",
    "execution_attempt_ready": lambda s, a: f"attempt {a} of subtask {s} is ready",
    "execution_attempt_failed": lambda s, a, reason: f"attempt {a} of subtask {s}: {reason}",
    "subtask_reset": lambda s, n: f"subtask {s} goes back to {n}",
    "notify_checkpoint_complete": lambda n: f"checkpoint {n} is complete",
    "notify_checkpoint_aborted": lambda n: f"checkpoint {n} is aborted",
    "handle_event_from_operator": lambda s, a, event: f"{event} from attempt {a} of subtask {s}",
    "close": lambda: "close",
}
"""What a coordinator is told, as a line of the output."""


class ToldScript(Script):
    """Prints what its coordinators are told."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(is_completing=False)
        self._lines = lines

    def at(self, place: str, *arguments: Any) -> None:
        name, _, method = place.rpartition(".")
        if method in WORDS:
            self._lines.append(f"{name}: {WORDS[method](*arguments)}")
        super().at(place, *arguments)


class ToldOperator(ScriptedOperator):
    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    def _say(self, text: str) -> None:
        self._lines.append(f"subtask {self.context.subtask}: {self.context.operator_id} {text}")

    def handle_event(self, event: Any) -> None:
        if event == "poison":
            raise ValueError("it was poison")
        super().handle_event(event)
        self._say(f"handles {event}")

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        return ["".join(self.handled)] if self.handled else []

    def snapshot(self, checkpoint_id: int) -> bytes:
        self._say(f"snapshot {checkpoint_id}: {' '.join(self.handled) or 'nothing'}")
        return super().snapshot(checkpoint_id)


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
        self._scripts = [ToldScript(self.lines) for _ in self._names]
        self.simulated = SimulatedJob(
            self._configuration,
            lambda _: ScriptedProgram({name: ToldOperator(self.lines) for name in self._names}),
            committer=lambda: ToldCommitter(self.lines),
        )

    def _configuration(self, start: int) -> JobConfiguration:
        return JobConfiguration(
            "scenario",
            self._constants.get("subtasks", 1),
            tuple(map(ScriptedProvider, self._names, self._scripts)),
            checkpoint_interval_s=None,
            checkpoint_timeout_s=10.0,
            tolerable_checkpoint_failures=self._constants.get("tolerable", 3),
            restart_strategy=FixedDelay(self._constants.get("restarts", 10), 1.0),
        )

    def _coordinator(self, number: int) -> ScriptedCoordinator:
        return self._scripts[number - 1].coordinator

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
        for event in events:
            self._coordinator(coordinator).send(subtask, event)
        self.simulated.drain()

    def do_send_to_attempt(self, coordinator: int, subtask: int, attempt: int, event: str) -> None:
        """Send through the gateway of an attempt of the past."""
        gateways = self._coordinator(coordinator).all_gateways
        future = gateways[subtask, attempt].send_event(event)
        self.simulated.drain()
        error = future.exception()
        self.lines.append("on its way" if error is None else str(error))

    def do_checkpoint(self) -> None:
        """Ask for one."""
        wanted = self.simulated.master.request_checkpoint()
        wanted.add_done_callback(
            # The frames of user code, which follow the first line, are those of this file.
            lambda done: self.lines.append(
                f"asked for: {str(done.exception() or done.result()).splitlines()[0]}"
            )
        )
        self.simulated.drain()

    def do_complete(self, coordinator: int, checkpoint: int) -> None:
        """A coordinator's future succeeds with what it has sent."""
        self._coordinator(coordinator).complete(checkpoint)
        self.simulated.drain()

    def do_break(self, coordinator: int, checkpoint: int, reason: str) -> None:
        """A coordinator's future fails."""
        self._coordinator(coordinator).results[checkpoint].set_exception(ValueError(reason))
        self.simulated.drain()

    def do_raise_next(self, coordinator: int, reason: str) -> None:
        """A coordinator raises when it is asked for its next checkpoint."""
        self._scripts[coordinator - 1].raise_at(f"op{coordinator}.checkpoint", ValueError(reason))

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
        """A process comes up that was not asked for."""
        self.lines.append(f"process {self.simulated.transport.launch(subtask)}")

    def do_repeat(self, position: int) -> None:
        """An acknowledgement or confirmation arrives again, the last one at -1."""
        subtask, _, message = self.simulated.faults.heard[position]
        self.lines.append(f"heard again from subtask {subtask}: {' '.join(map(str, message[:2]))}")
        self.simulated.faults.repeat(position)
        self.simulated.drain()

    def do_doom(self, tag: str, fate: Fate) -> None:
        """Set the fate of the next message of a kind."""
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
        job = self.simulated.machines
        attempts = ", ".join(f"{a.state} (process {a.identity})" for a in job.attempt)
        self.lines.append(f"job {job.lifecycle.state}; attempts {attempts}")
        gateways = ", ".join(f"op{c + 1} to {s} {g.state}" for (c, s), g in job.gateway.items())
        self.lines.append(f"checkpoint {job.checkpoint.state}; gateways {gateways}")

    def do_result(self) -> None:
        """Print how the job ended."""
        result = self.simulated.result
        self.lines.append(f"{result.state}: {result.reason}")
