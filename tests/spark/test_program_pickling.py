"""A program that cannot travel to the tasks is refused with the part of it that cannot."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from epochgate.pipeline import FunctionSource, Pipeline
from epochgate.runtime import SinkStart
from epochgate.spark.errors import ProgramNotPicklable
from epochgate.spark.program_pickling import pickled


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with socket.socket() as one:
        yield one


class Refusing:
    """Its error has no text, as some of Spark's have none."""

    def __reduce__(self) -> Any:
        raise RuntimeError


def test_a_function_that_holds_a_connection_is_told_by_its_variable(connection: Any) -> None:
    def factory(subtask: int) -> Any:
        return connection

    with pytest.raises(ProgramNotPicklable) as refused:
        pickled(factory, [])
    assert "'connection' is a socket, TypeError: cannot pickle 'socket' object" in str(
        refused.value
    )
    assert "open files, connections and the session itself belong into" in str(refused.value)


def test_an_error_without_a_text_is_told_by_its_type_and_the_part() -> None:
    refusing = Refusing()
    with pytest.raises(ProgramNotPicklable, match="'refusing' is a Refusing, RuntimeError: "):
        pickled(lambda subtask: refusing, [])  # type: ignore[arg-type, return-value]


def test_a_part_of_a_pipeline_is_told_by_the_way_to_it(connection: Any) -> None:
    def read(split: Any, position: Any) -> Any:
        yield connection.recv(1), 1

    pipeline = Pipeline(source=FunctionSource(lambda: [1], read), sink=lambda *written: None)
    program = pipeline.prepared(SinkStart("job", "run")).program
    with pytest.raises(
        ProgramNotPicklable, match="'connection' of '_read' of 'source' is a socket, TypeError"
    ):
        pickled(program, [])


def test_what_writes_on_the_driver_may_hold_what_cannot_travel(connection: Any) -> None:
    def write(checkpoint: int, records: list[Any]) -> None:
        connection.send(repr(records).encode())

    pipeline = Pipeline(source=FunctionSource(lambda: [1], lambda *asked: []), sink=write)
    assert pickled(pipeline.prepared(SinkStart("job", "run")).program, [])
