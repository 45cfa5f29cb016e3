"""A job whose checkpoints are committed by a sink, for the benchmarks of sinks, and their samples.

The real job master with the real sink and a store in a directory, over a transport that carries
nothing: what tasks would do is done before, so that a sample is everything from the request of a
checkpoint until its commit is known, on the clock.
"""

from __future__ import annotations

import gc
import itertools
import time
from dataclasses import dataclass
from pathlib import Path

from epochgate.benchmarks.figures import number, percentile
from epochgate.benchmarks.silent import JOB_ID, Part, SilentJob, SilentTransport
from epochgate.benchmarks.sink_places import Place
from epochgate.errors import EpochgateError
from epochgate.runtime.api.commit_topology import CommitTopology
from epochgate.runtime.api.sink import SinkStart
from epochgate.runtime.store import CompletedCheckpoint, DirectoryCheckpointStore

SUBTASKS = 4
LONG_S = 4.0
"""A sample that takes longer is not taken often."""
OPERATOR = "state"
RUN_ID = "bench-1"
NOT_MEASURED = "–"


class CommitMissing(EpochgateError):
    """A checkpoint of the benchmark was not committed: nothing of it can be measured."""


class SinkJob(SilentJob):
    """A job whose checkpoints are committed by a sink; `earlier`: how many were before."""

    def __init__(
        self,
        folder: Path,
        place: Place,
        earlier: int = 0,
        transport: SilentTransport | None = None,
    ) -> None:
        self.place, self._staged = place, itertools.count(earlier + 1_000_000, 1_000_000)
        store = DirectoryCheckpointStore(folder / "checkpoints", job_id=JOB_ID)
        if earlier:
            # Behind the last of them, so that none is committed again.
            store.save(_empty_checkpoint(earlier + 1, store.epoch))
        restored = store.last_id
        self.committer = place.sink.create_committer(
            SinkStart(JOB_ID, RUN_ID, restored, epoch=store.epoch)
        )
        super().__init__(
            SUBTASKS,
            [],
            store=store,
            committer=self.committer,
            run_id=RUN_ID,
            topology=CommitTopology.of(place.sink),
            transport=transport,
        )
        self.work()

    def sample(self, committables: int, state_bytes: int) -> float:
        """The seconds of one checkpoint and its commit."""
        staged = self.place.stage(RUN_ID, next(self._staged), committables)
        state = bytes(state_bytes // SUBTASKS)
        parts: list[Part] = [
            ({OPERATOR: state}, staged[subtask::SUBTASKS]) for subtask in range(SUBTASKS)
        ]
        gc.collect()
        begun_s = time.perf_counter()
        self.checkpoint(parts)
        taken_s = time.perf_counter() - begun_s
        done, last = self.master.report.committed_upto, self.master.store.last_id
        if done != last:
            raise CommitMissing(
                f"checkpoint {last} is stored, and {done} is the last that is committed: "
                f"{self.master.report.warnings[-1:]}"
            )
        return taken_s

    def close(self) -> None:
        """Let go of target and store."""
        self.committer.close()
        self.master.store.close()


def _empty_checkpoint(number: int, epoch: int) -> CompletedCheckpoint:
    states: dict[int, dict[str, bytes]] = {subtask: {} for subtask in range(SUBTASKS)}
    return CompletedCheckpoint(
        checkpoint_id=number,
        job_id=JOB_ID,
        run_id=RUN_ID,
        created_at=0.0,
        parallelism=SUBTASKS,
        subtasks=states,
        epoch=epoch,
    )


@dataclass(frozen=True)
class Cell:
    """The samples for one kind of sink and one size, in seconds; none where it was left out."""

    samples: tuple[float, ...] = ()

    def shown(self) -> str:
        """The median and the 99th percentile, in milliseconds."""
        if not self.samples:
            return NOT_MEASURED
        middle, most = (number(percentile(self.samples, one) * 1e3) for one in (50, 99))
        return f"{middle} ({most})"
