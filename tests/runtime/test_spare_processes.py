"""Processes that come for a subtask of which an attempt has reached the end, and more of them than
there are places.
"""

from __future__ import annotations

import pytest

from tests.runtime.test_concurrent_attempts import Run, begun, let_die, of_subtask


def vertex_state(run: Run) -> str:
    vertex = run.job.machines.vertex[0]  # type: ignore[attr-defined]  # a job with concurrent attempts
    return str(vertex.state)


def ended_at(place: int) -> tuple[Run, int]:
    """Subtask 0 with an attempt at each of its places, of which one has reached the end; and the
    process of that one.
    """
    run = begun()
    finisher = of_subtask(run, 0)[place]
    while vertex_state(run) != "ended":
        run.job.drain()
        for step in run.job.steps():
            if step[1] == finisher and step in run.job.steps():
                run.job.step(step)
    run.job.flow(held=("blocking", "tell", "work"))
    return run, finisher


@pytest.mark.parametrize("place", [0, 1])
def test_a_process_that_waits_beside_the_finisher_takes_its_place(place: int) -> None:
    run, finisher = ended_at(place)
    run.job.transport.launch(0)
    run.job.flow(held=("blocking", "tell", "work"))
    spare = max(run.job.transport.processes)
    let_die(run, finisher)
    assert vertex_state(run) == "idle"
    run.job.wait(1.0)
    run.job.flow(held=("blocking", "tell", "work"))
    assert max(run.job.transport.processes) == spare
    assert vertex_state(run) == "attempted"
    run.finish()


@pytest.mark.parametrize("place", [0, 1])
def test_where_no_process_waits_beside_the_finisher_another_one_is_asked_for(place: int) -> None:
    run, finisher = ended_at(place)
    newest = max(run.job.transport.processes)
    let_die(run, finisher)
    run.job.wait(1.0)
    run.job.flow(held=("blocking", "tell", "work"))
    assert max(run.job.transport.processes) == newest + 1
    run.finish()


def test_a_process_that_waits_beside_the_finisher_waits_when_everything_restarts_too() -> None:
    run, _ = ended_at(1)
    run.job.transport.launch(0)
    run.job.flow(held=("blocking", "tell", "work"))
    spare = max(run.job.transport.processes)
    run.job.master.queue.post(run.job.master.job.holder[0].fail_job, "its state is wrong", False)
    run.job.flow()
    run.job.wait(1.0)
    run.job.flow(only=0)
    assert [p for p in of_subtask(run, 0) if p > spare] == []
    run.finish()


def test_a_process_that_comes_before_the_restart_is_taken_for_it() -> None:
    run = begun()
    for identity in of_subtask(run, 0):
        let_die(run, identity)
    assert vertex_state(run) == "idle"
    run.job.transport.launch(0)
    run.job.flow(held=("tell", "work"))
    spare = max(run.job.transport.processes)
    run.job.wait(1.0)
    run.job.flow(held=("tell", "work"))
    assert max(run.job.transport.processes) == spare
    run.finish()


def test_each_process_more_than_there_are_places_takes_that_of_the_oldest() -> None:
    run = begun()
    for oldest in (0, 1, 2):
        run.job.transport.launch(0)
        run.job.flow(held=("tell", "work"))
        failed = [attempt for what, _, attempt in run.told(0) if what == "failed"]
        assert failed == list(range(oldest + 1))
    run.finish()


@pytest.mark.parametrize("first", [0, 1])
def test_the_record_names_the_attempt_that_another_one_outlives(first: int) -> None:
    run = begun()
    let_die(run, of_subtask(run, 0)[first])
    told = [(f.subtask, f.attempt) for f in run.job.master.report.failures]
    assert told == [(0, first)]
    run.finish()


@pytest.mark.parametrize("first", [0, 1])
def test_a_process_that_comes_takes_a_vacant_place_and_no_other(first: int) -> None:
    run = begun()
    let_die(run, of_subtask(run, 0)[first])
    run.job.transport.launch(0)
    run.job.flow(held=("tell", "work"))
    failed = [attempt for what, _, attempt in run.told(0) if what == "failed"]
    assert failed == [first]
    run.finish()
