"""Of the drivers of a job, one owns a table: it claims it, makes or enters it, and is told when
another has come behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from epochgate.spark.delta_sink import LogFailed, LogOvertaken, TableTakenOver
from epochgate.spark.delta_sink.owner import Owner


class Lake:
    """A table with its log, the claims to it, and what happens at the next request of a kind."""

    def __init__(self) -> None:
        self.is_there = False
        self.number = self.version = 0
        self.maker = ""
        self.claims: list[str] = []
        self.named: list[str] = []
        self.asked: list[str] = []
        self.next: dict[str, list[Callable[[], Any]]] = {}

    def ask(self, what: str) -> None:
        self.asked.append(what)
        for happen in self.next.pop(what, []):
            happen()

    def fail(self, what: str) -> None:
        def happen() -> None:
            raise LogFailed("table", f"{what} fails")

        self.next[what] = [happen]

    def change(self) -> None:
        """Another writer makes the table, or changes it."""
        self.is_there, self.version = True, self.version + 1


class Driver:
    """A driver of a run: claims, table and owner as it knows them."""

    known: dict[str, Any]

    def __init__(self, lake: Lake, run: str) -> None:
        self.lake, self.run = lake, run
        self.owner = Owner(self, self, "the table", run)
        self.seen = 0

    def start(self) -> None:
        self.seen = self.lake.version
        self.owner.start(is_there=self.lake.is_there)

    def commit(self, *, has_rows: bool = True) -> int:
        self.seen = self.lake.version
        if self.lake.is_there:
            self.owner.present(self.lake.number, is_maker=self.lake.maker == self.run)
        else:
            self.owner.absent(self.make if has_rows else None)
        return self.owner.number

    # the claims

    def require_empty(self) -> None: ...
    def prepare(self) -> None: ...
    def begin(self) -> None: ...
    def release(self) -> None: ...

    def add_run(self, run: str) -> None:
        self.lake.ask("claim")
        self.lake.claims.append(run)

    def require_last(self, run: str) -> None:
        self.lake.ask("last")
        if self.lake.claims[-1] != run:
            raise TableTakenOver("the table", run)

    def put_table(self, identity: str) -> None:
        self.lake.ask("name")
        if self.lake.claims[-1] != self.run:
            raise TableTakenOver("the table", self.run)
        self.lake.named.append(identity)

    # the table

    def make(self) -> None:
        self.lake.ask("make")
        if self.lake.is_there:
            raise LogOvertaken("table", "it is there")
        self.lake.is_there, self.lake.maker, self.lake.number = True, self.run, 1
        self.lake.version += 1
        self.lake.ask("made")

    def enter(self) -> int:
        self.lake.ask("enter")
        if self.lake.version != self.seen:
            self.seen = self.lake.version
            raise LogOvertaken("table", "others have written")
        self.lake.version += 1
        self.lake.number += 1
        self.lake.ask("entered")
        return self.lake.number

    def identity(self) -> str:
        return "of the table"


def started(lake: Lake, run: str) -> Driver:
    driver = Driver(lake, run)
    driver.start()
    return driver


def test_a_driver_that_finds_no_table_makes_it_with_the_first_rows_and_goes_on() -> None:
    lake = Lake()
    driver = started(lake, "r1")
    assert driver.owner.number == 0
    assert driver.commit(has_rows=False) == 0
    assert not lake.is_there
    assert driver.commit() == 1
    assert (lake.maker, lake.number, lake.named) == ("r1", 1, ["of the table"])
    before = list(lake.asked)
    assert [driver.commit(), driver.commit()] == [1, 1]
    assert lake.asked == before, "it is named by the table, and asks for nothing more"


def test_a_table_that_is_there_is_entered_and_the_driver_from_before_is_refused() -> None:
    lake = Lake()
    first = started(lake, "r1")
    first.commit()
    second = started(lake, "r2")
    assert (second.owner.number, lake.number) == (2, 2)
    before = list(lake.asked)
    with pytest.raises(TableTakenOver, match="run r1 may not commit"):
        first.commit()
    for number, is_maker in ((2, False), (2, True), (1, True), (1, False)):
        with pytest.raises(TableTakenOver):
            first.owner.present(number, is_maker=is_maker)
    assert lake.asked == before, "it is refused without a question"
    assert [second.commit(), second.commit()] == [2, 2]
    assert lake.asked == before


def test_a_driver_that_another_has_replaced_makes_no_table() -> None:
    lake = Lake()
    first, second = started(lake, "r1"), started(lake, "r2")
    with pytest.raises(TableTakenOver):
        first.commit()
    before = list(lake.asked)
    for has_rows in (True, False):
        with pytest.raises(TableTakenOver):
            first.commit(has_rows=has_rows)
    assert lake.asked == before
    assert "make" not in before
    assert second.commit() == 1
    with pytest.raises(TableTakenOver):
        first.commit()
    assert (lake.maker, lake.number) == ("r2", 1)


def test_a_claim_behind_which_another_was_faster_is_refused() -> None:
    lake = Lake()

    def be_faster() -> None:
        raise TableTakenOver("the table", "r1")

    lake.next["claim"] = [be_faster]
    driver = Driver(lake, "r1")
    with pytest.raises(TableTakenOver):
        driver.start()
    with pytest.raises(TableTakenOver):
        driver.commit()


def test_a_claim_that_fails_may_be_made_again() -> None:
    lake = Lake()
    lake.fail("claim")
    driver = Driver(lake, "r1")
    with pytest.raises(LogFailed, match="claim fails"):
        driver.start()
    driver.start()
    assert driver.commit() == 1


def test_a_table_whose_making_was_not_answered_is_found_to_be_its_own() -> None:
    lake = Lake()
    driver = started(lake, "r1")
    lake.fail("made")
    with pytest.raises(LogFailed):
        driver.commit()
    assert (lake.maker, lake.named) == ("r1", [])
    assert driver.commit() == 1
    assert (lake.number, lake.named) == (1, ["of the table"])
    assert "enter" not in lake.asked


def test_a_table_that_others_make_first_is_entered_at_the_next_try() -> None:
    lake = Lake()
    driver = started(lake, "r1")
    lake.next["make"] = [lake.change]
    with pytest.raises(LogOvertaken):
        driver.commit()
    assert driver.commit() == 1
    assert (lake.maker, lake.number, lake.named) == ("", 1, ["of the table"])


def test_a_table_of_its_own_making_that_a_later_driver_has_entered_is_that_drivers() -> None:
    lake = Lake()
    first = started(lake, "r1")
    lake.fail("made")
    with pytest.raises(LogFailed):
        first.commit()
    second = started(lake, "r2")
    with pytest.raises(TableTakenOver):
        first.commit()
    assert second.commit() == lake.number == 2


def test_a_driver_that_is_overtaken_in_entering_looks_who_has_claimed_it_meanwhile() -> None:
    lake = Lake()
    first = started(lake, "r1")
    lake.change()
    successors = list[Driver]()
    lake.next["enter"] = [lambda: successors.append(started(lake, "r2"))]
    with pytest.raises(TableTakenOver, match="run r1"):
        first.commit()
    assert lake.number == 1, "it has not taken the table from its successor"
    assert successors[0].commit() == 1


def test_the_same_at_its_start() -> None:
    lake = Lake()
    lake.change()
    successors = list[Driver]()
    lake.next["enter"] = [lambda: successors.append(started(lake, "r2"))]
    with pytest.raises(TableTakenOver, match="run r1"):
        started(lake, "r1")
    assert successors[0].commit() == lake.number == 1


def test_a_driver_that_is_replaced_before_it_has_named_the_table_is_refused() -> None:
    lake = Lake()
    lake.change()
    lake.next["entered"] = [lambda: lake.claims.append("r2")]
    with pytest.raises(TableTakenOver):
        started(lake, "r1")


def test_others_that_write_now_and_then_do_not_keep_a_driver_out_and_those_that_always_do_may() -> (
    None
):
    lake = Lake()
    driver = started(lake, "r1")
    lake.change()
    lake.next["enter"] = [lake.change]
    assert driver.commit() == 1

    class Busy(Driver):
        def enter(self) -> int:
            self.lake.change()
            return super().enter()

    busy = Busy(lake, "r2")
    with pytest.raises(TableTakenOver):
        busy.start()
    assert lake.asked.count("enter") == 2 + 5
    before = len(lake.asked)
    with pytest.raises(LogOvertaken):
        busy.commit()
    assert lake.asked[before:] == ["last", "enter"] * 5


@pytest.mark.parametrize("what", ["last", "make", "enter", "entered", "name"])
def test_what_has_failed_is_tried_again_at_the_next_commit(what: str) -> None:
    lake = Lake()
    driver = started(lake, "r1")
    if what in ("enter", "entered"):
        lake.change()
    lake.fail(what)
    with pytest.raises(LogFailed, match=f"{what} fails"):
        driver.commit()
    number = driver.commit()
    assert number == lake.number > 0
    assert lake.named == ["of the table"]
    assert driver.commit() == number
