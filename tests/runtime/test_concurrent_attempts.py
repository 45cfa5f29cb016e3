"""Several attempts of one subtask at once, in simulation: what coordinators are told, and in which
order; and that a batch job gives each of its results once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest

from epochgate.fsm import machines
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.models.execution_vertex import ExecutionVertex
from epochgate.models.job import Job
from epochgate.models.studies.broken.concurrent import HastyVertex
from epochgate.runtime import (
    Committables,
    Committer,
    CoordinatorContext,
    CoordinatorProvider,
    EventLost,
    JobConfiguration,
    JobMisconfigured,
    NoCheckpointAmongAttempts,
    Operator,
    OperatorContext,
    OperatorCoordinator,
    Program,
    RecreateOnReset,
    SubtaskGateway,
    Work,
)
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.testing.simulation import SimulatedJob

ROWS = [10, 11, 12]
END = "end"
SUBTASKS = 2


@dataclass
class Account:
    """The calls of one coordinator, and what of them breaks the contract."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    ready: dict[tuple[int, int], SubtaskGateway] = field(default_factory=dict)
    seen: set[tuple[int, int]] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    """Subtasks of which an attempt has failed since they were reset."""
    wrong: list[str] = field(default_factory=list)
    resets: int = 0

    def expect(self, holds: bool, claim: str) -> None:
        if not holds:
            self.wrong.append(f"{claim}: {self.calls[-10:]}")

    def live(self, subtask: int) -> list[int]:
        return [attempt for s, attempt in self.ready if s == subtask]


class Distributor(OperatorCoordinator):
    """Gives each attempt of a subtask all of its rows, and checks what it is told."""

    def __init__(self, account: Account) -> None:
        self.account = account

    def start(self) -> None:
        pass

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.account.calls.append(("reset to", checkpoint_id))
        self.account.expect(not self.account.ready, "all are gone when everything goes back")
        self.account.failed.clear()

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        account = self.account
        account.calls.append(("ready", subtask, attempt))
        account.expect((subtask, attempt) not in account.seen, "an attempt is ready once")
        account.expect((gateway.subtask, gateway.attempt) == (subtask, attempt), "its own gateway")
        account.seen.add((subtask, attempt))
        account.ready[subtask, attempt] = gateway
        for row in [*ROWS, END]:
            gateway.send_event([subtask, attempt, row])

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self.account.calls.append(("failed", subtask, attempt, reason))
        self.account.ready.pop((subtask, attempt), None)
        self.account.failed.add(subtask)

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        account = self.account
        account.calls.append(("reset", subtask, checkpoint_id))
        account.expect(not account.live(subtask), "a subtask is reset once its attempts are gone")
        account.expect(subtask in account.failed, "a subtask is reset once for its failures")
        account.failed.discard(subtask)
        account.resets += 1

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        self.account.calls.append(("event", subtask, attempt, event))
        self.account.expect((subtask, attempt) in self.account.ready, "it comes from one who lives")
        self.account.expect(event == [subtask, attempt], "it comes from the attempt that said it")


class Provider(CoordinatorProvider):
    operator_id = "rows"

    def __init__(self, account: Account) -> None:
        self.account = account
        self.contexts: list[CoordinatorContext] = []

    def create(self, context: CoordinatorContext) -> Distributor:
        self.contexts.append(context)
        return Distributor(self.account)


