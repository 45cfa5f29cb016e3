"""A control as its user sees it: what it takes, what it refuses, and what it tells."""

from __future__ import annotations

import pickle
import re
import threading
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epochgate.runtime.steering import (
    VALUE_BYTES_MAX,
    ControlMissing,
    ControlUnusable,
    QueryUnknown,
    StoreUnusable,
    UpdatePending,
    ValueRefused,
)
from epochgate.spark.streaming import Control, DirectoryLedger, OnceUnusable, once
from tests.runtime.objects.stores import Memory
from tests.runtime.steering.steered import Watched, entries_in, once as called_once

QUERY = "query-1"


def control_in(folder: Path, **initial: Any) -> Control:
    return Control("pricing", initial or {"limit": 900}, store=str(folder))


def test_a_process_without_the_initial_value_updates_and_looks(tmp_path: Path) -> None:
    steering = control_in(tmp_path, limit=900, mode="strict")
    other = Control("pricing", store=str(tmp_path), create=True)
    other.update({"limit": 700})
    assert steering.value == {"limit": 700, "mode": "strict"}
    assert steering.decide(QUERY, 0).value == {"limit": 700, "mode": "strict"}
    assert other.effective_from() == 0
    assert [one.value["limit"] for one in other.history()] == [700]
    assert [one.changes for one in steering.updates()] == [{"limit": 700}]
    with pytest.raises(ControlUnusable, match="has no initial value"):
        other.apply(print)


def test_another_initial_value_changes_no_batch_and_takes_no_update_back(tmp_path: Path) -> None:
    first = control_in(tmp_path, limit=900, mode="strict")
    first.decide(QUERY, 0)
    first.update(limit=700)
    later = control_in(tmp_path, limit=800, mode="lax", region="north")
    assert later.decide(QUERY, 0).value == {"limit": 900, "mode": "strict"}
    assert later.decide(QUERY, 1).value == {"limit": 700, "mode": "lax", "region": "north"}


def test_values_come_back_as_every_run_sees_them(tmp_path: Path) -> None:
    value = {"limits": (1, 2.5, None), "key": b"\x00\xff", "nested": {"on": True}}
    assert control_in(tmp_path, **value).decide(QUERY, 0).value == {
        "limits": [1, 2.5, None],
        "key": b"\x00\xff",
        "nested": {"on": True},
    }
    again = control_in(tmp_path).decide(QUERY, 0).value
    assert again == control_in(tmp_path, **value).decide(QUERY, 0).value


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({}, "names no value"),
        ({"limt": 700}, "has no value 'limt'; it has limit"),
        ({"limit": {1, 2}}, r"\{1, 2\} is a set"),
        ({"limit": {1: 2}}, "the key 1"),
        ({"limit": {"__bytes__": "x"}}, "the key '__bytes__' cannot be written"),
        ({"limit": 2**64}, "does not fit into 64 bits"),
        ({"limit": "x" * VALUE_BYTES_MAX}, "Most of it is 'limit'"),
        ({7: 1}, "a dict with str as keys"),
        (900, "a dict with str as keys, and not 900"),
        ({"limit": "high"}, "has limit = 900, a number, and 'high' is a str: a batch that"),
        ({"limit": None}, "None is None"),
        ({"limit": True}, "True is a bool"),
        ({"limit": float("nan")}, "NaN is not equal to itself"),
        ({"limit": date(2026, 1, 1)}, r"is a date\. .* Write a date as text"),
        ({"limit": np.int64(7)}, r"is an int64\. .* int\(x\) or float\(x\)"),
    ],
)
def test_what_cannot_be_a_value_is_refused_before_anything_is_written(
    tmp_path: Path, changes: Any, because: str
) -> None:
    control = control_in(tmp_path)
    with pytest.raises(ValueRefused, match=because):
        control.update(changes)
    assert control.updates() == []


def test_initial_values_without_names_are_refused(tmp_path: Path) -> None:
    values: Any = 900
    with pytest.raises(ValueRefused, match=r"holds named values, .* and not 900"):
        Control("pricing", values, store=str(tmp_path))


def test_a_value_may_be_any_number_and_what_is_none_initially_may_be_anything(
    tmp_path: Path,
) -> None:
    control = control_in(tmp_path, limit=900, model=None)
    control.update(limit=0.5, model="a.bin")
    control.update(limit=7, model=None)
    assert control.value == {"limit": 7, "model": None}


def test_another_process_is_refused_what_the_store_does_not_have(tmp_path: Path) -> None:
    control_in(tmp_path).decide(QUERY, 0)
    other = Control("pricing", store=str(tmp_path))
    with pytest.raises(ValueRefused, match="has no value 'limmit'; it has limit"):
        other.update(limmit=5)
    with pytest.raises(ValueRefused, match="'high' is a str"):
        other.update(limit="high")
    with pytest.raises(ControlMissing, match="has no control 'prising'; it has pricing"):
        Control("prising", store=str(tmp_path)).update(limit=5)
    assert (other.update(limit=5), other.updates()[0].changes) == (1, {"limit": 5})


