"""A row says what it means in one way only."""

from __future__ import annotations

import pytest

from epochgate.fsm import ANY, STAY, Ignore, Row


def test_guards_are_split_into_demanded_and_excluded_in_written_order() -> None:
    row = Row("send", "open", STAY, "is_bound and not is_full and has_room", None, "because")
    assert row.literals == (("is_bound", True), ("is_full", False), ("has_room", True))
    assert (row.conditions, row.unless) == (("is_bound", "has_room"), ("is_full",))


@pytest.mark.parametrize("when", ["not  is_full", "not is_full ", " not is_full"])
def test_blanks_around_a_guard_do_not_matter(when: str) -> None:
    assert Row("send", "open", STAY, when, None, "because").unless == ("is_full",)


@pytest.mark.parametrize("after", ["hold, count", "hold,count", ("hold", "count")])
def test_actions_keep_their_order_however_they_are_written(after: str | tuple[str, ...]) -> None:
    assert Row("send", "open", STAY, None, after, "because").actions == ("hold", "count")


def test_a_row_without_guards_and_actions_has_none() -> None:
    row = Row("send", ANY, "shut", None, None, "because")
    assert (row.literals, row.actions, row.is_ignored) == ((), (), False)


def test_an_ignored_event_is_a_row_that_does_nothing() -> None:
    row = Ignore("send", ("open", "shut"), "is_late", "it is over")
    assert row.is_ignored
    assert (row.dest, row.actions, row.conditions) == (STAY, (), ("is_late",))
    assert row.because == "it is over"
