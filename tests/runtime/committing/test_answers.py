"""A process's answer on a commit counts for what it was asked, and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.runtime.api.committing import Share
from tests.runtime.committing.rig import Rig
from tests.runtime.committing.sinks import Target, TargetSink
from tests.runtime.committing.test_committing import committed_globally


def share(subtask: int, rest: list[Any], passed: list[Any] | None) -> list[Any]:
    return Share(subtask, rest, True, passed or [], 0, passed).flat()


DONE = [share(0, [], ["a"])]


class Asked(Rig):
    """Both subtasks are asked to commit checkpoint 1, have failed once, and have not answered."""

    def __init__(self) -> None:
        signals: dict[str, list[Any]] = {row: [["retry_later", "busy"]] for row in ("a", "b")}
        self.target = Target(signals=signals)
        super().__init__(lambda _: TargetSink(self.target), commit_retry_delay_s=5.0)
        self.give(0, "a")
        self.give(1, "b")
        self.checkpoint()
        self.job.wait(5.0)
        self.job.drain()
        assert [self.waits(subtask) for subtask in (0, 1)] == [[1, 1], [1, 1]]

    def waits(self, subtask: int) -> list[int]:
        """Return what the process is asked: the checkpoint, and how many tries have failed."""
        process = self.job.transport.processes[self.identity(subtask)]
        return next((m[1:3] for m in process.to_task if m[0] == "commit"), [])

    def say(self, message: list[Any], identity: int | None = None) -> None:
        who = self.identity(0) if identity is None else identity
        self.job.transport.inbox.received(0, who, [message])
        self.job.drain()

    @property
    def committer(self) -> dict[str, Any]:
        found: dict[str, Any] = self.job.machines.values()["subtask_committer[0]"]
        return found

    def ends_well(self) -> bool:
        self.job.flow()
        self.finish()
        return sorted(committed_globally(self.target)) == ["a", "b"] and sorted(
            self.target.in_tasks
        ) == ["a", "b"]


@pytest.mark.parametrize(("checkpoint", "tries"), [(1, 0), (1, 2), (2, 1), (7, 0), (2**40, 1)])
@pytest.mark.parametrize("tag", ["committed", "commit_later"])
def test_an_answer_to_another_try_or_checkpoint_changes_nothing(
    tag: str, checkpoint: int, tries: int
) -> None:
    run = Asked()
    before = run.committer
    passed = None if tag == "commit_later" else ["a"]
    run.say(
        [tag, checkpoint, tries, [share(0, [], passed)], 0, ["told"], *["why"] * (passed is None)]
    )
    assert run.committer == before
    assert "told" not in str(run.warnings)
    assert committed_globally(run.target) == []
    assert run.ends_well()
    assert run.failures == []


def test_an_answer_of_an_evicted_process_changes_nothing() -> None:
    run = Asked()
    before, evicted = run.committer, run.identity(0)
    run.say(["committed", 1, 1, DONE, 0, []], evicted - 1)
    assert run.committer == before
    run.job.transport.cut(evicted)
    run.wait(2.0)
    assert run.identity(0) != evicted
    run.say(["committed", 1, 1, DONE, 0, []], evicted)
    assert run.ends_well()


def test_a_second_answer_to_the_same_try_changes_nothing() -> None:
    run = Asked()
    run.job.flow(only=0)
    settled = run.committer
    run.say(["committed", 1, 1, [share(0, [], ["x"])], 0, []])
    assert run.committer == settled
    assert run.ends_well()


@pytest.mark.parametrize("other", [1, 2, 3, 2**40])
def test_shares_that_a_subtask_was_not_asked_for_are_ignored(other: int) -> None:
    run = Asked()
    run.target.in_tasks["a"] = 1
    made_up = share(other, [], ["x"])
    run.say(["committed", 1, 1, [*DONE, made_up], 0, []])
    assert run.committer["state"] == "idle"
    assert run.ends_well()


def test_a_rest_of_shares_that_a_subtask_was_not_asked_for_is_ignored() -> None:
    run = Asked()
    mine, others = share(0, ["a"], None), share(1, ["x"], None)
    run.say(["commit_later", 1, 1, [mine, others], 0, [], "busy"])
    run.wait(10.0)
    assert run.ends_well()
    assert not any("x" in rows for _, _, rows in run.target.calls)
