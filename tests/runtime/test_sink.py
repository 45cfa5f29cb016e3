"""A sink of one's own under the generic operator: what it hands over, and to whom it goes."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest

from epochgate.runtime import (
    Committables,
    Committer,
    CommitterOfSinks,
    CoordinatorContext,
    CoordinatorProvider,
    OperatorContext,
    OperatorCoordinator,
    RetryLater,
    Sink,
    SinkOperator,
    SinkStart,
    SinkWriter,
    SubtaskGateway,
    UnknownSink,
)
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.runtime.counting import (
    DISTURBANCES,
    CountingProgram,
    assert_disturbed,
    configuration,
    disturbed,
    run_to_the_end,
)


@dataclass
class Shelf(Committer):
    """Outlives the job; committing again changes nothing."""

    visible: dict[int, list[Any]] = field(default_factory=dict)
    is_open: bool = False
    errors: list[Exception] = field(default_factory=list)
    restored: dict[int, Committables] = field(default_factory=dict)

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.is_open, self.restored = True, restored

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        if self.errors:
            raise self.errors.pop(0)
        rows = [row for values in committables.values() for value in values for row in value]
        assert self.visible.setdefault(checkpoint_id, rows) == rows

    def close(self) -> None:
        self.is_open = False

    def metrics(self) -> dict[str, int | float]:
        return {"rows": len(self.rows)}

    @property
    def rows(self) -> list[Any]:
        return sorted(row for rows in self.visible.values() for row in rows)


class ShelfWriter(SinkWriter):
    def __init__(self, context: OperatorContext, state: bytes | None) -> None:
        self.context, self.pending = context, list(state or b"")

    def write(self, batch: Any) -> None:
        self.pending.append(batch)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        done, self.pending = self.pending[:-1], self.pending[-1:]
        return [done] if done else []

    def snapshot(self, checkpoint_id: int) -> bytes:
        return bytes(self.pending)


@dataclass(frozen=True)
class ShelfSink(Sink):
    """Keeps the newest row back, in its state."""

    shelf: Shelf

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return ShelfWriter(context, state)

    def create_committer(self, start: SinkStart) -> Committer:
        return self.shelf


@pytest.mark.parametrize("disturb", DISTURBANCES)
def test_every_row_arrives_once(disturb: str) -> None:
    sink = ShelfSink(Shelf())
    job = SimulatedJob(
        lambda start: configuration(),
        lambda subtask: CountingProgram(sink=SinkOperator(sink)),
        committer=lambda: sink.create_committer(SinkStart("job", "run")),
    )
    disturbed(job, disturb)
    run_to_the_end(job)
    assert job.result.state == "finished", job.result.reason
    assert sink.shelf.rows == list(range(19)), "the newest row stays in the writer's state"
    assert_disturbed(job, disturb)


class Opened:
    """An operator that runs outside of a job."""

    def __init__(self, sink: Sink, label: str | None = None) -> None:
        self.operator = SinkOperator(sink, label=label)
        self.said: list[Any] = []
        context = OperatorContext("sink", 0, 1, 1, "run", self.said.append)
        self.operator.open(context, b"")


def test_what_an_aborted_checkpoint_had_is_handed_over_with_the_next() -> None:
    operator = Opened(ShelfSink(Shelf())).operator
    for number in range(3):
        operator.write(number)
    assert operator.prepare_commit(1) == [[0, 1]]
    operator.notify_checkpoint_aborted(1)
    operator.write(3)
    assert operator.prepare_commit(2) == [[0, 1], [2]]
    operator.notify_checkpoint_complete(2)
    operator.write(4)
    assert operator.prepare_commit(3) == [[3]]


def test_a_list_that_was_handed_over_does_not_change_afterwards() -> None:
    operator = Opened(ShelfSink(Shelf())).operator
    operator.write(0)
    operator.write(1)
    handed_over = operator.prepare_commit(1)
    operator.notify_checkpoint_complete(1)
    assert handed_over == [[0]]


def test_a_writer_without_events_refuses_them() -> None:
    with pytest.raises(TypeError, match="ShelfWriter got an event"):
        Opened(ShelfSink(Shelf())).operator.handle_event("hello")


def test_a_writer_is_asked_for_only_once_it_is_made() -> None:
    operator = SinkOperator(ShelfSink(Shelf()))
    operator.close()
    with pytest.raises(RuntimeError, match="made by `open`"):
        operator.write(1)


class Agreeing(OperatorCoordinator):
    """Tells each writer what the first one has asked for."""

    def __init__(self) -> None:
        self.gateways: dict[int, SubtaskGateway] = {}
        self.agreed: Any = None

    def start(self) -> None:
        self.agreed = None

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self.gateways[subtask] = gateway

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        del self.gateways[subtask]

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        self.agreed = self.agreed or event
        for gateway in self.gateways.values():
            gateway.send_event(self.agreed)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.agreed = None


class AgreeingProvider(CoordinatorProvider):
    def __init__(self, operator_id: str) -> None:
        self.id = operator_id

    @property
    def operator_id(self) -> str:
        return self.id

    def create(self, context: CoordinatorContext) -> Agreeing:
        return Agreeing()


class AgreeingWriter(ShelfWriter):
    agreed: Any = None

    def may_write(self, batch: Any) -> bool:
        if self.agreed is None:
            self.context.send_to_coordinator(f"first was {batch}")
        return self.agreed is not None

    def handle_event(self, event: Any) -> None:
        self.agreed = event

    def write(self, batch: Any) -> None:
        assert self.agreed == "first was 0"
        super().write(batch)


@dataclass(frozen=True)
class AgreeingSink(ShelfSink):
    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return AgreeingWriter(context, state)

    def create_coordinator(self, operator_id: str, committer: Committer) -> CoordinatorProvider:
        return AgreeingProvider(operator_id)


def test_writers_that_have_to_agree_write_nothing_before() -> None:
    sink = AgreeingSink(Shelf())
    job = SimulatedJob(
        lambda start: configuration(sink.create_coordinator("sink", sink.shelf)),
        lambda subtask: CountingProgram(sink=SinkOperator(sink)),
        committer=lambda: sink.shelf,
    )
    run_to_the_end(job)
    assert job.result.state == "finished", job.result.reason
    assert sink.shelf.rows == list(range(19))


def test_each_of_two_sinks_gets_its_own_rows() -> None:
    good, bad = ShelfSink(Shelf()), ShelfSink(Shelf())
    job = SimulatedJob(
        lambda start: configuration(),
        lambda subtask: CountingProgram(
            good=SinkOperator(good, label="good"), bad=SinkOperator(bad, label="bad")
        ),
        committer=lambda: CommitterOfSinks({"good": good.shelf, "bad": bad.shelf}),
    )
    bad.shelf.errors.append(RetryLater("busy"))
    run_to_the_end(job)
    assert job.result.state == "finished", job.result.reason
    assert good.shelf.rows == bad.shelf.rows == list(range(19))


def test_what_has_no_label_is_the_first_sinks() -> None:
    first, second = Shelf(), Shelf()
    labelled = Opened(ShelfSink(second), label="second").operator
    labelled.write(7)
    labelled.write(8)
    both = CommitterOfSinks({"first": first, "second": second})
    both.open("run", {5: {0: [[1]]}})
    assert (first.restored, second.restored) == ({5: {0: [[1]]}}, {5: {}})
    both.commit(6, {0: [[2], *labelled.prepare_commit(6)]})
    assert (first.rows, second.rows) == ([2], [7])
    assert both.metrics() == {"first.rows": 1, "second.rows": 1}


def test_a_sink_that_cannot_open_leaves_none_open() -> None:
    first, second = Shelf(), Shelf(errors=[OSError("no network")])
    both = CommitterOfSinks({"first": first, "second": second})
    with pytest.raises(OSError, match="no network"):
        both.open("run", {})
    both.close()
    assert not first.is_open


def test_committables_of_a_sink_that_is_gone_are_refused() -> None:
    operator = Opened(ShelfSink(Shelf()), label="old").operator
    operator.write(1)
    operator.write(2)
    both = CommitterOfSinks({"new": Shelf()})
    with pytest.raises(UnknownSink, match="for sink 'old', and this job has new"):
        both.check({0: operator.prepare_commit(1)})
    with pytest.raises(ValueError, match="at least one committer"):
        CommitterOfSinks({})
