"""The job under certification: the simulated one, whose driver starts again until the sink lets it,
and whose processes die without a word.
"""

from __future__ import annotations

from typing import Final, Protocol

from epochgate.runtime.api.commit_topology import CommitTopology
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.sink import SinkStart
from epochgate.runtime.testing.certification.calls import Director
from epochgate.runtime.testing.certification.case import SinkCase
from epochgate.runtime.testing.certification.claims import SOURCE
from epochgate.runtime.testing.certification.points import Actor, Paused, SimulatedDeath, Stage
from epochgate.runtime.testing.certification.program import (
    SINK,
    Allowance,
    RowProgram,
    redistribute,
)
from epochgate.runtime.testing.certification.watched import WatchedCommitter, WatchedSink
from epochgate.runtime.testing.simulation import SimulatedJob

JOB_ID: Final = "certified"
REFUSALS_MAX = 3


class Certifying(Director, Allowance, Protocol):
    """The surroundings of the job."""

    case: SinkCase
    stage: Stage
    job: CertifiedJob

    def sink(self) -> WatchedSink:
        """The sink, as another process has it."""
        ...

    def parallelism(self, start: int) -> int:
        """That of a start."""
        ...

    def started(self) -> None:
        """A driver has started."""
        ...

    def refused(self, error: Exception, refusals: int) -> None:
        """The sink did not let a driver start; raises what ends the schedule."""
        ...

    def failed_to_close(self, error: Exception) -> None:
        """`close` failed by itself, where `open` had failed; raises what ends the schedule."""
        ...


class CertifiedJob(SimulatedJob):
    """One job, over all its starts."""

    def __init__(self, run: Certifying) -> None:
        self._run, run.job = run, self
        self.may_withdraw = False
        self._begun = 0
        self._committer_of_start: WatchedCommitter | None = None
        super().__init__(
            self._configured, self._program_of, committer=self._committer_made, retained=1000
        )

    def _configured(self, start: int) -> JobConfiguration:
        run, self._committer_of_start = self._run, None
        self._begun += 1
        sink = run.sink()
        restored = max(self.shelf.checkpoints, default=None)
        committer = self._committer_of_start = sink.create_committer(
            SinkStart(
                JOB_ID,
                f"run-{start}",
                restored,
                may_withdraw=self.may_withdraw,
                epoch=self._begun,  # also of a start that is refused, as of a store's opening
            )
        )
        provider = sink.create_coordinator(SINK, committer)
        return JobConfiguration(
            JOB_ID,
            run.parallelism(start),
            () if provider is None else (provider,),
            checkpoint_interval_s=None,
            tolerable_checkpoint_failures=10,
            topology=CommitTopology.of(sink, committer),
            redistribute={SOURCE: redistribute, SINK: run.case.redistribute},
        )

    def _committer_made(self) -> WatchedCommitter:
        assert self._committer_of_start is not None, "it is made with the configuration"
        return self._committer_of_start

    def _program_of(self, subtask: int) -> RowProgram:
        return RowProgram(self._run, self._run.sink())

    def _open(self) -> None:
        refusals = 0
        while True:
            try:
                super()._open()
            except (SimulatedDeath, Paused) as stop:
                if isinstance(stop, Paused):
                    self._run.stage.zombies.append(stop.actor)
                self._run.stage.tell("another driver starts")
                self._forget_start()
            except Exception as error:  # noqa: BLE001  # of the sink, which may raise anything
                refusals += 1
                self._forget_start()
                self._close_unopened()
                self._run.refused(error, refusals)
            else:
                self._run.started()
                return

    def _close_unopened(self) -> None:
        """Close the committer of a start that has failed, as a pipeline does."""
        if self._committer_of_start is None:
            return
        was_struck = self._run.stage.struck
        try:
            self._committer_of_start.close()
        except Exception as error:  # noqa: BLE001  # of the sink, which may raise anything
            if self._run.stage.struck == was_struck:
                self._run.failed_to_close(error)

    def _forget_start(self) -> None:
        self.shelf.end_driver()
        self.starts = self._begun

    def kill_others(self) -> None:
        """End the driver and its tasks as processes end, but those that are paused."""
        for actor in self._run.stage.actors:
            actor.kill()

    def kill_process_of(self, writer: Actor) -> None:
        """End the process in which this writer is."""
        for identity, process in list(self.transport.processes.items()):
            program = process.worker.program
            if isinstance(program, RowProgram) and program.sink_made is writer.owner:
                self.transport.kill(identity)
