"""A wrong argument of a test is told as the test's fault; what a user's class leaves out is told
with what to add.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from epochgate.runtime import OperatorContext
from epochgate.runtime.source import Fetched, ReaderContext, SourceReader, SourceSplit
from epochgate.testing import NotSimulated, SimulationFailed, World, read_once, simulate
from tests.worlds.rules import Applying, Rules, RulesProvider
from tests.worlds.test_suites import Appending, Numbers


class Ledger:
    """A committer in all but its class."""

    def commit(self, checkpoint_id: int, committables: Any) -> None:
        pass


def coordinator_as_provider(world: World) -> None:
    world.job(Rules.__new__(Rules), operators=Applying)  # type: ignore[arg-type]  # the mistake


def class_of_coordinator(world: World) -> None:
    made: Callable[[], Any] = lambda: Rules.__new__(Rules)  # noqa: E731  # as a test writes it
    world.job(made, operators=Applying)


def no_provider(world: World) -> None:
    world.job("rules", operators=Applying)  # type: ignore[arg-type]  # the mistake


def operator_instance(world: World) -> None:
    world.job(RulesProvider(), operators=Applying())


def operator_of_another_class(world: World) -> None:
    world.job(RulesProvider(), operators=Ledger)


def committer_instance(world: World) -> None:
    world.job(RulesProvider(), operators=Applying, committer=Appending([]))  # type: ignore[arg-type]


def committer_of_another_class(world: World) -> None:
    world.job(RulesProvider(), operators=Applying, committer=Ledger)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (coordinator_as_provider, "a job is given a Rules, which is a coordinator; give the Coord"),
        (class_of_coordinator, "`a provider` has made a Rules, which is not derived from Coord"),
        (no_provider, "a job is given a str, and needs a CoordinatorProvider, or what makes one"),
        (operator_instance, "`operators` is an Applying, and must be what makes one: a class deri"),
        (operator_of_another_class, "`operators` has made a Ledger, which is not derived from Op"),
        (committer_instance, "`committer` is an Appending, and must be what makes one: a class d"),
        (committer_of_another_class, "`committer` has made a Ledger, which is not derived from C"),
    ],
)
def test_a_wrong_argument_of_a_job_is_named(body: Callable[[World], None], told: str) -> None:
    with pytest.raises(NotSimulated, match=told):
        simulate(runs=2)(body)()


class WithoutSuper(Applying):
    """Forgets to open what it is derived from."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        self.rule = [1, "a"]

    def handle_event(self, event: Any) -> None:
        self.context.send_to_coordinator(event)


def test_an_operator_that_forgets_super_open_is_told_to_call_it() -> None:
    def body(world: World) -> None:
        world.job(RulesProvider(), operators=WithoutSuper)

    told = r"WithoutSuper has no `context`: call super\(\)\.open\(context, state\) in its `open`"
    with pytest.raises(SimulationFailed, match=told):
        simulate(runs=2)(body)()


@dataclass
class Row:
    number: int


class RowReader(SourceReader):
    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        yield Fetched([Row(split.value)], "behind it")


class Rows(Numbers):
    def create_reader(self, context: ReaderContext) -> SourceReader:
        return RowReader()


def test_a_source_of_objects_is_told_that_its_records_must_be_plain() -> None:
    def body(world: World) -> None:
        read_once(world, Rows(8), [Row(0), Row(4)])

    told = r"a record of split 'from 0', which read_once sends to a sink, is not plain: Row\(numb"
    with pytest.raises(SimulationFailed, match=told):
        simulate(runs=2)(body)()


def test_a_call_that_a_test_tells_a_coordinator_is_named() -> None:
    def body(world: World) -> None:
        job = world.job(RulesProvider(), operators=Applying)
        job.tell(Rules.change, "b")
        job.tell(lambda coordinator: coordinator.change("c"))
        raise AssertionError

    with pytest.raises(SimulationFailed) as failed:
        simulate(runs=2)(body)()
    assert "coordinator 'rules' runs Rules.change('b')" in str(failed.value)
    assert "coordinator 'rules' runs the lambda of tests/worlds/test_misuse.py:" in str(
        failed.value
    )


@simulate(runs=2)
def always_wrong(world: World) -> None:
    world.job(RulesProvider(), operators=Applying)
    raise AssertionError


def test_a_report_names_the_test_that_replays_it() -> None:
    with pytest.raises(
        SimulationFailed, match=r"pytest tests/worlds/test_misuse\.py::always_wrong --"
    ):
        always_wrong()