def test_a_control_that_may_create_makes_names_and_controls(tmp_path: Path) -> None:
    other = Control("pricing", store=str(tmp_path), create=True)
    assert [other.update(limit=5), other.update(region="north")] == [1, 2]
    assert other.value == {"limit": 5, "region": "north"}


def test_values_that_the_check_refuses_are_never_in_force(tmp_path: Path) -> None:
    def check(values: dict[str, Any]) -> None:
        if values["low"] > values["high"]:
            raise ZeroDivisionError("low is above high")

    def made(**initial: int) -> Control:
        return Control("range", initial, store=str(tmp_path), check=check)

    with pytest.raises(ValueRefused, match="raised ZeroDivisionError: low is above high"):
        made(low=2, high=1)
    control = made(low=1, high=5)
    control.update(high=3)
    with pytest.raises(ValueRefused, match="raised ZeroDivisionError: low is above high"):
        control.update(low=4)
    assert control.value == {"low": 1, "high": 3}
    control.decide(QUERY, 0)
    other = Control("range", store=str(tmp_path), check=lambda values: values["low"] > 0)
    with pytest.raises(ValueRefused, match="the check of control 'range' returned False"):
        other.update(low=0)


def test_an_update_that_lands_during_a_check_is_checked_together_with_it(tmp_path: Path) -> None:
    initial = {"low": 1, "high": 10}

    def is_range(values: dict[str, Any]) -> bool:
        return bool(values["low"] <= values["high"])

    other = Control("range", initial, store=str(tmp_path), check=is_range)
    others = iter([lambda: other.update(high=3)])

    def check(values: dict[str, Any]) -> bool:
        if values["low"] == 5:
            next(others, lambda: 0)()
        return is_range(values)

    control = Control("range", initial, store=str(tmp_path), check=check)
    with pytest.raises(ValueRefused, match=r"False for \{'low': 5, 'high': 3\}"):
        control.update(low=5)
    assert control.value == {"low": 1, "high": 3}
    assert control.decide(QUERY, 0).value == {"low": 1, "high": 3}


def test_a_type_that_lands_during_an_update_counts_for_it(tmp_path: Path) -> None:
    store = Watched(entries_in(tmp_path))
    created = Control("free", store=str(tmp_path), create=True)
    created.update(limit=5, until=None)

    def overtake() -> None:
        created.update(until="noon")

    store.before = called_once(overtake, "create")
    control = Control("free", store=str(tmp_path))
    control._opened = store
    with pytest.raises(ValueRefused, match="until = 'noon', a str, and 7 is a number"):
        control.update(until=7)
    assert control.value == {"limit": 5, "until": "noon"}


@pytest.mark.parametrize("kind", [KeyError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_a_check_raises_refuses_the_update_with_its_type_and_line(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    def check(values: dict[str, Any]) -> None:
        if values["limit"] < 0:
            raise kind("of mine")

    control = Control("pricing", {"limit": 900}, store=str(tmp_path), check=check)
    with pytest.raises(ValueRefused) as refused:
        control.update(limit=-1)
    assert f"the check of control 'pricing', given {{'limit': -1}}, raised {kind.__name__}" in str(
        refused.value
    )
    assert f'{Path(__file__).name}", line' in str(refused.value)
    assert (control.update(limit=700), control.decide(QUERY, 0).value) == (1, {"limit": 700})


def test_a_store_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.py").write_text("")
    with pytest.raises(StoreUnusable, match=r"c\.py' is a file, and a store is a directory"):
        control_in(tmp_path / "c.py").update(limit=700)


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_what_a_steered_function_raises_says_who_has_set_the_values(
    tmp_path: Path, checkpoint: str, error: type[BaseException]
) -> None:
    control = control_in(tmp_path, limit=900, mode="strict")

    def fail(frame: Any, values: Any) -> None:
        raise error("as a bug would")

    steered = control.apply(fail, checkpoint=checkpoint)
    for batch in (0, 1):
        with pytest.raises(error, match="as a bug would") as raised:
            steered(FRAME, batch)
        [note] = raised.value.__notes__
        assert f"batch {batch} ran with these values of control 'pricing'" in note
        if batch == 0:
            assert "limit = 900   as it was initially" in note
        control.update(limit=7 + batch)
    assert re.search(r"limit = 7   update 1, by \S+@\S+:\d+\n", note)
    assert "mode = 'strict'   as it was initially\n" in note


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "x" * 101])
def test_a_name_that_is_none_of_a_directory_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ControlUnusable, match="cannot be the name of a control"):
        Control(name, store=str(tmp_path))


def test_a_store_without_conditional_creation_is_refused() -> None:
    with pytest.raises(StoreUnusable, match="has no conditional creation"):
        Control("pricing", store="hdfs://host/controls").update(limit=1)


def test_a_function_with_other_arguments_is_refused_when_it_is_given(tmp_path: Path) -> None:
    with pytest.raises(ControlUnusable, match=r"must take \(df, values\)"):
        control_in(tmp_path).apply(lambda frame: None)