class Reader(Operator):
    """Hands over the rows that it got, when all are there."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.has_all = self.has_given = False

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.has_given = state is not None  # it begins from the checkpoint that ends the job

    def handle_event(self, event: Any) -> None:
        subtask, attempt, row = event
        if (subtask, attempt) != (self.context.subtask, self.context.attempt):
            raise AssertionError(f"{event} came to attempt {self.context.attempt}")
        if row == END:
            self.has_all = True
            self.context.send_to_coordinator([subtask, attempt])
        else:
            self.rows.append(row)

    def snapshot(self, checkpoint_id: int) -> bytes:
        return bytes(self.rows)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        return [] if self.has_given else [list(self.rows)]


class Batch(Program):
    def __init__(self, subtask: int) -> None:
        self.reader = Reader()

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"rows": self.reader}

    def work(self) -> Work:
        return Work.ENDED if self.reader.has_all else Work.IDLE


@dataclass
class Results(Committer):
    given: list[tuple[int, list[int]]] = field(default_factory=list)

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        self.given += [
            (subtask, rows) for subtask, all_rows in committables.items() for rows in all_rows
        ]

    def close(self) -> None:
        pass


@dataclass
class Run:
    """One simulated job, with what its coordinator was told and what it gave."""

    concurrent: int = 2
    recreated: bool = False
    machines: Callable[..., Job] = Job
    account: Account = field(default_factory=Account)
    results: Results = field(default_factory=Results)

    def __post_init__(self) -> None:
        self.provider = provider = Provider(self.account)
        configuration = JobConfiguration(
            "batch",
            SUBTASKS,
            (RecreateOnReset(provider) if self.recreated else provider,),
            checkpoint_interval_s=None,
            concurrent_attempts_max=self.concurrent,
            restart_strategy=FixedDelay(1000, 1.0),
        )
        self.job = SimulatedJob(
            lambda start: configuration, Batch, committer=lambda: self.results, job=self.machines
        )

    def told(self, subtask: int) -> list[tuple[Any, ...]]:
        """Return what was said of one subtask's attempts, without reasons and events."""
        return [c[:3] for c in self.account.calls if c[0] != "event" and c[1] == subtask]

    def finish(self) -> None:
        self.job.settle(until=lambda: self.job.is_over)
        assert self.account.wrong == []
        assert self.job.result.state == "finished", self.job.result.reason
        assert sorted(self.results.given) == [(s, ROWS) for s in range(SUBTASKS)]


def begun() -> Run:
    """Two attempts of subtask 0 and one of subtask 1, which wait for what they were sent."""
    run = Run()
    run.job.transport.launch(0)
    for _ in range(10):
        run.job.drain()
        for step in run.job.steps():
            if step[0] in ("connect", "hear"):
                run.job.step(step)
        for process in list(run.job.transport.processes.values()):
            if process.to_task and process.to_task[0][0] == "restore":
                run.job.step(("tell", process.identity))
    assert sorted(run.account.ready) == [(0, 0), (0, 1), (1, 0)]
    return run


def of_subtask(run: Run, subtask: int) -> list[int]:
    return sorted(p.identity for p in run.job.transport.processes.values() if p.subtask == subtask)


def let_die(run: Run, identity: int) -> None:
    run.job.transport.kill(identity)
    run.job.flow(held=("tell", "work"))


def test_a_slow_attempt_is_overtaken_and_each_result_given_once() -> None:
    run = begun()
    slow, _ = of_subtask(run, 0)
    while not any(call[0] == "failed" for call in run.account.calls):
        run.job.drain()
        for step in run.job.steps():
            if step[1] != slow and step in run.job.steps():
                run.job.step(step)
    run.finish()
    assert run.told(0) == [("ready", 0, 0), ("ready", 0, 1), ("failed", 0, 0)]
    reasons = [call[3] for call in run.account.calls if call[0] == "failed"]
    assert reasons == ["another attempt of its subtask has reached the end of the input"]
    assert run.account.resets == 0


def test_a_subtask_is_reset_once_the_last_of_its_attempts_is_gone() -> None:
    run = begun()
    first, second = of_subtask(run, 0)
    let_die(run, first)
    assert run.told(0)[-1] == ("failed", 0, 0)
    assert run.account.resets == 0
    let_die(run, second)
    run.job.wait(2.0)
    assert run.told(0)[-3:] == [("failed", 0, 0), ("failed", 0, 1), ("reset", 0, 0)]
    run.finish()
    assert run.told(0)[-1] == ("ready", 0, 2)
    assert run.job.result.report.regional_restarts == 1
    told = [(f.subtask, f.attempt) for f in run.job.result.report.failures]
    assert told == [(0, 0), (0, 1)]


def test_a_send_goes_to_the_attempt_of_its_gateway_and_fails_with_it() -> None:
    run = begun()
    first, _ = of_subtask(run, 0)
    gone = run.account.ready[0, 0]
    let_die(run, first)
    lost = gone.send_event([0, 0, 99])
    run.job.drain()
    assert isinstance(lost.exception(), EventLost)
    there = run.account.ready[0, 1].send_event([0, 1, END])
    run.job.flow()
    assert there.done()
    assert there.exception() is None
    run.finish()


def test_when_all_places_are_taken_the_newest_processes_have_them() -> None:
    run = begun()
    run.job.transport.launch(0)
    run.job.flow(held=("tell", "work"))
    assert ("failed", 0, 0) in run.told(0)
    assert run.account.resets == 0
    run.finish()


