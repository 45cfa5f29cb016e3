"""Operators with states in parts: what has changed is written, and all of it restored."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from epochgate.runtime import (
    CheckpointEnded,
    JobConfiguration,
    Operator,
    OperatorContext,
    Program,
    Work,
    pack_parts,
    unpack_parts,
)
from epochgate.runtime.api.job_events import JobEvent, JobListener
from epochgate.runtime.store.parts import PART_BYTES_MIN
from epochgate.testing import SimulatedJob

BUCKETS, NUMBERS = 8, 160


class Seen(Operator):
    """Keeps what it has seen in buckets, each of a part's size at least."""

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        self.buckets = {f"{n}": b"" for n in range(BUCKETS)} | {
            name: part[PART_BYTES_MIN:] for name, part in unpack_parts(state).items()
        }

    @property
    def count(self) -> int:
        return sum(map(len, self.buckets.values()))

    def see(self) -> None:
        number = self.count
        self.buckets[f"{number // (NUMBERS // BUCKETS)}"] += bytes([number])

    def snapshot(self, checkpoint_id: int) -> bytes:
        return pack_parts(
            {name: bytes([int(name)]) * PART_BYTES_MIN + b for name, b in self.buckets.items()}
        )


class Seeing(Program):
    def __init__(self) -> None:
        self.seen = Seen()

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"seen": self.seen}

    def work(self) -> Work:
        if self.seen.count == NUMBERS:
            return Work.ENDED
        self.seen.see()
        return Work.DONE


class Stored(JobListener):
    def __init__(self) -> None:
        self.bytes: list[int] = []

    def on_event(self, event: JobEvent) -> None:
        if isinstance(event, CheckpointEnded) and event.outcome == "completed":
            self.bytes.append(event.stored_bytes)


def all_seen(job: SimulatedJob) -> list[int]:
    latest = job.store.latest()
    assert latest is not None
    kept = unpack_parts(latest.subtasks[0]["seen"])
    return [number for part in kept.values() for number in part[PART_BYTES_MIN:]]


@pytest.mark.parametrize("seed", range(6))
def test_whatever_dies_the_state_is_whole_and_checkpoints_write_what_has_changed(
    seed: int,
) -> None:
    chance, stored = random.Random(seed), Stored()
    job = SimulatedJob(
        lambda start: JobConfiguration("job", 1, checkpoint_interval_s=None),
        lambda subtask: Seeing(),
        listeners=[stored],
    )
    for _ in range(60):
        if job.is_over:
            break
        job.flow(held=("work",))
        for _ in range(chance.randrange(1, 8)):
            for identity in list(job.transport.processes):
                job.step(("work", identity))
        job.master.request_checkpoint()
        job.flow(held=("work",))
        happening, processes = chance.random(), list(job.transport.processes)
        if happening < 0.2 and processes:
            job.transport.kill(processes[0])
        elif happening < 0.35:
            job.crash_driver()
        job.wait(2.0)
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "finished"
    job.shelf.end_driver()
    job.crash_driver()
    assert all_seen(job) == list(range(NUMBERS))
    of_all = BUCKETS * PART_BYTES_MIN
    assert stored.bytes[0] > of_all
    assert sum(of < of_all / 2 for of in stored.bytes[1:]) > len(stored.bytes) / 2
    parts = [name for name in job.shelf.files if name.startswith("parts/")]
    assert len(parts) <= 3 * BUCKETS, "what is not retained is gone"