def test_what_no_batch_has_seen_is_waited_for(tmp_path: Path) -> None:
    control = control_in(tmp_path)
    with pytest.raises(UpdatePending, match=r"no batch of query \(none so far\)"):
        control.effective_from(0, wait_s=0)
    control.decide(QUERY, 0)
    version = control.update(limit=700)
    with pytest.raises(
        UpdatePending, match=f"no batch of query {QUERY} was decided with version 1"
    ):
        control.effective_from(version, wait_s=0.01)
    timer = threading.Timer(0.1, control.decide, (QUERY, 1))
    timer.start()
    assert control.effective_from() == 1
    timer.join()


def test_where_a_control_steers_two_queries_each_is_asked_by_its_id(tmp_path: Path) -> None:
    control = control_in(tmp_path)
    control.decide("one", 0)
    control.update(limit=700)
    control.decide("one", 1)
    control.decide("two", 0)
    assert [control.effective_from(query=query) for query in ("one", "two")] == [1, 0]
    assert [len(control.history(query=query)) for query in ("one", "two")] == [2, 1]
    with pytest.raises(QueryUnknown, match=r"2 queries use control .*: one, two"):
        control.effective_from()


def test_it_lies_in_an_object_store_as_well(tmp_path: Path) -> None:
    memory = Memory()
    control = Control("pricing", {"limit": 900}, store="s3://b/c", open_objects=memory.open)
    control.decide(QUERY, 0)
    control.update(limit=700)
    assert control.decide(QUERY, 1).value == {"limit": 700}
    assert (control.effective_from(), control.queries()) == (1, [QUERY])


def test_it_travels_without_its_figures_and_connections(tmp_path: Path) -> None:
    control = control_in(tmp_path)
    control.decide(QUERY, 0)
    control.update(limit=700)
    other = pickle.loads(pickle.dumps(control))
    assert other.decide(QUERY, 0).value == {"limit": 900}
    assert other.metrics()["replayed"] == 1
    assert control.metrics()["decided"] == 1


def test_metrics_tell_what_this_process_did_and_what_is_in_force(tmp_path: Path) -> None:
    control = control_in(tmp_path)
    assert control.metrics() == {
        **dict.fromkeys(("updated", "decided", "replayed", "changed"), 0),
        **dict.fromkeys(("last_s", "longest_s", "total_s", "version", "versions_kept"), 0),
    }
    control.decide(QUERY, 0)
    control.update(limit=700)
    control.decide(QUERY, 1)
    control.decide(QUERY, 1)
    control.update(limit=500)
    figures = control.metrics()
    took = [figures.pop(name) for name in ("last_s", "longest_s", "total_s")]
    assert 0 < took[0] <= took[1] < took[2]
    assert figures == {
        "updated": 2,
        "decided": 2,
        "replayed": 1,
        "changed": 1,
        "version": 2,
        "versions_kept": 2,
        "decisions_kept": 2,
        "batch": 1,
        "effective_version": 1,
        "effective_from": 1,
        "pending": 1,
    }
    other = Control("pricing", store=str(tmp_path)).metrics(query=QUERY)
    assert (other["decided"], other["pending"], other["effective_from"]) == (0, 1, 1)
    assert "batch" not in control.metrics(query="another")


def test_metrics_of_two_queries_are_asked_for_by_their_ids(tmp_path: Path) -> None:
    control = control_in(tmp_path)
    control.decide("one", 4)
    control.decide("two", 7)
    assert [control.metrics(query=query)["batch"] for query in ("one", "two")] == [4, 7]
    with pytest.raises(QueryUnknown, match="Name one by query=ID"):
        control.metrics()


FRAME: Any = object()


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    (tmp_path / "metadata").write_text(f'{{"id": "{QUERY}"}}')
    return str(tmp_path)


def test_once_gives_a_steered_function_the_transaction_behind_the_values(
    tmp_path: Path, checkpoint: str
) -> None:
    control, seen = control_in(tmp_path), []
    steered = control.apply(lambda *given: seen.append(given[1:]), checkpoint=checkpoint)
    steered(FRAME, 0, "transaction")
    steered(FRAME, 0)
    assert seen == [(0, {"limit": 900}, "transaction"), ({"limit": 900},)]


def test_a_function_that_cannot_take_what_it_would_be_given_decides_nothing(
    tmp_path: Path, checkpoint: str
) -> None:
    control = control_in(tmp_path)

    def without(frame: Any, batch: int, values: Any) -> None: ...

    def only_with(frame: Any, batch: int, values: Any, transaction: Any) -> None: ...

    with pytest.raises(ControlUnusable, match=r"function\(df, batch_id, values, transaction\)"):
        control.apply(without, checkpoint=checkpoint)(FRAME, 0, "transaction")
    with pytest.raises(ControlUnusable, match="takes a transaction, and there is none"):
        control.apply(only_with, checkpoint=checkpoint)(FRAME, 0)
    with pytest.raises(ControlUnusable, match=r"once\(ledger, control.apply\(function\)\)"):
        control.apply(once(DirectoryLedger(checkpoint), lambda frame, batch: None))
    with pytest.raises(OnceUnusable, match=r"once\(ledger, control.apply\(function\)\)"):
        control.apply(once(DirectoryLedger(checkpoint), without))
    assert control.queries() == []
