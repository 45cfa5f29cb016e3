"""The hellos of a process that Spark has started."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.spark.hellos import Hellos
from epochgate.spark.identities import identity_of
from tests.spark.wire.harness import running_wire


class Asked:
    """Hellos of the run "run" with two subtasks, of which Spark has started some task attempts."""

    def __init__(self, launched: int | None) -> None:
        self.launched, self.questions = launched, 0
        self.taken: set[int] = set()
        self.hellos = Hellos("run", 2, self.taken, self._answer)

    def _answer(self) -> int | None:
        self.questions += 1
        return self.launched


def hello(identity: Any, **changes: Any) -> dict[str, Any]:
    who = {"run_id": "run", "subtask": 0, "identity": identity, "pid": 1, "host": "host"}
    return {**who, **changes}


def test_spark_is_asked_once_for_all_that_wait() -> None:
    asked = Asked(launched=3)
    with running_wire() as wire, wire.pair() as (connection, _):
        said = [hello(identity_of(task, 1), subtask=task % 2) for task in range(3)]
        for one in said:
            assert asked.hellos.read(one, is_asked=False) == (None, "")
            asked.hellos.put_off(connection, one)
        assert asked.hellos.ask_spark() == [(connection, one) for one in said]
    for one in said:
        process, _ = asked.hellos.read(one, is_asked=True)
        assert process is not None
        assert (process.identity, process.subtask) == (one["identity"], one["subtask"])
    again, _ = asked.hellos.read(hello(identity_of(2, 7)), is_asked=False)
    assert again is not None
    assert asked.hellos.ask_spark() == []
    assert asked.questions == 1


@pytest.mark.parametrize("identity", [identity_of(3, 1), 2**63 - 1, 2**64 - 1])
def test_an_identity_that_spark_has_not_given_out_is_turned_away(identity: int) -> None:
    asked = Asked(launched=3)
    with running_wire() as wire, wire.pair() as (connection, _):
        asked.hellos.put_off(connection, hello(identity))
        asked.hellos.ask_spark()
    process, problem = asked.hellos.read(hello(identity), is_asked=True)
    assert process is None
    assert f"its identity is {identity}, and Spark has no task attempt" in problem
    asked.launched = 4
    assert asked.hellos.read(hello(identity), is_asked=False) == (None, "")


def test_where_spark_does_not_say_what_it_has_started_every_identity_is_let_in() -> None:
    asked = Asked(launched=None)
    with running_wire() as wire, wire.pair() as (connection, _):
        asked.hellos.put_off(connection, hello(1001))
        asked.hellos.ask_spark()
    process, _ = asked.hellos.read(hello(1001), is_asked=True)
    assert process is not None


def test_a_flood_of_hellos_that_are_not_let_in_leaves_one_line_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hellos = Asked(launched=3).hellos
    with running_wire() as wire, wire.pair() as (connection, _):
        for identity in range(50):
            hellos.turn_away(connection, f"its identity {identity} is taken")
        assert connection.closed_reason == "its identity 0 is taken"
    (line,) = [one.getMessage() for one in caplog.records if "is taken" in one.getMessage()]
    assert line.startswith("refused 1 connection(s), the last from 127.0.0.1:")


def test_an_identity_that_is_connected_is_turned_away_unasked() -> None:
    asked = Asked(launched=3)
    asked.taken.add(1001)
    process, problem = asked.hellos.read(hello(1001), is_asked=False)
    assert process is None
    assert "1001 is taken" in problem
    assert asked.questions == 0
