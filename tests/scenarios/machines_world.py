"""Scenarios of the machines alone: every effect that leaves a port is a line of output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epochgate.fsm import EventQueue, Outcome, TransitionRefused, VirtualClock
from epochgate.models.job import Job

PHRASES: dict[str, Callable[..., str | None]] = {
    "attempt.task.restore": lambda s, a, n: f"wire {s}: restore checkpoint {n} as attempt {a}",
    "attempt.task.event": lambda s, c, n, e: f"wire {s}: {e} (op{c} #{n})",
    "attempt.task.barrier": lambda s, n: f"wire {s}: barrier {n}",
    "attempt.task.complete": lambda s, n: f"wire {s}: complete {n}",
    "attempt.task.aborted": lambda s, n: f"wire {s}: aborted {n}",
    "attempt.task.finish": lambda s: f"wire {s}: finish",
    "attempt.scheduler.deploy": lambda s, a: f"processes: wanted for subtask {s}, attempt {a}",
    "attempt.scheduler.starting": lambda s, a: None,
    "attempt.scheduler.end": lambda s, i: f"processes: end {i}",
    "attempt.scheduler.refuse": lambda s, i: f"processes: refuse {i}",
    "gateway.sender.confirmed": lambda c, s, n: f"op{c} to {s}: {n} confirmed",
    "gateway.sender.lost": lambda c, s, n: f"op{c} to {s}: {n} lost",
    "gateway.sender.turned_away": lambda c, s, e: f"op{c} to {s}: {e} turned away",
    "holder.user.start": lambda c: f"op{c}: start",
    "holder.user.unfit": lambda c: f"op{c}: not started",
    "holder.user.rebuild": lambda c: f"op{c}: made anew",
    "holder.user.close": lambda c: f"op{c}: close",
    "holder.user.reset_to": lambda c, n: f"op{c}: reset to checkpoint {n}",
    "holder.user.checkpoint": lambda c, n, _: f"op{c}: asked for checkpoint {n}",
    "holder.user.complete": lambda c, n: f"op{c}: checkpoint {n} is complete",
    "holder.user.aborted": lambda c, n: f"op{c}: checkpoint {n} is aborted",
    "holder.user.ready": lambda c, s, a: f"op{c}: attempt {a} of {s} is ready",
    "holder.user.failed": lambda c, s, a: f"op{c}: attempt {a} of {s} has failed",
    "holder.user.subtask_reset": lambda c, s, n: f"op{c}: subtask {s} goes back to {n}",
    "holder.user.event": lambda c, s, a, e: f"op{c}: {e} from attempt {a} of {s}",
    "snapshot.results.keep": lambda c, _, n, b: f"op{c}: its state in {n} is {b}",
    "checkpoint.driver.started": lambda n: f"checkpoint {n}: started",
    "checkpoint.driver.keep": lambda n, s, b: f"checkpoint {n}: subtask {s} gave {b}",
    "checkpoint.driver.save": lambda n: f"checkpoint {n}: to be stored",
    "checkpoint.driver.completed": lambda n: f"checkpoint {n}: completed",
    "checkpoint.driver.aborted": lambda n: f"checkpoint {n}: aborted",
    "lifecycle.driver.restart_one": lambda s, a: f"job: how long until {s} restarts after {a}?",
    "lifecycle.driver.restart_all": lambda n: f"job: how long until restart {n} of all?",
    "lifecycle.driver.ended": lambda: "job: over",
    "committer.sink.commit": lambda n, t: f"commit: up to {n}, after {t} tries",
    "request.requester.chosen": lambda n: None,
}


class _Listener:
    def __init__(self, path: str, messages: Any, say: Callable[[str], None]) -> None:
        for message in messages:
            setattr(self, message, self._speaker(PHRASES[f"{path}.{message}"], say))

    @staticmethod
    def _speaker(phrase: Callable[..., str | None], say: Callable[[str], None]) -> Any:
        def speak(*arguments: Any) -> None:
            if (text := phrase(*arguments)) is not None:
                say(text)

        return speak


class MachinesWorld:
    """One `Job` system; commands fire triggers by name, or by a shorter word."""

    def __init__(self, constants: dict[str, int]) -> None:
        self.lines: list[str] = []
        self.job = Job(**constants)
        self.queue = EventQueue(self.job, VirtualClock())
        self._changes: list[str] = []
        for name, machine in Job.MACHINES.items():
            for port, field in machine.PORTS.items():
                listener = _Listener(f"{name}.{port}", field.port.messages(), self.lines.append)
                self.job.bind(name, port, listener)

    def do_up(self) -> None:
        """Start the job and let every subtask run; process s + 1 speaks for subtask s."""
        self._fire(self.job.lifecycle.start)
        for holder in self.job.holder:
            self._fire(holder.started)
        for subtask, attempt in enumerate(self.job.attempt):
            for trigger in (attempt.connect, attempt.initialize, attempt.run):
                self._fire(trigger, subtask + 1)
        self.lines[:] = [f"{len(self.job.attempt)} subtasks run"]

    def do_trigger(self) -> None:
        """Ask for a checkpoint."""
        self._fire(self.job.request.submit)

    def do_complete(self, coordinator: int, checkpoint: int, state: str = "bytes") -> None:
        """A coordinator's future succeeds."""
        self._fire(self.job.snapshot[coordinator, 0].succeed, checkpoint, state)

    def do_send(self, coordinator: int, subtask: int, event: str, attempt: int = -1) -> None:
        """Send through the gateway of the current attempt, or of another."""
        number = self.job.attempt[subtask].number if attempt < 0 else attempt
        self._fire(self.job.gateway[coordinator, subtask].send, number, event)

    def do_confirm(self, coordinator: int, subtask: int, number: int) -> None:
        """The subtask has handled events up to a number."""
        attempt = self.job.attempt[subtask]
        self._fire(attempt.confirm, attempt.identity, coordinator, number)

    def do_ack(self, subtask: int, checkpoint: int) -> None:
        """The subtask acknowledges the barrier."""
        attempt = self.job.attempt[subtask]
        self._fire(attempt.acknowledge, attempt.identity, checkpoint, False, f"s{subtask}")

    def do_gateway(self, coordinator: int, subtask: int) -> None:
        """Show a gateway."""
        gateway = self.job.gateway[coordinator, subtask]
        held = [event for fifo in gateway.held for event in fifo]
        self.lines.append(f"{gateway.state}, holds {held}")

    def do_fire(self, machine: str, *arguments: Any) -> None:
        """Fire `machine.trigger` or `machine[i,j].trigger` and say what became of it."""
        path, _, trigger = machine.rpartition(".")
        name, _, rest = path.partition("[")
        index = tuple(int(part) for part in rest.rstrip("]").split(",") if part)
        instance = self.job.instance(name, index)
        before = instance.state
        outcome = self._fire(getattr(instance, trigger), *arguments)
        said = f"{before} -> {instance.state}" if outcome is Outcome.TAKEN else "ignored"
        if outcome is not None:
            self.lines.insert(0, said)

    def _fire(self, trigger: Callable[..., Outcome], *arguments: Any) -> Outcome | None:
        outcomes: list[Outcome] = []
        self.queue.post(lambda: outcomes.append(trigger(*arguments)))
        try:
            self.queue.drain()
        except TransitionRefused as refused:
            self.lines.append(f"refused in {refused.state!r}: {refused.trigger}")
            return None
        return outcomes[0]
