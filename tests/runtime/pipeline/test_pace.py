"""A limit on records per second holds on average, and what was missed is not made up."""

from __future__ import annotations

import pytest

from epochgate.runtime.pipeline.pace import Pace


def test_the_limit_holds_on_average() -> None:
    now_s = 100.0
    pace = Pace(1000)
    records = 0
    while now_s < 110.0:
        if (wait_s := pace.wait_s(now_s)) > 0:
            now_s += wait_s
        else:
            pace.note(50, now_s)
            records += 50
            now_s += 0.001
    assert records == pytest.approx(10_000, rel=0.02)


def test_what_was_missed_is_not_made_up() -> None:
    pace = Pace(1000)
    pace.note(100, 100.0)
    pace.note(100, 160.0)
    assert pace.wait_s(160.0) == pytest.approx(0.1)


def test_without_a_limit_there_is_nothing_to_wait_for() -> None:
    pace = Pace()
    pace.note(1 << 40, 100.0)
    assert pace.wait_s(100.0) == 0


def test_a_limit_that_changes_keeps_what_was_taken_in_mind() -> None:
    pace = Pace(10)
    pace.note(10, 0.0)
    assert pace.wait_s(0.5) == 0.5
    pace.change(5, 0.5)
    assert pace.wait_s(0.5) == 1.0
    pace.change(None, 0.5)
    assert pace.wait_s(0.5) == 0.0
