"""Driver and tasks write what their machines do as lines of JSON: bounded, without a user's data,
and without harm to the job.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochgate.fsm import EventQueue, VirtualClock
from epochgate.fsm.traces.lines import opened
from epochgate.runtime.tracing import file_journal
from epochgate.runtime.tracing.file_journal import TraceExists, Tracing
from epochgate.runtime.tracing.validation import validated
from tests.fsm.turnstile import Log, Station
from tests.traces.stories import SECRET, told


def lines(path: Path) -> list[dict[str, Any]]:
    return [opened(line) for line in path.read_bytes().splitlines(keepends=True)]


class Journalled:
    """A station whose events are journalled, on a virtual clock."""

    def __init__(self, directory: Path) -> None:
        self.station, self.clock = Station(gates=2), VirtualClock()
        self.station.bind("turnstile", "guard", Log())
        self.journal = Tracing(str(directory), "job", "run").driver(self.station)
        self.queue = EventQueue(self.station, self.clock, self.journal)
        self.path = directory / "run" / "driver.000001.jsonl"

    def pay(self, fare: int = 1) -> None:
        self.queue.post(self.station.turnstile[0].pay, fare)


@pytest.fixture
def journalled(tmp_path: Path) -> Iterator[Journalled]:
    made = Journalled(tmp_path)
    yield made
    made.journal.close()


def test_each_process_writes_a_trace_of_its_own(tmp_path: Path) -> None:
    run = told(tmp_path)
    assert sorted(path.name for path in run.iterdir()) == [
        "driver.000001.jsonl",
        "task-0-1.000001.jsonl",
        "task-0-3.000001.jsonl",
        "task-1-2.000001.jsonl",
    ]


def test_every_line_is_json_and_the_head_says_what_made_it(tmp_path: Path) -> None:
    path = told(tmp_path) / "task-1-2.000001.jsonl"
    for line in path.read_text().splitlines():
        assert isinstance(json.loads(line), dict)
    head = lines(path)[0]
    assert (head["trace"], head["job_id"], head["run_id"]) == (1, "story", "run-0")
    assert head["process"] == {"role": "task", "subtask": 1, "identity": 2}
    assert head["system"] == "epochgate.models.task:TaskSystem"
    assert head["constants"] == {"coordinators": 1}
    assert len(head["digest"]) == 16


def test_a_line_has_the_event_its_arguments_and_its_effects(journalled: Journalled) -> None:
    journalled.pay(2)
    journalled.queue.drain()
    journalled.clock.advance(1.5)
    journalled.queue.post(journalled.station.turnstile[0].push, "a secret")
    journalled.queue.drain()
    journalled.journal.close()
    _, pay, push, foot = lines(journalled.path)
    assert pay == {"n": 1, "t": 0.0, "do": "turnstile[0].pay", "with": [2]}
    assert push == {
        "n": 2,
        "t": 1.5,
        "do": "turnstile[0].push",
        "with": [None],
        "out": [["turnstile[0].guard.passed", 1]],
    }
    assert foot["end"] == 2
    assert foot["state"]["turnstile[0]"]["state"] == "locked"


def test_events_that_differ_in_a_growing_number_alone_share_a_line(tmp_path: Path) -> None:
    run = told(tmp_path, events=40)
    sent = [line for line in lines(run / "driver.000001.jsonl") if line.get("times", 1) > 1]
    assert sent[0]["times"] == 40
    assert sent[0]["out"] == [["gateway[0][0].wire.event", 1, [1, 40], None]]


def test_no_data_of_users_gets_into_a_trace(tmp_path: Path) -> None:
    run = told(tmp_path)
    for path in run.iterdir():
        assert SECRET not in path.read_text()
        assert "swordfish" not in path.read_text()


def test_a_trace_is_cut_into_segments_each_with_the_state_at_its_beginning(tmp_path: Path) -> None:
    run = told(tmp_path, segment_bytes=1)
    segments = sorted(run.glob("driver.*"))
    assert len(segments) > 2
    heads = [lines(path)[0] for path in segments]
    assert [head["segment"] for head in heads] == [*range(1, len(heads) + 1)]
    assert heads[0]["first"] == 1
    assert heads[0]["state"]["lifecycle"]["state"] == "created"
    assert heads[1]["state"]["lifecycle"]["state"] == "running"


def test_the_oldest_segments_are_removed_and_what_is_left_can_be_checked(tmp_path: Path) -> None:
    run = told(tmp_path, segment_bytes=1, segments_max=2)
    driver = sorted(run.glob("driver.*"))
    assert len(driver) == 2
    assert lines(driver[0])[0]["first"] > 1
    validation = validated([run])
    assert validation.is_accepted(), validation.to_json()
    assert validation.joined == 3


def test_a_kill_takes_the_events_of_the_last_fifth_of_a_second(journalled: Journalled) -> None:
    journalled.pay()
    journalled.queue.drain()
    assert len(lines(journalled.path)) == 1
    journalled.clock.advance(file_journal.FLUSH_S)
    journalled.queue.drain()
    assert [line["do"] for line in lines(journalled.path)[1:]] == ["turnstile[0].pay"]


def test_a_queue_is_to_come_back_while_events_wait_to_be_written(journalled: Journalled) -> None:
    journal, queue = journalled.journal, journalled.queue
    queue.drain()
    assert journal.due_in_s() is None
    journalled.pay()
    queue.drain()
    assert journal.due_in_s() == pytest.approx(file_journal.FLUSH_S)
    journalled.clock.advance(1.0)
    assert journal.due_in_s() == 0.0
    queue.drain()
    assert journal.due_in_s() is None


def test_a_run_of_equal_events_goes_on_over_several_bursts(journalled: Journalled) -> None:
    bursts = 3
    for _ in range(bursts):
        for _ in range(file_journal.ENTRIES_MAX):
            journalled.pay()
        journalled.queue.drain()
    journalled.journal.close()
    events = [line for line in lines(journalled.path) if "do" in line]
    assert [line.get("times") for line in events] == [bursts * file_journal.ENTRIES_MAX]
    assert journalled.station.turnstile[0].coins == bursts * file_journal.ENTRIES_MAX


def test_a_disk_that_refuses_ends_the_trace_and_not_the_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "run").write_text("in the way of a directory")
    with caplog.at_level(logging.WARNING):
        journalled = Journalled(tmp_path)
    journalled.pay(2)
    journalled.queue.drain()
    journalled.journal.close()
    assert journalled.station.turnstile[0].state == "unlocked"
    assert "cannot be written" in caplog.text
    assert "the job goes on without" in caplog.text


def test_a_trace_is_never_written_over(tmp_path: Path, journalled: Journalled) -> None:
    with pytest.raises(TraceExists, match="another directory"):
        Journalled(tmp_path)
