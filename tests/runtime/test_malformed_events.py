"""An event that is none costs the attempt that sent it, whichever coordinator takes it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
import pytest

from epochgate.runtime import (
    CoordinatorProvider,
    JobConfiguration,
    MalformedEvent,
    RecreateOnReset,
)
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.collect import CollectSinkProvider
from epochgate.runtime.filtering import DynamicFilteringProvider
from epochgate.runtime.pipeline.setting import Setting
from epochgate.runtime.source import SourceProvider
from epochgate.runtime.testing.scripted import (
    ScriptedCoordinator,
    ScriptedOperator,
    ScriptedProgram,
    ScriptedProvider,
)
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.spark.parquet_sink.schema_coordinator import SchemaProvider
from tests.runtime.scripted import Script, simulated
from tests.runtime.source.ranges import RangeSource

PLAIN: list[Any] = [
    None,
    True,
    5,
    0.5,
    "register",
    b"rows",
    {},
    [],
    [[]],
    ["no such tag"],
    [7],
    [None],
]
"""What no built-in coordinator is sent."""


class Refusing(ScriptedCoordinator):
    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        if event == "garbled":
            raise MalformedEvent("no letter")
        super().handle_event_from_operator(subtask, attempt, event)


class RefusingLate(ScriptedCoordinator):
    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> Future[Any]:
        refused: Future[Any] = Future()
        refused.set_exception(MalformedEvent("no letter"))
        return refused


def costs(job: SimulatedJob) -> tuple[int, int]:
    report = job.master.report
    return report.regional_restarts, report.global_restarts


def after(provider: CoordinatorProvider, event: Any) -> SimulatedJob:
    """A job of two subtasks, after an operator of the first has sent `event` once."""
    script = Script()
    job = SimulatedJob(
        lambda _: JobConfiguration(
            "scripted",
            2,
            (provider,),
            restart_strategy=FixedDelay(3, 1.0),
            checkpoint_interval_s=None,
        ),
        lambda _: ScriptedProgram({"op": ScriptedOperator(script)}, script),
    )
    job.settle()
    script.operators["op", 0].send(event)
    job.settle()
    return job


@pytest.mark.parametrize("kind", [Refusing, RefusingLate])
@pytest.mark.parametrize("is_registered", [False, True])
def test_a_users_coordinator_blames_the_attempt(
    kind: type[ScriptedCoordinator], is_registered: bool
) -> None:
    script = Script()
    job = simulated(script, subtasks=2, coordinator=kind)
    job.settle()
    context = script.operators["op", 0].context
    (context.send_with_receipt if is_registered else context.send_to_coordinator)("garbled")
    job.settle()
    assert costs(job) == (1, 0)
    reason = job.master.report.failures[0].reason
    assert "coordinator 'op' has refused its event: no letter" in reason


def test_a_coordinator_that_is_made_again_at_resets_blames_the_attempt_too() -> None:
    provider = RecreateOnReset(ScriptedProvider("op", Script(), Refusing))
    assert costs(after(provider, "garbled")) == (1, 0)


PROVIDERS: dict[str, tuple[Callable[[], CoordinatorProvider], list[Any]]] = {
    "source": (
        lambda: SourceProvider("op", RangeSource(4)),
        [["request"], ["register"], ["register", 1], ["watermark", 1, None], ["request", 1]],
    ),
    "collect": (
        lambda: CollectSinkProvider("op"),
        [
            ["waiting"],
            ["rows", 0, [b"1"]],
            ["opened", "0", 0],
            ["opened", 0],
            ["snapshot", 1, True],
        ],
    ),
    "filtering": (
        lambda: DynamicFilteringProvider("op", ["listener"]),
        [["report"], ["report", 5], ["report", [5]], ["report", [b"\xc1"]], ["report", ["a"]]],
    ),
    "schema": (
        lambda: SchemaProvider("op", pa.schema([("x", pa.int64())])),
        [["schema"], ["schema", 5], ["schema", b""], ["schema", b"garbage"]],
    ),
    "setting, which handles none": (lambda: Setting("limit", 1, operator_id="op"), ["any"]),
}


@pytest.mark.parametrize(
    ("name", "event"),
    [(name, event) for name, (_, own) in PROVIDERS.items() for event in [*PLAIN, *own]],
    ids=repr,
)
def test_no_event_gets_as_far_as_the_job_through_a_built_in_coordinator(
    name: str, event: Any
) -> None:
    assert costs(after(PROVIDERS[name][0](), event)) == (1, 0)
