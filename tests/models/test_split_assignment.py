"""The rules by which a reset takes splits back, as Flink's SplitAssignmentTrackerTest has them."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.fsm import Outcome, TransitionRefused
from epochgate.models.split_assignment import SplitAssignment, SplitAssignments
from epochgate.runtime import NO_CHECKPOINT


class Source:
    """The machines of two subtasks whose readers are not looked at."""

    def __init__(self, places: int = 1) -> None:
        self.system = SplitAssignments(subtasks=2, places=places)

    def __getitem__(self, subtask: int) -> SplitAssignment:
        return self.system.assignment[subtask]

    def assign(self, subtask: int, *splits: str) -> None:
        for split in splits:
            self[subtask].assign(split)

    def take(self, checkpoint: int) -> None:
        for machine in self.system.assignment:
            machine.take(checkpoint)

    def complete(self, checkpoint: int) -> None:
        for machine in self.system.assignment:
            machine.complete(checkpoint)

    def taken_back(self, subtask: int, restored: int) -> list[Any]:
        """Return what comes back when the subtask fails and goes back to a checkpoint."""
        machine = self[subtask]
        if machine.is_there(subtask):
            machine.lost(subtask)
        machine.reset(restored)
        return told(machine, "enumerator", "returned")


def told(machine: SplitAssignment, port: str, message: str) -> list[Any]:
    """Take what a machine has told of one kind: the last argument of each message."""
    kind = type(machine).EFFECTS[port][message]
    system = machine.system
    taken = [e for e in system.effects if isinstance(e, kind) and e.index == machine.index]
    kept = [(type(e), tuple(e)) for e in system.effects if e not in taken]
    system.emitted.clear()
    system.emitted.extend(kept)
    return [effect.arguments[-1] for effect in taken]


@pytest.fixture
def source() -> Source:
    source = Source()
    for subtask in (0, 1):
        source[subtask].ready(subtask)
        source[subtask].register(subtask)
        source[subtask].announced()
    return source


def test_assignments_are_recorded_one_after_the_other(source: Source) -> None:
    source.assign(0, "a")
    source.assign(1, "b", "c")
    source.assign(0, "d")
    assert [list(machine.uncheckpointed) for machine in source.system.assignment] == [
        ["a", "d"],
        ["b", "c"],
    ]
    assert [list(machine.checkpointed) for machine in source.system.assignment] == [[], []]


def test_a_checkpoint_takes_over_what_is_uncheckpointed(source: Source) -> None:
    source.assign(0, "a")
    source.take(100)
    source.assign(1, "b")
    assert list(source[1].uncheckpointed) == ["b"]
    assert (list(source[0].checkpointed), list(source[0].belongs_to)) == (["a"], [100])
    assert list(source[0].uncheckpointed) == []


def test_completion_drops_that_checkpoint_and_the_older_ones(source: Source) -> None:
    for checkpoint, split in ((99, "a"), (100, "b"), (101, "c")):
        source.assign(0, split)
        source.take(checkpoint)
    source.complete(100)
    assert (list(source[0].checkpointed), list(source[0].belongs_to)) == (["c"], [101])


@pytest.mark.parametrize(
    ("restored", "returned"),
    [(NO_CHECKPOINT, "abcd"), (99, "abcd"), (100, "cd"), (101, "d"), (102, "d")],
)
def test_a_reset_takes_back_what_came_after_the_restored_checkpoint(
    source: Source, restored: int, returned: str
) -> None:
    source.assign(0, "a", "b")
    source.assign(1, "x")
    source.take(100)
    source.assign(0, "c")
    source.take(101)
    source.assign(0, "d")
    assert source.taken_back(0, restored) == list(returned)
    assert source.taken_back(0, restored) == [], "they are taken back once"
    assert source.taken_back(1, NO_CHECKPOINT) == ["x"], "others keep theirs"


def test_assignments_of_an_aborted_checkpoint_come_back_until_a_later_one_completes(
    source: Source,
) -> None:
    source.assign(0, "a")
    source.take(1)
    assert source[0].abort() is Outcome.IGNORED
    source.assign(0, "b")
    source.take(2)
    assert source.taken_back(0, NO_CHECKPOINT) == ["a", "b"]
    source[0].ready(1)
    source[0].register(1)
    source.assign(0, "a", "b")
    source.take(3)
    source.complete(3)
    source[0].lost(1)
    assert source.taken_back(0, 3) == []


def test_a_completed_checkpoint_gives_nothing_back(source: Source) -> None:
    source.assign(0, "a", "b")
    source.take(100)
    source.complete(100)
    assert source.taken_back(0, 100) == []
    assert list(source[0].uncheckpointed) == []
    assert list(source[0].checkpointed) == []


def test_everything_remembered_can_be_listed_until_a_checkpoint_completes(source: Source) -> None:
    source.assign(0, "a")
    source.take(5)
    source.assign(0, "b")
    for _ in range(2):
        source[0].list_all()
        assert told(source[0], "enumerator", "listed") == ["a", "b"]
    assert list(source[0].uncheckpointed) == ["b"], "nothing has changed"
    source.complete(5)
    with pytest.raises(TransitionRefused):
        source[0].list_all()


def test_what_waits_for_a_reader_fails_the_checkpoint_and_is_sent_to_the_reader() -> None:
    machine = Source()[0]
    machine.assign("a")
    machine.take(1)
    assert [effect.message for effect in machine.system.effects] == ["unsent"]
    assert list(machine.uncheckpointed) == ["a"]
    machine.ready(0)
    machine.register(0)
    assert told(machine, "readers", "send") == ["a"]
    machine.take(2)
    assert list(machine.belongs_to) == [2]


def test_a_late_message_of_an_attempt_that_is_gone_is_ignored() -> None:
    machine = Source()[0]
    for attempt in (0, 1):
        machine.ready(attempt)
        machine.register(attempt)
        machine.announced()
        if attempt == 0:
            machine.lost(0)
    for late in (machine.register, machine.request, machine.lost):
        assert late(0) is Outcome.IGNORED
    assert machine.speak(0, "late") is Outcome.IGNORED
    for early in (machine.register, machine.request):
        with pytest.raises(TransitionRefused):
            early(2)


def test_a_second_attempt_of_a_subtask_is_sent_everything_and_told_the_end() -> None:
    machine = Source(places=2)[0]
    machine.ready(0)
    machine.register(0)
    machine.assign("a")
    machine.take(1)
    machine.assign("b")
    machine.signal()
    assert told(machine, "readers", "tell_no_more") == [0]
    told(machine, "readers", "send")
    machine.ready(1)
    machine.register(1)
    assert told(machine, "readers", "send") == ["a", "b"]
    assert told(machine, "readers", "tell_no_more") == [1]
    machine.lost(0)
    assert machine.state == "told"
    machine.lost(1)
    assert machine.state == "owed"
