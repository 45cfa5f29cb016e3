"""A simulated job whose user code does what a test says, at every place where it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from epochgate.runtime import Committables, Committer, JobConfiguration, JobListener
from epochgate.runtime.api.restart_strategies import FixedDelay, RestartStrategy
from epochgate.runtime.testing import scripted
from epochgate.runtime.testing.scripted import (
    ScriptedCoordinator,
    ScriptedOperator,
    ScriptedProgram,
    ScriptedProvider,
)
from epochgate.runtime.testing.simulation import SimulatedJob


@dataclass
class Script(scripted.Script):
    """Keeps what was committed, too."""

    commits: list[tuple[int, Committables]] = field(default_factory=list)


class EchoOperator(ScriptedOperator):
    """Sends back what it gets, and hands over the same row for each checkpoint."""

    def handle_event(self, event: Any) -> None:
        super().handle_event(event)
        self.send(event)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        super().prepare_commit(checkpoint_id)
        return ["row"]


def echo_program(script: Script) -> ScriptedProgram:
    return ScriptedProgram({"op": EchoOperator(script)}, script)


class ScriptedCommitter(Committer):
    def __init__(self, script: Script) -> None:
        self._script = script

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self._script.at("committer.commit", checkpoint_id, committables)
        self._script.commits.append((checkpoint_id, committables))


def simulated(
    script: Script,
    *,
    subtasks: int = 1,
    restarts: Callable[[], RestartStrategy] = lambda: FixedDelay(5, 1.0),
    coordinator: type[ScriptedCoordinator] = ScriptedCoordinator,
    program: Callable[[Script], ScriptedProgram] = echo_program,
    listeners: Sequence[JobListener] = (),
    committer: Callable[[], Committer] | None = None,
    after_commit: Callable[[], Callable[[int, Committables], None] | None] | None = None,
    **settings: Any,
) -> SimulatedJob:
    """A job of `subtasks`, not yet up; `settings` go to its configuration."""

    def configure(_: int) -> JobConfiguration:
        return JobConfiguration(
            "scripted",
            subtasks,
            (ScriptedProvider("op", script, coordinator),),
            restart_strategy=restarts(),
            **{"checkpoint_interval_s": None, **settings},
        )

    return SimulatedJob(
        configure,
        lambda _: program(script),
        committer=committer or (lambda: ScriptedCommitter(script)),
        after_commit=after_commit,
        listeners=listeners,
    )
