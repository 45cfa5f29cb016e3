"""A simulated job whose user code does what a test says, at every place where it is called."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

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
from epochgate.runtime.api.restart_strategies import FixedDelay, RestartStrategy
from epochgate.runtime.testing.simulation import SimulatedJob


@dataclass
class Script:
    """Place -> the errors that user code raises there, one for each call; and what was called."""

    errors: dict[str, list[Exception]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    commits: list[tuple[int, Committables]] = field(default_factory=list)
    answers: bool = True
    """Whether the coordinator completes its futures at once."""
    results: dict[int, Future[bytes]] = field(default_factory=dict)
    gateways: dict[int, SubtaskGateway] = field(default_factory=dict)
    work: Work = Work.IDLE

    def at(self, place: str) -> None:
        self.calls.append(place)
        if errors := self.errors.get(place):
            raise errors.pop(0)


class ScriptedCoordinator(OperatorCoordinator):
    def __init__(self, context: CoordinatorContext, script: Script) -> None:
        self.context, self.script = context, script

    def start(self) -> None:
        self.script.at("start")

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self.script.at("checkpoint")
        self.script.results[checkpoint_id] = result
        if self.script.answers:
            result.set_result(b"state")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.script.at("reset_to_checkpoint")

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        self.script.at("subtask_reset")

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self.script.at("ready")
        self.script.gateways[subtask] = gateway

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self.script.at("failed")

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        self.script.at("event")

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.script.at("complete")

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.script.at("aborted")

    def close(self) -> None:
        self.script.at("close")


class ScriptedProvider(CoordinatorProvider):
    operator_id = "op"

    def __init__(
        self, script: Script, coordinator: type[ScriptedCoordinator] = ScriptedCoordinator
    ) -> None:
        self._script, self._class = script, coordinator
        self.coordinator: ScriptedCoordinator

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        self.coordinator = self._class(context, self._script)
        return self.coordinator


class ScriptedOperator(Operator):
    def __init__(self, script: Script) -> None:
        self.script = script

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.script.at("operator open")

    def handle_event(self, event: Any) -> None:
        self.script.at("operator event")
        self.context.send_to_coordinator(event)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self.script.at("operator prepare_commit")
        return ["row"]

    def snapshot(self, checkpoint_id: int) -> bytes:
        self.script.at("operator snapshot")
        return b"operator"

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.script.at("operator complete")

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.script.at("operator aborted")


class ScriptedProgram(Program):
    def __init__(self, script: Script) -> None:
        self._script = script
        self._operators = {"op": ScriptedOperator(script)}

    @property
    def operators(self) -> dict[str, ScriptedOperator]:
        return self._operators

    def work(self) -> Work:
        self._script.at("work")
        return self._script.work


class ScriptedCommitter(Committer):
    def __init__(self, script: Script) -> None:
        self._script = script

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self._script.at("commit")
        self._script.commits.append((checkpoint_id, committables))


def simulated(
    script: Script,
    *,
    subtasks: int = 1,
    restarts: Callable[[], RestartStrategy] = lambda: FixedDelay(5, 1.0),
    coordinator: type[ScriptedCoordinator] = ScriptedCoordinator,
    **settings: Any,
) -> SimulatedJob:
    """A job of `subtasks`, not yet up; `settings` go to its configuration."""

    def configure(_: int) -> JobConfiguration:
        return JobConfiguration(
            "scripted",
            subtasks,
            (ScriptedProvider(script, coordinator),),
            restart_strategy=restarts(),
            **{"checkpoint_interval_s": None, **settings},
        )

    return SimulatedJob(
        configure, lambda _: ScriptedProgram(script), committer=lambda: ScriptedCommitter(script)
    )
