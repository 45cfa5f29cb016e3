"""A simulated job whose coordinator is recreated at every reset, each with its own script."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    JobConfiguration,
    RecreateOnReset,
)
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.shell.recreate_on_reset import RecreatedCoordinator
from epochgate.runtime.testing.scripted import ScriptedCoordinator
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.scripted import Script, echo_program


class Maker(CoordinatorProvider):
    """Keeps every coordinator that it makes. The script of each is `pattern` as that is at the
    time, with its errors; its state, and its answer to clients, is its number.
    """

    operator_id = "op"

    def __init__(self) -> None:
        self.made: list[ScriptedCoordinator] = []
        self.pattern = Script()
        self.later: list[Future[Any]] = []

    def create(self, context: CoordinatorContext) -> ScriptedCoordinator:
        self.pattern.at("op.create")
        number = len(self.made)

        def answer(request: Any) -> Any:
            if request == "raise":
                raise ValueError("no such request")
            if request == "later":
                self.later.append(Future())
                return self.later[-1]
            return number

        script = replace(
            self.pattern, state=b"%d" % number, answer=answer, record=[], coordinators=[]
        )
        self.made.append(ScriptedCoordinator(context, script))
        return self.made[-1]


class Staged:
    """A simulated job with a coordinator that is recreated; up unless told otherwise."""

    def __init__(self, *, is_up: bool = True, subtasks: int = 1, **settings: Any) -> None:
        self.maker = Maker()
        self.job = SimulatedJob(
            lambda _: JobConfiguration(
                "staged",
                subtasks,
                (RecreateOnReset(self.maker, **settings),),
                checkpoint_interval_s=None,
                restart_strategy=FixedDelay(2000, 1.0),
            ),
            lambda _: echo_program(Script()),
        )
        if is_up:
            self.job.settle()

    @property
    def wrapper(self) -> RecreatedCoordinator:
        found = self.job.master.coordinators[0]
        assert isinstance(found, RecreatedCoordinator)
        return found

    @property
    def newest(self) -> ScriptedCoordinator:
        return self.maker.made[-1]

    @property
    def restarts(self) -> int:
        return self.job.master.report.global_restarts

    def reset(self, checkpoint: int = 0, state: bytes | None = None) -> None:
        """Reset the coordinator alone, as the holder would; its close waits to be run."""
        self.wrapper.reset_to_checkpoint(checkpoint, state)

    def failed(self) -> list[str]:
        return [failure.reason for failure in self.job.master.report.failures]
