"""A coordinator that was replaced has no effect through anything that it was given: each member of
its context, and of what the context hands out, has an expectation here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from epochgate.runtime import (
    CheckpointAccess,
    CoordinatorContext,
    CoordinatorMetrics,
    CoordinatorReplaced,
    CoordinatorStore,
    EventLost,
    SubtaskGateway,
)
from epochgate.runtime.api.coordinator import RunningCoroutine
from epochgate.runtime.api.coordinator_metrics import Counter
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.recreated import Staged
from tests.runtime.scripted import Script, simulated

HANDED_OUT = (
    CoordinatorContext,
    CheckpointAccess,
    CoordinatorStore,
    CoordinatorMetrics,
    Counter,
    RunningCoroutine,
    SubtaskGateway,
)
"""What a coordinator gets hold of."""


class Replaced:
    """A job in which one coordinator takes the place of another, and what that one holds."""

    def __init__(self, job: SimulatedJob, old: CoordinatorContext) -> None:
        self.job, self.old, self.ran = job, old, list[Any]()
        self.counter = old.metrics.counter("count")
        self.counter.add(3)
        old.coordinator_store.put("key", 1)
        self.coroutine = old.run_coroutine(self._wait(), self.note)
        job.run_blocking()
        self.gateway: SubtaskGateway | None = None

    def begin(self) -> None:
        """Begin what is not over when the coordinator is replaced."""
        self.old.run_async(lambda: None, self.note)
        self.old.post_later(5, self.note)
        self.old.post(self.note)
        self.old.fail_job("count is off")

    async def _wait(self) -> None:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            self.ran.append("cancelled")
            raise
        self.ran.append("it went on")

    def note(self, *arguments: Any) -> None:
        self.ran.append(arguments)

    def reaches(self) -> Any:
        """Everything outside that a coordinator could change, once everything has settled."""
        self.job.settle()
        self.job.wait(10)
        self.job.settle()
        master = self.job.master
        return (
            master.report.global_restarts,
            master.report.failures,
            self.job.machines.checkpoint.number,
            self.job.machines.gateway[0, 0].sent,
            dict(master.coordinators.store._values),
            dict(master.report.coordinator_metrics["op"]),
            list(self.ran),
        )


def rebuilt() -> Replaced:
    """The first coordinator could not start, and its holder has built another."""
    script = Script(errors={"op.start": [OSError("no such table")]})
    job = simulated(script)
    job.drain()
    assert job.machines.holder[0].state == "broken"
    replaced = Replaced(job, script.coordinators[0].context)
    job.clock.advance(1.0)
    job.master.queue.post_due()
    replaced.begin()
    job.settle()
    assert len(script.coordinators) == 2
    return replaced


def recreated() -> Replaced:
    """A reset of everything has replaced the first coordinator."""
    staged = Staged()
    old = staged.newest
    replaced = Replaced(staged.job, old.context)
    replaced.gateway = old.gateways[0]
    replaced.begin()
    staged.reset()
    staged.job.settle()
    assert len(staged.maker.made) == 2
    return replaced


FENCES = pytest.mark.parametrize("fenced", [rebuilt, recreated])


@FENCES
def test_what_is_under_way_ends_with_the_coordinator(fenced: Callable[[], Replaced]) -> None:
    replaced = fenced()
    restarts = replaced.reaches()[0]
    assert replaced.ran == ["cancelled"]
    assert restarts == (1 if fenced is rebuilt else 0)


def fails(error: type[Exception], probe: Callable[[Replaced], Any]) -> Callable[[Replaced], None]:
    """The future that it returns fails at once."""

    def ask(replaced: Replaced) -> None:
        assert isinstance(probe(replaced).exception(), error)

    return ask


def shows(expected: Any, probe: Callable[[Replaced], Any]) -> Callable[[Replaced], None]:
    """It returns this."""

    def look(replaced: Replaced) -> None:
        assert probe(replaced) == expected

    return look


def _run_coroutine(replaced: Replaced) -> None:
    replaced.old.run_coroutine(replaced._wait(), replaced.note).cancel()


def _use_new_counter(replaced: Replaced) -> None:
    replaced.old.metrics.counter("another").add()


def _send(replaced: Replaced) -> None:
    if replaced.gateway is not None:
        sent = replaced.gateway.send_event("from the past")
        replaced.job.settle()
        assert isinstance(sent.exception(), EventLost)


def _send_several(replaced: Replaced) -> None:
    if replaced.gateway is not None:
        sent = replaced.gateway.send_events(["from the past", "this too"])
        replaced.job.settle()
        assert isinstance(sent.exception(), EventLost)


EXPECTED: dict[type, dict[str, Callable[[Replaced], Any]]] = {
    CoordinatorContext: {
        "operator_id": shows("op", lambda it: it.old.operator_id),
        "job_id": lambda it: it.old.job_id,
        "run_id": shows("run-0", lambda it: it.old.run_id),
        "parallelism": shows(1, lambda it: it.old.parallelism),
        "concurrent_attempts_max": shows(1, lambda it: it.old.concurrent_attempts_max),
        "coordinator_store": lambda it: it.old.coordinator_store.put("key", 2),
        "metrics": _use_new_counter,
        "checkpoints": lambda it: it.old.checkpoints.request(),
        "load": shows("1", lambda it: it.old.load("json:dumps")(1)),
        "fail_job": lambda it: it.old.fail_job("count is off"),
        "post": lambda it: it.old.post(it.note),
        "post_later": lambda it: it.old.post_later(1, it.note),
        "run_async": lambda it: it.old.run_async(lambda: it.note("work"), it.note),
        "run_coroutine": _run_coroutine,
    },
    CheckpointAccess: {
        "interval_s": shows(None, lambda it: it.old.checkpoints.interval_s),
        "is_periodic": shows(False, lambda it: it.old.checkpoints.is_periodic),
        "last_completed_id": shows(0, lambda it: it.old.checkpoints.last_completed_id),
        "request": fails(CoordinatorReplaced, lambda it: it.old.checkpoints.request()),
    },
    CoordinatorStore: {
        "get": shows(1, lambda it: it.old.coordinator_store.get("key")),
        "contains": shows(True, lambda it: it.old.coordinator_store.contains("key")),
        "put": lambda it: it.old.coordinator_store.put("key", 2),
        "put_if_absent": lambda it: it.old.coordinator_store.put_if_absent("other", 2),
        "compute": lambda it: it.old.coordinator_store.compute("key", lambda _: 2),
        "compute_if_present": lambda it: it.old.coordinator_store.compute_if_present(
            "key", lambda _: 2
        ),
        "compute_if_absent": lambda it: it.old.coordinator_store.compute_if_absent(
            "other", lambda: 2
        ),
        "remove": lambda it: it.old.coordinator_store.remove("key"),
        "fenced": lambda it: it.old.coordinator_store.fenced(lambda: True).put("key", 2),
    },
    CoordinatorMetrics: {
        "counter": _use_new_counter,
        "gauge": lambda it: it.old.metrics.gauge("another", lambda: 2),
        "freeze": lambda it: it.old.metrics.freeze(),
        "fenced": lambda it: it.old.metrics.fenced(lambda: True).counter("count").add(),
        "get": shows(3, lambda it: it.old.metrics.get("count")),
        "items": lambda it: it.old.metrics.items(),
        "keys": lambda it: it.old.metrics.keys(),
        "values": lambda it: it.old.metrics.values(),
    },
    Counter: {
        "add": lambda it: it.counter.add(),
        "value": shows(3, lambda it: it.counter.value),
    },
    RunningCoroutine: {"cancel": lambda it: it.coroutine.cancel()},
    SubtaskGateway: {
        "subtask": lambda it: it.gateway and it.gateway.subtask,
        "attempt": lambda it: it.gateway and it.gateway.attempt,
        "send_event": _send,
        "send_events": _send_several,
        "when_room": lambda it: it.gateway and it.gateway.when_room().done(),
    },
}
"""What a member comes to for a coordinator that was replaced, beside reaching nothing."""


def members(handed_out: type) -> set[str]:
    return {name for name in dir(handed_out) if not name.startswith("_")}


@pytest.mark.parametrize("handed_out", HANDED_OUT)
def test_each_member_has_an_expectation(handed_out: type) -> None:
    assert set(EXPECTED[handed_out]) == members(handed_out)


@FENCES
def test_a_context_hands_out_nothing_else(fenced: Callable[[], Replaced]) -> None:
    old = fenced().old
    beyond = {"quiesce", "gateway", "forget", "is_quiesced"}
    assert members(type(old)) | set(vars(old)) - {n for n in vars(old) if n[0] == "_"} <= (
        members(CoordinatorContext) | beyond
    )
    known = (str, int, CoordinatorStore, CoordinatorMetrics)
    given = {name: getattr(old, name) for name in members(CoordinatorContext) - {"checkpoints"}}
    assert [
        n for n, value in given.items() if not (isinstance(value, known) or callable(value))
    ] == []


@FENCES
@pytest.mark.parametrize(
    ("handed_out", "member"),
    [(kind, member) for kind, expected in EXPECTED.items() for member in expected],
)
def test_a_coordinator_that_was_replaced_reaches_nothing(
    fenced: Callable[[], Replaced], handed_out: type, member: str
) -> None:
    replaced = fenced()
    before = replaced.reaches()
    EXPECTED[handed_out][member](replaced)
    assert replaced.reaches() == before
