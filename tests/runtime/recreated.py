"""A simulated job whose coordinator is recreated at every reset; each keeps what it was told."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    JobConfiguration,
    OperatorCoordinator,
    RecreateOnReset,
    SubtaskGateway,
)
from epochgate.runtime.api.recreate_on_reset import RecreatedCoordinator
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, ScriptedProgram


class Told(OperatorCoordinator):
    """Keeps what it was told, in order."""

    def __init__(self, number: int, context: CoordinatorContext, maker: Maker) -> None:
        self.number, self.context, self.maker = number, context, maker
        self.calls: list[Any] = []
        self.results: dict[int, Future[bytes]] = {}
        self.gateways: dict[int, SubtaskGateway] = {}
        self.answers: list[Future[Any]] = []

    def _told(self, *call: Any) -> None:
        self.calls.append(call if len(call) > 1 else call[0])
        if errors := self.maker.errors.get(call[0]):
            raise errors.pop(0)

    def start(self) -> None:
        self._told("start")

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self._told("checkpoint", checkpoint_id)
        self.results[checkpoint_id] = result
        if self.maker.answers:
            result.set_result(b"%d" % self.number)

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self._told("reset", checkpoint_id, state)

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        self._told("event", event)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self._told("ready", subtask)
        self.gateways[subtask] = gateway

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self._told("failed", subtask)

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        self._told("subtask reset", subtask)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._told("complete", checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._told("aborted", checkpoint_id)

    def handle_client_request(self, request: Any) -> Any:
        self._told("request", request)
        if request == "later":
            self.answers.append(Future())
            return self.answers[-1]
        return self.number

    def close(self) -> None:
        self._told("close")


class Maker(CoordinatorProvider):
    """Keeps every coordinator that it makes."""

    operator_id = "op"

    def __init__(self) -> None:
        self.made: list[Told] = []
        self.errors: dict[str, list[Exception]] = {}
        self.answers = True

    def create(self, context: CoordinatorContext) -> Told:
        if errors := self.errors.get("create"):
            raise errors.pop(0)
        self.made.append(Told(len(self.made), context, self))
        return self.made[-1]


class Staged:
    """A simulated job with a coordinator that is recreated; up unless told otherwise."""

    def __init__(self, *, is_up: bool = True, subtasks: int = 1, **settings: Any) -> None:
        self.maker = Maker()
        script = Script()
        self.job = SimulatedJob(
            lambda _: JobConfiguration(
                "staged",
                subtasks,
                (RecreateOnReset(self.maker, **settings),),
                checkpoint_interval_s=None,
                restart_strategy=FixedDelay(2000, 1.0),
            ),
            lambda _: ScriptedProgram(script),
        )
        if is_up:
            self.job.settle()

    @property
    def wrapper(self) -> RecreatedCoordinator:
        found = self.job.master.coordinators[0]
        assert isinstance(found, RecreatedCoordinator)
        return found

    @property
    def newest(self) -> Told:
        return self.maker.made[-1]

    @property
    def restarts(self) -> int:
        return self.job.master.report.global_restarts

    def reset(self, checkpoint: int = 0, state: bytes | None = None) -> None:
        """Reset the coordinator alone, as the holder would; its close waits to be run."""
        self.wrapper.reset_to_checkpoint(checkpoint, state)

    def failed(self) -> list[str]:
        return [failure.reason for failure in self.job.master.report.failures]
