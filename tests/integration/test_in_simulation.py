"""A hundred orders of things, each drawn from a seed, and every event counts once in all of them.

After three integration tests of Apache Flink. The jobs are in `sequence_job` and `split_job`, and
the same as on real Spark; a seed that fails is named, and repeats itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from epochgate.models.job import Job
from epochgate.runtime import Program
from epochgate.runtime.testing.in_process import Step
from epochgate.runtime.testing.simulation import SimulatedJob
from tests.integration.ledger import LedgerInMemory, account
from tests.integration.losses import LOSSES, Loss
from tests.integration.running import configuration
from tests.integration.seeded import SeededScheduler
from tests.integration.sequence_job import (
    ReceiverProgram,
    Sequence,
    SequenceOperator,
    SequenceProgram,
    SequenceProvider,
    held_word,
)
from tests.integration.split_job import READER, SplitProgram, split_provider
from tests.stateful.broken import BROKEN

SEEDS = 100
SUBTASKS = 2
RECORDS = 10
SPLITS, SPLIT_SIZE = 12, 2


class SequenceRun:
    """One job of sequences, from its start to its end."""

    def __init__(
        self,
        seed: int,
        *sequences: Sequence,
        program: Callable[[LedgerInMemory], Program],
        job: Callable[..., Job] = Job,
    ) -> None:
        self.ledger = LedgerInMemory()
        self.providers = [
            SequenceProvider(sequence, self.ledger, is_threaded=False) for sequence in sequences
        ]
        self.job = SimulatedJob(
            lambda start: configuration(SUBTASKS, *self.providers, checkpoint_timeout_s=1.0),
            lambda subtask: program(self.ledger),
            job=job,
        )
        self.held_back = 0
        """How often a snapshot was taken while the gateway held an event back."""
        scheduler = SeededScheduler(
            self.job,
            seed,
            mailboxes=lambda: [provider.coordinator.mailbox for provider in self.providers],
            may=self._may,
        )
        scheduler.run(lambda: self.job.is_over)
        assert self.job.result.state == "finished", f"seed {seed}: {self.job.result.reason}"
        self.report = self.job.master.report

    def _may(self, step: Step) -> bool:
        """Return whether an event is held back by now, if this is a barrier that has to wait for
        that.
        """
        kind, identity = step
        if kind != "tell" or not self.providers[0].sequence.is_behind_source:
            return True
        process = self.job.transport.processes[identity]
        tag, *arguments = process.to_task[0]
        if tag != "barrier":
            return True
        is_told = self.ledger.is_told(held_word(arguments[0], process.subtask))
        gateway = self.job.machines.gateway[0, process.subtask]
        self.held_back += is_told and not gateway.held.empty()
        return is_told

    def check(self, seed: int) -> Counter[str]:
        """Compare what was written down with what must be there; how much was in vain."""
        vain: Counter[str] = Counter()
        for provider in self.providers:
            sequence, coordinator = provider.sequence, provider.coordinator
            found = account(self.ledger, sequence.operator_id, SUBTASKS)
            assert found.problems == [], f"seed {seed}"
            for values in found.outcome:
                numbers = [value for value in values if value >= 0]
                assert numbers == list(range(sequence.count)), f"seed {seed}"
            assert coordinator.has_failed, f"seed {seed}"
            assert coordinator.disagreements == [], f"seed {seed}"
            assert all(future.done() for future in coordinator.sends), f"seed {seed}"
            lost = sum(future.exception() is not None for future in coordinator.sends)
            vain += Counter({"sent": lost, "handled": found.again})
        return vain


def test_coordinators_of_two_paces_fail_the_job_and_act_too_late() -> None:
    sequences = [Sequence("fast", 24, 0.001, 16), Sequence("slow", 6, 0.005, 4)]

    def program(ledger: LedgerInMemory) -> Program:
        return SequenceProgram({s.operator_id: SequenceOperator(ledger) for s in sequences})

    vain: Counter[str] = Counter()
    for seed in range(SEEDS):
        run = SequenceRun(seed, *sequences, program=program)
        vain += run.check(seed)
        assert run.report.global_restarts >= 1, f"seed {seed}"
    assert min(vain["sent"], vain["handled"]) > SEEDS, "the failures changed nothing"


@pytest.mark.parametrize("poison", [None, 7], ids=["coordinator", "coordinator and subtask"])
def test_a_receiver_behind_a_source_takes_its_snapshot_while_events_are_held_back(
    poison: int | None,
) -> None:
    vain: Counter[str] = Counter()
    for seed in range(SEEDS):
        vain += receive(seed, poison)
    assert min(vain["sent"], vain["handled"]) > SEEDS, "the failures changed nothing"


def receive(seed: int, poison: int | None, job: Callable[..., Job] = Job) -> Counter[str]:
    """One run of the receiver behind a source; its first attempts fail at the number `poison`."""

    def program(ledger: LedgerInMemory) -> Program:
        receiver = SequenceOperator(ledger, poison=poison, is_behind_source=True)
        return ReceiverProgram("receiver", receiver, RECORDS)

    sequence = Sequence("receiver", 21, 0.001, 14, is_behind_source=True)
    run = SequenceRun(seed, sequence, program=program, job=job)
    vain = run.check(seed)
    for values in account(run.ledger, "receiver", SUBTASKS).outcome:
        records = [-1 - value for value in values if value < 0]
        assert records == list(range(RECORDS)), f"seed {seed}"
    assert run.held_back >= 1, f"seed {seed}"
    assert run.report.global_restarts >= 1, f"seed {seed}"
    assert (run.report.regional_restarts >= 1) == (poison is not None), f"seed {seed}"
    return vain


@pytest.mark.extended
@pytest.mark.parametrize("what", LOSSES)
def test_each_element_is_read_once_though_there_are_lost(what: str) -> None:
    strikes = aborted = 0
    for seed in range(SEEDS):
        run = SplitRun(seed, LOSSES[what])
        found = account(run.ledger, READER, SUBTASKS)
        assert found.problems == [], f"seed {seed}"
        elements = [value for values in found.outcome for value in values]
        assert sorted(elements) == list(range(SPLITS * SPLIT_SIZE)), f"seed {seed}"
        strikes += len(run.strikes)
        aborted += sum(not checkpoint.is_completed for checkpoint in run.report.checkpoints)
    assert strikes >= SEEDS * len(LOSSES[what].faults)
    assert aborted > SEEDS


class SplitRun:
    """One job of splits, from its start to its end."""

    def __init__(self, seed: int, loss: Loss) -> None:
        self.ledger = LedgerInMemory()
        # By more than what is tolerated on Spark, since that changes what a loss leads to.
        tolerable = (loss.tolerable + seed) % 3
        job = SimulatedJob(
            lambda start: configuration(
                SUBTASKS, split_provider(SPLITS), tolerable_checkpoint_failures=tolerable
            ),
            lambda subtask: SplitProgram(self.ledger, SPLIT_SIZE, loss.poison),
            faults=loss.faults,
        )
        SeededScheduler(job, seed).run(lambda: job.is_over)
        assert job.result.state == "finished", f"seed {seed}: {job.result.reason}"
        self.report, self.strikes = job.master.report, job.faults.strikes


@pytest.mark.parametrize(
    "what",
    [
        "a gateway that does not close",
        "sends to the past are delivered",
        "a coordinator is not told of a reset",
    ],
)
def test_a_broken_machine_is_found(what: str) -> None:
    def receive_all() -> None:
        for seed in range(SEEDS):
            receive(seed, poison=7, job=BROKEN[what][0])

    with pytest.raises(AssertionError, match="seed"):
        receive_all()
