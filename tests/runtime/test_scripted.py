"""Scripted user code does what its script says, and the script keeps every call of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from epochgate import testing
from epochgate.runtime import JobConfiguration, JobLoop, JobMaster, Work
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.shell.blocking_work import ThreadedWork
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.store import InMemoryCheckpointStore
from epochgate.testing import (
    Script,
    ScriptedOperator,
    ScriptedProgram,
    ScriptedProvider,
    SimulatedJob,
)
from tests.runtime.happenings import let_anything_happen
from tests.runtime.test_loop import OneTask

GUIDE = Path(__file__).parents[2] / "docs" / "testing.md"


def simulated(script: Script, subtasks: int = 1, interval_s: float | None = None) -> SimulatedJob:
    return SimulatedJob(
        lambda _: JobConfiguration(
            "job",
            subtasks,
            (ScriptedProvider("rules", script),),
            checkpoint_interval_s=interval_s,
            tolerable_checkpoint_failures=0,
            restart_strategy=FixedDelay(10_000, 1.0),
        ),
        lambda _: ScriptedProgram({"rules": ScriptedOperator(script)}, script),
    )


def up(script: Script, subtasks: int = 1) -> SimulatedJob:
    job = simulated(script, subtasks)
    job.settle()
    return job


def test_the_guide_on_tests_shows_a_test_that_passes() -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    [block] = [each for each in blocks if "SimulatedJob(" in each]
    shown: dict[str, Any] = {}
    exec(compile(block, str(GUIDE), "exec"), shown)  # noqa: S102  # our own page
    tests = [thing for name, thing in shown.items() if name.startswith("test_")]
    assert len(tests) == 1
    tests[0]()


def test_the_guide_on_tests_names_everything_that_tests_are_written_with() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert [name for name in dir(testing) if f"`{name}`" not in text] == []


def test_every_call_stands_in_the_record_with_its_arguments() -> None:
    script = Script(answer=lambda request: None)
    job = up(script)
    script.coordinator.send(0, ["a", 1])
    job.settle()
    script.operators["rules", 0].send("b")
    job.settle()
    job.master.request("rules", "how")
    job.master.request_checkpoint()
    job.settle()
    job.master.cancel()
    job.settle(lambda: job.is_over)
    assert script.calls == [
        "rules.create()",
        "rules.start()",
        "rules[0].open(None)",
        "rules.execution_attempt_ready(0, 0)",
        "rules[0].handle_event(['a', 1])",
        "rules.handle_event_from_operator(0, 0, 'b')",
        "rules.handle_client_request('how')",
        "rules.checkpoint(1)",
        "rules[0].prepare_commit(1)",
        "rules[0].snapshot(1)",
        "rules.notify_checkpoint_complete(1)",
        "rules[0].notify_checkpoint_complete(1)",
        "rules[0].close()",
        "rules.execution_attempt_failed(0, 0, 'all attempts were canceled')",
        "rules.close()",
    ]
    assert script.told("rules[0].handle_event") == [(["a", 1],)]


def test_a_checkpoint_is_completed_when_the_test_says_so() -> None:
    script = Script(is_completing=False)
    job = up(script)
    wanted = job.master.request_checkpoint()
    job.flow()
    assert list(script.coordinator.results) == [1]
    script.coordinator.send(0, "before")
    script.coordinator.complete(1)
    script.coordinator.send(0, "after")
    job.settle(wanted.done)
    stored = job.store.load(1)
    assert stored.coordinators == {"rules": b"\x92\x91\x91\xa6before\x91\x90"}
    assert stored.subtasks == {0: {"rules": b"\x91\xa6before"}}


def test_an_error_is_raised_once_at_its_place_and_taken_off() -> None:
    script = Script({"rules[1].snapshot": [ValueError("a row too long")]})
    job = up(script, subtasks=2)
    script.raise_at("program.work", ValueError("no input"))
    job.settle()
    job.master.request_checkpoint()
    job.settle()
    assert script.errors == {}
    assert len(job.master.report.failures) == 2
    assert [failure.subtask for failure in job.master.report.failures][1] == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda place: Script({place: [ValueError()]}),
        lambda place: Script().raise_at(place, ValueError()),
        lambda place: Script().hang_at(place),
        lambda place: Script().told(place),
    ],
)
@pytest.mark.parametrize("place", ["rules.snapshoot", "rules", "rules[0]", ""])
def test_a_place_that_is_none_is_refused(use: Callable[[str], object], place: str) -> None:
    with pytest.raises(ValueError, match="is no place; behind the dot stands one of"):
        use(place)


def test_a_call_hangs_until_it_is_let_go() -> None:
    script = Script()
    loop = JobLoop(
        JobMaster(
            JobConfiguration("job", 1, (ScriptedProvider("rules", script),)),
            transport=OneTask(),
            store=InMemoryCheckpointStore(job_id="job"),
            clock=MonotonicClock(),
            blocking=ThreadedWork,
        )
    )
    has_begun, is_behind = threading.Event(), threading.Event()
    context = script.coordinator.context
    let_go = script.hang_at("rules.handle_client_request")
    loop.start()
    context.post(has_begun.set)
    assert has_begun.wait(60)
    asked = loop.master.request("rules", "how")
    context.post(is_behind.set)
    assert not is_behind.wait(0.05), "the queue's thread hangs in the call before"
    let_go.set()
    assert is_behind.wait(60)
    assert asked.exception(10) is not None
    loop.master.cancel()
    loop.join(60)


def test_the_input_ends_when_the_script_says_so() -> None:
    script = Script(work=Work.ENDED)
    job = simulated(script)
    job.settle(lambda: job.is_over)
    assert job.result.state == "finished"


def test_a_driver_that_starts_again_restores_what_was_sent_and_heard() -> None:
    script = Script()
    job = up(script, subtasks=2)
    script.coordinator.send(1, "a")
    script.operators["rules", 0].send("b")
    job.settle()
    job.master.request_checkpoint()
    job.settle()
    script.coordinator.send(1, "lost")
    job.crash_driver()
    job.settle()
    assert len(script.coordinators) == 2
    assert (script.coordinator.sent, script.coordinator.heard) == ([[], ["a"]], [["b"], []])
    assert script.operators["rules", 1].handled == ["a"]


def test_whatever_fails_what_was_sent_is_what_was_handled() -> None:
    resets = 0
    for seed in range(40):
        script = Script()
        job = simulated(script, subtasks=2, interval_s=3.0)
        let_anything_happen(job, seed, 600, *(partial(send, script, s) for s in (0, 1)))
        settle_with_a_checkpoint(job)
        for subtask, sent in enumerate(script.coordinator.sent):
            assert script.operators["rules", subtask].handled == sent, f"seed {seed}"
        resets += len(script.told("rules.subtask_reset"))
    assert resets > 20


def settle_with_a_checkpoint(job: SimulatedJob) -> None:
    """A checkpoint misses an event that is lost with none behind it."""
    for _ in range(2):  # what is missed takes the job back, and the second completes
        job.settle()
        job.settle(job.master.request_checkpoint().done)
    job.settle()


def send(script: Script, subtask: int) -> None:
    if subtask in script.coordinator.gateways:
        script.coordinator.send(subtask, len(script.calls))