def test_a_finisher_that_dies_before_the_checkpoint_that_ends_the_job_is_made_up_for() -> None:
    run = Run()
    run.job.flow(held=("blocking",), only=0)
    assert run.job.machines.vertex[0].state == "ended"  # type: ignore[attr-defined]  # concurrent
    run.job.transport.launch(0)
    run.job.flow(only=0)
    finisher = of_subtask(run, 0)[0]
    let_die(run, finisher)
    assert run.job.machines.vertex[0].state == "idle"  # type: ignore[attr-defined]  # concurrent
    run.finish()
    assert run.told(0)[-3:] == [("failed", 0, 0), ("reset", 0, 0), ("ready", 0, 1)]
    assert run.job.machines.vertex[0].attempts == 2  # type: ignore[attr-defined]  # concurrent


def test_a_coordinator_recreated_at_each_reset_hears_of_every_attempt() -> None:
    run = Run(recreated=True)
    run.job.transport.launch(0)
    run.job.flow(held=("tell", "work"))
    run.job.master.queue.post(run.job.master.job.holder[0].fail_job, "its state is wrong", False)
    run.finish()
    assert ("ready", 0, 1) in run.told(0) or ("ready", 0, 2) in run.told(0)


@pytest.mark.parametrize("seed", range(150))
def test_the_contract_holds_whatever_happens(seed: int) -> None:
    choice = random.Random(seed)
    run = Run(concurrent=choice.choice([2, 2, 3]))
    faults = choice.choice([0.0, 0.02, 0.05])
    for _ in range(choice.choice([50, 200, 400])):
        if run.job.is_over:
            break
        let_one_thing_happen(run, choice, faults)
    run.finish()
    assert run.account.resets <= run.job.result.report.regional_restarts


def let_one_thing_happen(run: Run, choice: random.Random, faults: float) -> None:
    job = run.job
    alive = [i for i, process in job.transport.processes.items() if process.is_alive]
    if choice.random() < faults and alive:
        kind = choice.choice(["kill", "kill", "cut", "all"])
        if kind == "all":
            job.master.queue.post(job.master.job.holder[0].fail_job, "its state is wrong", False)
        elif kind == "cut":
            job.transport.cut(choice.choice(alive))
        else:
            job.transport.kill(choice.choice(alive))
    kind = choice.choices(["step", "drain", "blocking", "advance", "launch"], [16, 8, 2, 0.3, 0.5])[
        0
    ]
    if kind == "step" and (steps := job.steps()):
        job.step(choice.choice(steps))
    elif kind == "drain":
        job.drain(choice.choice([1, 3, None]))
    elif kind == "blocking":
        job.run_blocking()
    elif kind == "advance":
        job.advance()
    elif kind == "launch":
        job.transport.launch(choice.randrange(SUBTASKS))


def test_coordinators_are_told_how_many_attempts_there_may_be() -> None:
    run = Run(concurrent=3)
    assert run.provider.contexts[0].concurrent_attempts_max == 3
    assert run.provider.contexts[0].parallelism == SUBTASKS


class HastyJob(ConcurrentJob):
    """Starts a subtask again whenever one of its attempts fails."""

    vertex: list[ExecutionVertex] = machines(HastyVertex)


def test_a_job_that_resets_a_subtask_too_early_is_seen() -> None:
    seen = set()
    for seed in range(60):
        run, choice = Run(machines=HastyJob), random.Random(seed)
        for _ in range(400):
            if not run.job.is_over and not run.account.wrong:
                let_one_thing_happen(run, choice, 0.02)
        seen |= {claim.split(":")[0] for claim in run.account.wrong}
    assert "a subtask is reset once its attempts are gone" in seen


def test_concurrent_attempts_and_checkpointing_exclude_each_other() -> None:
    with pytest.raises(JobMisconfigured, match="checkpoint_interval_s=None"):
        JobConfiguration("job", 1, concurrent_attempts_max=2)
    with pytest.raises(
        JobMisconfigured, match="concurrent_attempts_max is 0; give a whole number from 1 on"
    ):
        JobConfiguration("job", 1, checkpoint_interval_s=None, concurrent_attempts_max=0)


def test_no_request_gets_a_checkpoint_among_concurrent_attempts() -> None:
    run = Run()
    wanted = run.job.master.request_checkpoint()
    assert isinstance(wanted.exception(timeout=0), NoCheckpointAmongAttempts)
    with pytest.raises(NoCheckpointAmongAttempts, match="cancel the job"):
        run.job.master.stop()
    run.finish()
