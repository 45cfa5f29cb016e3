"""A limit on rows per second holds on average, and never keeps a barrier waiting for long."""

from __future__ import annotations

import pytest

from epochgate.spark.ingest.pace import PAUSE_S_MAX, Pace


def test_the_limit_of_rows_per_second_holds_on_average() -> None:
    now_s = 100.0
    pace = Pace(1000, lambda: now_s)
    rows = 0
    while now_s < 110.0:
        if (pause_s := pace.pause_s()) > 0:
            assert pause_s <= PAUSE_S_MAX
            now_s += pause_s
        else:
            pace.note(50)
            rows += 50
            now_s += 0.001
    assert rows == pytest.approx(10_000, rel=0.02)


def test_what_was_missed_is_not_made_up() -> None:
    now_s = 100.0
    pace = Pace(1000, lambda: now_s)
    pace.note(100)
    now_s += 60
    pace.note(100)
    assert pace.pause_s() > 0


def test_without_a_limit_there_is_no_pause() -> None:
    pace = Pace(None)
    pace.note(1 << 40)
    assert pace.pause_s() == 0
