"""The stage on which a production job is heard: the calls of transport and user code, and what is
reported, are held against what its machines have said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.inside import machines_behind
from epochgate.runtime.api.reports import shortened
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.testing.fuzzing.record import operator_id
from epochgate.runtime.testing.playing import Diverged, ProductionStage
from tests.playing.gates import Heard, Lie, the_truth
from tests.playing.job_lies import tell_lies

TRANSPORT = ("deploy", "send", "release", "end")
Call = tuple[str, tuple[Any, ...]]


def _user(method: str, number: int, *arguments: Any) -> Call:
    return f"{operator_id(number)}.{method}", arguments


def _task(tag: str) -> Callable[..., Call]:
    return lambda subtask, identity, *told: ("send", (subtask, identity, [tag, *told]))


CALLS: dict[str, Callable[..., Call]] = {
    "lifecycle.driver.finish": _task("finish"),
    "attempt.scheduler.dismiss": _task("finish"),
    **{f"checkpoint.tasks.{tag}": _task(tag) for tag in ("barrier", "complete", "aborted")},
    "attempt.scheduler.deploy": lambda s, attempt: ("deploy", (s, attempt)),
    "holder.user.aborted": lambda c, n: _user("notify_checkpoint_aborted", c, n),
    "holder.user.completed": lambda c, n: _user("notify_checkpoint_complete", c, n),
    "holder.user.failed": lambda c, *told: _user("execution_attempt_failed", c, *told),
}
"""Messages of machines, each with the call that has to follow from it in the same step."""

VALUES: dict[str, Callable[..., tuple[Any, Any]]] = {
    "lifecycle.driver.decided": lambda master, *told: (told, master.verdict),
    "lifecycle.driver.ending": lambda master, why: (shortened(why, 8000), master.cause),
    "lifecycle.driver.restart_all": lambda master, _, why: (
        shortened(why),
        master.report.failures[-1].reason,
    ),
    "lifecycle.driver.restart_one": lambda master, s, attempt, why: (
        (s, attempt, shortened(why)),
        master.report.failures[-1][1:],
    ),
    "checkpoint.driver.aborted": lambda master, n, why: (
        (n, why),
        (master.report.checkpoints[-1].checkpoint_id, master.report.checkpoints[-1].reason),
    ),
    "checkpoint.driver.unknown": lambda master, n, why: (
        (n, why),
        (master.report.checkpoints[-1].checkpoint_id, master.report.checkpoints[-1].reason),
    ),
    "gateway.sender.held": lambda master, c, s, event: (
        True,
        event in master.coordinators.waiting.get((c, s), ()),
    ),
    "request.requester.chosen": lambda master, n: (True, n in master.checkpoints._served),
    **{
        f"holder.user.{refusal}": lambda master, c, request: (True, request.done())
        for refusal in (
            *("client_request", "refuse_broken", "refuse_early", "refuse_failing"),
            *("refuse_late", "refuse_periodic"),
        )
    },
    "attempt.scheduler.metrics": lambda master, s, told: (told, master.report.metrics[s]),
}
"""Messages of machines, each with what has to be reported then, and what is."""


class HeardStage(ProductionStage):
    """Plays on a production job, and looks at what its shells do with what they hear."""

    def __init__(self, system: ClosedSystem, lie: Lie = the_truth) -> None:
        self._lie, self._told = lie, list[tuple[str, tuple[Any, ...]]]()
        self._calls: list[Call] = []
        super().__init__(system)

    def prepare(self, master: JobMaster) -> None:
        tell_lies(machines_behind(master.job), self._hear)
        transport: Any = master.transport
        for name in TRANSPORT:
            setattr(transport, name, self._noting(name, getattr(transport, name)))

    def _hear(self, heard: Heard) -> tuple[Any, ...]:
        self._told.append((f"{heard.machine}.{heard.port}.{heard.message}", heard.arguments))
        return self._lie(heard)

    def _noting(self, name: str, call: Callable[..., None]) -> Callable[..., None]:
        def note(*arguments: Any) -> None:
            self._calls.append((name, arguments))
            call(*arguments)

        return note

    def take(self, step: str) -> None:
        """Take a step, and look at what has followed from what the machines have said."""
        self._told.clear()
        self._calls.clear()
        before = [len(script.record) for script in self.job.scripts]
        super().take(step)
        for script, known in zip(self.job.scripts, before, strict=True):
            self._calls += script.record[known:]
        newest = {message: told for message, told in self._told if message in VALUES}
        for message, told in self._told:
            if message in CALLS and (call := CALLS[message](*told)) not in self._calls:
                raise Diverged(f"after {step}: {message}{told} leads to no {call}")
        for message, told in newest.items():
            said, found = VALUES[message](self.job.master, *told)
            if said != found:
                raise Diverged(f"after {step}: {message} has said {said!r}, and there is {found!r}")
