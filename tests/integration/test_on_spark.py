"""The jobs of the integration tests as real Spark jobs, whose executors are processes of their own.

What comes out is read from the files that the tasks have written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime import JobResult, Program
from epochgate.runtime.api.transport import Transport
from epochgate.runtime.store import CheckpointShelf, InMemoryCheckpointStore
from epochgate.runtime.testing.faulty_transport import FaultyTransport
from epochgate.spark.job import run_job
from tests.integration import ledger, sequence_job, split_job
from tests.integration.ledger import LedgerInFiles, account
from tests.integration.losses import LOSSES
from tests.integration.running import JOB_ID, configuration
from tests.integration.sequence_job import (
    ReceiverProgram,
    Sequence,
    SequenceOperator,
    SequenceProgram,
    SequenceProvider,
)
from tests.integration.split_job import READER, SplitProgram, split_provider

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.slow, pytest.mark.timeout(300)]

SUBTASKS = 2
RECORDS = 100
SPLITS, SPLIT_SIZE = 14, 10
PACE_S = 0.01
"""For one element, so that a checkpoint begins while a split is read."""
JOB_PATIENCE_S = 60.0


def run(
    spark: Any,
    configuration: Any,
    program: Callable[[int], Program],
    in_front: Callable[[Transport], Transport] | None = None,
) -> JobResult:
    handle = run_job(
        spark,
        configuration,
        program,
        store=InMemoryCheckpointStore(CheckpointShelf(), job_id=JOB_ID),
        by_value=[ledger, sequence_job, split_job],
        in_front=in_front,
    )
    with handle:
        result = handle.wait(JOB_PATIENCE_S)
    assert result.state == "finished", result.reason
    return result


def run_sequences(
    spark: Any, book: LedgerInFiles, sequences: list[Sequence], program: Callable[[int], Program]
) -> JobResult:
    providers = [SequenceProvider(sequence, book, is_threaded=True) for sequence in sequences]
    result = run(spark, configuration(SUBTASKS, *providers), program)
    for sequence, provider in zip(sequences, providers, strict=True):
        found = account(book, sequence.operator_id, SUBTASKS)
        assert found.problems == []
        for values in found.outcome:
            numbers = [value for value in values if value >= 0]
            assert numbers == list(range(sequence.count))
        coordinator = provider.coordinator
        assert coordinator.has_failed
        assert coordinator.disagreements == []
        assert all(future.done() for future in coordinator.sends)
        assert any(future.exception() for future in coordinator.sends)
    assert result.report.global_restarts >= 1
    return result


@pytest.mark.deep
def test_coordinators_of_two_paces_fail_the_job_and_act_too_late(
    spark: Any, tmp_path: Path
) -> None:
    book = LedgerInFiles(str(tmp_path))
    sequences = [Sequence("fast", 200, 0.001, 133), Sequence("slow", 10, 0.1, 7)]
    result = run_sequences(
        spark,
        book,
        sequences,
        lambda subtask: SequenceProgram(
            {sequence.operator_id: SequenceOperator(book) for sequence in sequences}
        ),
    )
    assert len(result.report.completed()) >= 10


@pytest.mark.parametrize("poison", [None, 33], ids=["coordinator", "coordinator and subtask"])
def test_a_receiver_behind_a_source_takes_its_snapshot_while_events_are_held_back(
    spark: Any, tmp_path: Path, poison: int | None
) -> None:
    book = LedgerInFiles(str(tmp_path))
    sequence = Sequence("receiver", 100, 0.005, 67, is_behind_source=True)

    def program(subtask: int) -> Program:
        receiver = SequenceOperator(book, poison=poison, is_behind_source=True)
        return ReceiverProgram("receiver", receiver, RECORDS)

    result = run_sequences(spark, book, [sequence], program)
    for values in account(book, "receiver", SUBTASKS).outcome:
        assert [-1 - value for value in values if value < 0] == list(range(RECORDS))
    assert (result.report.regional_restarts >= 1) == (poison is not None)


@pytest.mark.parametrize("what", LOSSES)
def test_each_element_is_read_once_though_there_are_lost(
    spark: Any, tmp_path: Path, what: str
) -> None:
    loss, book = LOSSES[what], LedgerInFiles(str(tmp_path))
    transports: list[FaultyTransport] = []

    def in_front(transport: Transport) -> FaultyTransport:
        faults = [replace(fault, subtask=0) for fault in loss.faults]
        transports.append(FaultyTransport(transport, faults))
        return transports[0]

    result = run(
        spark,
        configuration(
            SUBTASKS,
            split_provider(SPLITS),
            checkpoint_timeout_s=0.5,
            tolerable_checkpoint_failures=loss.tolerable,
        ),
        lambda subtask: SplitProgram(book, SPLIT_SIZE, loss.poison, pace_s=PACE_S),
        in_front,
    )
    found = account(book, READER, SUBTASKS)
    assert found.problems == []
    elements = [value for values in found.outcome for value in values]
    assert sorted(elements) == list(range(SPLITS * SPLIT_SIZE))
    assert len(transports[0].strikes) >= len(loss.faults)
    assert any(not checkpoint.is_completed for checkpoint in result.report.checkpoints)
