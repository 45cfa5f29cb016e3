"""Saves and commits of an ingestion hang when the chaos says so, and no longer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from epochgate.chaos.hanging import Hanging
from epochgate.chaos.striking import Chaos, ChaosImpossible, Strike


class Plan:
    """The part of a plan that is held."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.store = SimpleNamespace(save=self._call("save"))
        self.job_committer = SimpleNamespace(commit=self._call("commit"))

    def _call(self, name: str) -> Any:
        def call(*arguments: Any) -> str:
            self.calls.append((name, *arguments))
            return f"{name} done"

        return call


def test_calls_hang_until_they_may_go_on_and_answer_what_they_would() -> None:
    plan: Any = Plan()
    hanging = Hanging(plan)
    assert plan.store.save("a") == "save done"
    hanging.begin()
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(plan.job_committer.commit(7, {})))
    thread.start()
    thread.join(0.05)
    assert (plan.calls, answers) == ([("save", "a")], [])
    hanging.end()
    thread.join()
    assert (plan.calls[1:], answers) == ([("commit", 7, {})], ["commit done"])


def test_an_answer_hangs_too() -> None:
    plan: Any = Plan()
    is_called, may_answer = threading.Event(), threading.Event()

    def save() -> str:
        is_called.set()
        may_answer.wait()
        return "save done"

    plan.store.save = save
    hanging = Hanging(plan)
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(plan.store.save()))
    thread.start()
    is_called.wait()
    hanging.begin()
    may_answer.set()
    thread.join(0.05)
    assert answers == []
    hanging.end()
    thread.join()
    assert answers == ["save done"]


@pytest.fixture
def job() -> Any:
    """One that completes a checkpoint at each look."""
    ids: Iterator[int] = iter(range(1, 1_000_000))
    context = MagicMock()
    context._jvm.java.lang.ProcessHandle.current().pid.return_value = 1
    return SimpleNamespace(
        is_over=False,
        spark_context=context,
        status=lambda: SimpleNamespace(last_checkpoint_id=next(ids), state="running", tasks=[]),
    )


def test_a_hang_is_noted_and_ends(job: Any) -> None:
    plan: Any = Plan()
    struck = threading.Event()
    strikes: list[Strike] = []

    def note(strike: Strike) -> None:
        strikes.append(strike)
        struck.set()

    hanging = Hanging(plan)
    with Chaos(
        job, ["hang"], hanging=hanging, hang_s_max=0.5, delay_s_max=0.0, on_strike=note
    ) as chaos:
        struck.wait()
        assert plan.store.save("a") == "save done", "once the hang is over"
    assert [strike.kind for strike in strikes] == ["hang"]
    assert (chaos.error, chaos.is_done) == (None, True)


def test_a_hang_ends_with_the_job(job: Any) -> None:
    plan: Any = Plan()

    def end(strike: Strike) -> None:
        job.is_over = True

    with Chaos(
        job, ["hang"], hanging=Hanging(plan), hang_s_max=1e6, delay_s_max=0.0, on_strike=end
    ):
        pass
    assert plan.store.save("a") == "save done"


def test_a_job_whose_calls_cannot_be_held_has_no_hangs(job: Any) -> None:
    with Chaos(job, ["hang"], delay_s_max=0.0) as chaos:
        chaos._thread.join()
    assert isinstance(chaos.error, ChaosImpossible)
