"""No split is lost or read twice because of when its reader comes, goes, or is told of the end."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.runtime.api.coordinator import NO_CHECKPOINT
from epochgate.runtime.api.plain_values import ValueNotPlain
from epochgate.runtime.source import (
    ReaderNotRegistered,
    SourceSplit,
    SplitsAfterNoMore,
    UnknownSubtask,
)
from tests.runtime.source.by_hand import HandGateway, HandJob


def test_a_split_for_a_reader_that_is_gone_comes_back_at_its_reset() -> None:
    job = HandJob().started()
    gateway = job.registered(0)
    job.coordinator.execution_attempt_failed(0, 0, "killed")
    job.enumerator.assign("1", to=0)
    assert gateway.sent == []
    job.coordinator.subtask_reset(0, NO_CHECKPOINT)
    assert job.enumerator.heard[-1] == ("back", ["1"], 0)
    assert job.registered(0, attempt=1).splits == []


def test_a_split_for_a_reader_to_come_is_sent_when_it_registers() -> None:
    job = HandJob().started()
    job.enumerator.assign("1", to=0)
    job.enumerator.context.signal_no_more_splits(0)
    with pytest.raises(ReaderNotRegistered):
        job.checkpoint(1)
    gateway = job.ready(0)
    assert gateway.sent == []
    job.say(0, "register", "host")
    assert gateway.splits == ["1"]
    assert gateway.sent[-1] == ["no more"]
    job.failed(0, back_to=NO_CHECKPOINT)
    assert job.enumerator.heard[-1] == ("back", ["1"], 0)


def test_a_checkpoint_with_splits_that_no_reader_came_for_fails() -> None:
    job = HandJob().started()
    job.enumerator.assign("1", to=2)
    with pytest.raises(ReaderNotRegistered, match=r"readers \[2\].*have never registered"):
        job.checkpoint(1)


def test_only_subtasks_of_the_job_can_be_assigned_splits() -> None:
    job = HandJob().started()
    with pytest.raises(UnknownSubtask, match="named subtask 3; the job has 0 to 2"):
        job.enumerator.assign("1", to=3)
    with pytest.raises(UnknownSubtask, match="named subtask -1; the job has 0 to 2"):
        job.enumerator.context.signal_no_more_splits(-1)


def test_a_split_that_is_not_plain_is_refused_and_no_other_of_the_call_assigned() -> None:
    job = HandJob().started()
    gateway = job.registered(0)
    splits = {0: [SourceSplit("1")], 1: [SourceSplit("2", object())]}
    with pytest.raises(ValueNotPlain, match="which cannot be kept or sent"):
        job.enumerator.context.assign_splits(splits)
    assert gateway.sent == []
    job.failed(0, back_to=NO_CHECKPOINT)
    assert job.enumerator.heard[-1] == ("reader", 0)


# no more splits


def test_a_restarted_reader_gets_its_splits_and_the_end_again() -> None:
    job = HandJob().started()

    def give(gateway: HandGateway) -> list[Any]:
        for split in ("1", "2"):
            job.say(0, "request", attempt=gateway.attempt)
            job.enumerator.assign(split, to=0)
        job.say(0, "request", attempt=gateway.attempt)
        job.enumerator.context.signal_no_more_splits(0)
        return gateway.sent

    first = give(job.registered(0))
    job.failed(0, back_to=99)
    assert job.enumerator.heard[-1] == ("back", ["1", "2"], 0)
    again = job.registered(0, attempt=1)
    assert again.sent == [], "it may get them, so the end is not repeated of itself"
    assert give(again) == first


def test_a_restarted_reader_without_splits_is_told_again_that_there_are_no_more() -> None:
    job = HandJob().started()
    assert job.registered(1).sent == []
    job.enumerator.context.signal_no_more_splits(1)
    for attempt in (1, 2):
        job.failed(1, back_to=99, attempt=attempt - 1)
        assert job.registered(1, attempt=attempt).sent == [["no more"]]


def test_a_restarted_reader_that_is_given_more_is_not_told_so_before() -> None:
    job = HandJob().started()
    job.registered(1)
    job.enumerator.context.signal_no_more_splits(1)
    job.failed(1, back_to=99)
    job.enumerator.assign("5", to=1)
    gateway = job.registered(1, attempt=1)
    assert (gateway.splits, gateway.told) == (["5"], [])
    job.enumerator.context.signal_no_more_splits(1)
    assert gateway.told == [["no more"]]


def test_a_request_that_crosses_the_end_is_not_asked_of_the_enumerator() -> None:
    job = HandJob().started()
    gateway = job.registered(1)
    job.enumerator.context.signal_no_more_splits(1)
    job.enumerator.context.signal_no_more_splits(1)
    job.say(1, "request")
    assert gateway.sent == [["no more"]]
    assert job.enumerator.heard[-1] == ("reader", 1)


def test_a_reader_that_may_have_ended_cannot_be_given_more() -> None:
    job = HandJob().started()
    job.registered(1)
    job.enumerator.context.signal_no_more_splits(1)
    with pytest.raises(SplitsAfterNoMore, match=r"assigned \['4'\] to reader 1"):
        job.enumerator.assign("4", to=1)
