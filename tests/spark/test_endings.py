"""Processes that are to have a successor are ended if none comes in time."""

from __future__ import annotations

import time

import pytest

from epochgate.spark.endings import LOOK_LATE_S, Endings, TaskProcess
from epochgate.spark.wire import ChannelClosed
from tests.spark.wire.harness import receive_count, running_wire

WITHIN_S = 1.5
PROCESS = TaskProcess(subtask=0, identity=7, host="host", pid=1)


class Processes:
    """The processes that came and were ended, as `Endings` is told."""

    def __init__(self) -> None:
        self.has_successor = False
        self.ended: list[str] = []
        self.endings = Endings(lambda identity: None, lambda process: self.has_successor)
        self.began_s = time.monotonic()
        self.endings.expect_successor(PROCESS, WITHIN_S, "it was released")

    def look(self, after_s: float) -> None:
        self.endings.look(self.began_s + after_s)
        self.endings.kill_next(lambda attempt, reason: self.ended.append(reason), 0.0)

    def looks(self, from_s: float, to_s: float) -> None:
        for tenth in range(round(10 * (to_s - from_s)) + 1):
            self.look(from_s + tenth / 10)


def test_a_process_without_a_successor_is_ended_once() -> None:
    processes = Processes()
    processes.looks(0.0, WITHIN_S - 0.1)
    assert processes.ended == []
    processes.looks(WITHIN_S, 3 * WITHIN_S)
    assert processes.ended == ["it was released"]


def test_a_process_with_a_successor_is_left_alone() -> None:
    processes = Processes()
    processes.look(0.0)
    processes.has_successor = True
    processes.looks(0.1, 3 * WITHIN_S)
    assert processes.ended == []


def test_a_successor_that_came_while_the_driver_paused_is_still_waited_for() -> None:
    processes = Processes()
    processes.looks(0.0, 0.5)
    paused_s = 60.0
    processes.looks(paused_s, paused_s + WITHIN_S - 0.1)
    assert processes.ended == []
    processes.looks(paused_s + WITHIN_S, paused_s + 2 * WITHIN_S)
    assert processes.ended == ["it was released"]


def test_looks_that_are_a_little_late_delay_no_end() -> None:
    processes = Processes()
    for number in range(5):
        processes.look(number * 0.9 * LOOK_LATE_S)
    assert processes.ended == ["it was released"]


def test_a_released_process_that_stays_is_closed_once_another_speaks() -> None:
    with running_wire() as wire, wire.pair() as (connection, channel):
        endings = Endings(lambda identity: connection, lambda process: True)
        endings.expect_successor(PROCESS, WITHIN_S, "its attempt is over")
        endings.look(time.monotonic())
        with pytest.raises(ChannelClosed, match="its attempt is over"):
            receive_count(channel, 1)
