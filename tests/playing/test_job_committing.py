"""Random schedules on the closed systems of commits in several steps: the production job, with
committers in its tasks and operators of the user's between, does the same step by step, and while
events wait; its tasks fail, and its drivers die.
"""

from __future__ import annotations

import pytest

from epochgate.models.closed.committing import CommittingInSteps
from epochgate.models.committing_job import CommittingJob
from epochgate.runtime.shell.commits import Commits
from epochgate.runtime.shell.committing import SteppedCommits
from epochgate.runtime.shell.stages import Stage
from epochgate.runtime.shell.task_commits import TaskCommits
from tests.playing.gates import Lie, the_truth
from tests.playing.job_committing_stage import ALONE, SteppedStage
from tests.playing.job_committing_walks import STEPS, SYSTEMS, interleaved, walked
from tests.playing.job_lies import arguments_of, lying
from tests.playing.swarm import kind

WALKS, DEEP_WALKS = 12, 120
MOVES = ("process.arrive", "process.tell", "process.hear")
DEEP = (pytest.mark.deep, pytest.mark.timeout(1200))


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_commits_in_steps_as_the_closed_systems_do(walks: int) -> None:
    taken = set[str]()
    for seed in range(walks):
        for system in SYSTEMS:
            walked(system, seed, taken)
    assert taken == STEPS


@pytest.mark.parametrize("walks", [WALKS, pytest.param(DEEP_WALKS, marks=DEEP)])
def test_the_runtime_commits_in_steps_what_waits_as_the_closed_systems_do(walks: int) -> None:
    behind = set[str]()
    for seed in range(walks):
        for system in SYSTEMS:
            interleaved(system, seed, behind)
    assert behind == STEPS - ALONE.keys()


LIES = arguments_of(
    CommittingJob, "stage_before", "subtask_committer", "committable_collector", "stage_behind"
)
"""Those of the other machines are told in jobs that commit in one step."""
SAMPLE = ("subtask_committer.task.keep(tries)", "committable_collector.parts.collect(outcome)")
"""Those that each run of the tests looks for."""


@pytest.mark.parametrize("by", [1, pytest.param(-1, marks=pytest.mark.mutants)])
@pytest.mark.parametrize(
    "argument",
    [told if told in SAMPLE else pytest.param(told, marks=pytest.mark.mutants) for told in LIES],
)
def test_a_wrong_argument_is_found(argument: str, by: int) -> None:
    lie = lying(argument, by)
    assert any(_finds(seed, lie) for seed in range(20)), "no walk finds it"


def _finds(seed: int, lie: Lie) -> bool:
    try:
        for system in SYSTEMS:
            walked(system, seed, set(STEPS), lie)
    except Exception:  # noqa: BLE001  # whatever it is, the walk has not gone on unnoticed
        return True
    return False


def test_a_commit_of_nothing_is_not_put_off() -> None:
    """One subtask has passed on its part, as is stored, and another has not, when a driver dies."""
    stage = SteppedStage(CommittingInSteps(F=3, operators_before=0, operators_behind=0))

    def move(but: str = "") -> None:
        """Let processes come, and messages arrive."""
        while moving := [s for s in stage.possible() if kind(s) in MOVES and s != but]:
            stage.take(moving[0])

    stage.take("launch.launch")
    move()
    stage.take("requester.want")
    move()
    stage.take("store.finish_save")
    move(but="process[1].tell")
    stage.take("process[1].put_off")
    stage.take("process[1].hear")
    stage.take("person.stop")
    move()
    for step in ("store.finish_save", "launch.die", "launch.launch", "process[0].arrive"):
        stage.take(step)
    move(but="process[0].tell")
    commit = stage.job.next_message(0)
    assert commit == ["commit", 1, 0, []]
    assert "process[0].put_off" not in stage.possible()
    stage.take("process[0].tell")
    stage.take("process[0].hear")
    assert [*stage.job.steps.subtask_committer[0].passed] == [1]


IDLE = [
    *((TaskCommits, name) for name in ("renew", "pause", "keep", "note", "release")),
    *((TaskCommits, name) for name in ("completed", "aborted", "collect", "keep_passed", "whole")),
    *((Stage, name) for name in ("process", "take", "keep", "_keep_states")),
    (SteppedCommits, "_adopt"),
    *((Commits, name) for name in ("carry", "hold", "release")),
]
"""What the shells do at an effect, or once a checkpoint is over."""


@pytest.mark.mutants
@pytest.mark.parametrize(("shell", "name"), IDLE)
def test_a_shell_that_leaves_something_undone_is_found(
    monkeypatch: pytest.MonkeyPatch, shell: type, name: str
) -> None:
    monkeypatch.setattr(shell, name, lambda *_: None)
    assert any(_finds(seed, the_truth) for seed in range(20)), "no walk finds it"
