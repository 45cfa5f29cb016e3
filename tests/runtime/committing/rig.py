"""A job over sinks in memory, which writes what a test gives it and takes checkpoints when told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from epochgate.runtime import (
    Committables,
    Committer,
    CommitterOfSinks,
    CommitTopology,
    JobConfiguration,
    JobEvent,
    JobListener,
    Operator,
    OperatorContext,
    Program,
    Sink,
    SinkOperator,
    SinkStart,
    Work,
)
from epochgate.runtime.api.rescaling import Redistribution
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.testing.simulation import SimulatedJob


class Supply(Operator):
    """The position in what each subtask is given."""

    def __init__(self) -> None:
        self.position, self.subtask = 0, 0

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        self.subtask, self.position = context.subtask, json.loads(state) if state else 0

    def snapshot(self, checkpoint_id: int) -> bytes:
        return json.dumps(self.position).encode()


class RowsProgram(Program):
    """Writes the rows one by one, each to the sink with the label before its colon."""

    def __init__(self, rig: Rig, sinks: Mapping[str, SinkOperator]) -> None:
        self._rig, self._supply, self._sinks = rig, Supply(), sinks

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"supply": self._supply, **self._sinks}

    def work(self) -> Work:
        rows = self._rig.rows.setdefault(self._supply.subtask, [])
        if self._supply.position == len(rows):
            return Work.ENDED if self._rig.has_ended else Work.IDLE
        row = rows[self._supply.position]
        label = row.partition(":")[0] if len(self._sinks) > 1 else "sink"
        self._sinks[label].write([row])
        self._supply.position += 1
        return Work.DONE


@dataclass
class Heard(JobListener):
    """Every event of a job."""

    events: list[JobEvent] = field(default_factory=list)

    def on_event(self, event: JobEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[JobEvent]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class Rig:
    """`sink`: what makes the sink of each start, or the labels and sinks of a job with several."""

    def __init__(
        self,
        sink: Callable[[int], Sink] | Mapping[str, Sink],
        parallelism: Callable[[int], int] = lambda start: 2,
        **settings: Any,
    ) -> None:
        self.rows: dict[int, list[str]] = {}
        self.has_ended = False
        self.heard = Heard()
        self._sink, self._parallelism, self._settings = sink, parallelism, settings
        self._sinks: Mapping[str, Sink] = {}
        self.redistribute: Redistribution = lambda states, subtasks: dict.fromkeys(range(subtasks))
        self._committer: Committer | None = None
        self.job = SimulatedJob(
            self._configure,
            lambda _: RowsProgram(self, self._operators()),
            committer=lambda: self._committer,
            after_commit=self.after_commit,
            listeners=[self.heard],
            retained=100,
        )
        self.job.flow()

    def _configure(self, start: int) -> JobConfiguration:
        begun = SinkStart("rig", f"run-{start}", None)
        if isinstance(self._sink, Mapping):
            self._sinks = self._sink
            made = {name: sink.create_committer(begun) for name, sink in self._sinks.items()}
            self._committer = CommitterOfSinks(made)
            topology = CommitTopology(in_tasks=True)
        else:
            self._sinks = {"sink": self._sink(start)}
            self._committer = self._sinks["sink"].create_committer(begun)
            topology = CommitTopology.of(self._sinks["sink"], self._committer)
        return JobConfiguration(
            "rig",
            self._parallelism(start),
            checkpoint_interval_s=None,
            restart_strategy=FixedDelay(20, 1.0),
            topology=topology,
            redistribute={
                "supply": lambda states, subtasks: {
                    s: states.get(s, b"0") for s in range(subtasks)
                },
                **dict.fromkeys(self._sinks, self.redistribute),
            },
            **self._settings,
        )

    def _operators(self) -> dict[str, SinkOperator]:
        has_labels = len(self._sinks) > 1
        return {
            name: SinkOperator(sink, label=name if has_labels else None)
            for name, sink in self._sinks.items()
        }

    def after_commit(self) -> Callable[[int, Committables], None] | None:
        """The work after a commit; none, unless it is overridden."""
        return None

    def give(self, subtask: int, *rows: str) -> None:
        self.rows.setdefault(subtask, []).extend(rows)

    def checkpoint(self) -> None:
        """Take one of all that was given, and let happen what takes no time."""
        self.job.flow()
        self.job.master.request_checkpoint()
        self.job.flow()

    def wait(self, seconds: float) -> None:
        self.job.flow()
        self.job.wait(seconds)
        self.job.flow()

    def crash(self) -> None:
        self.job.crash_driver()
        self.job.flow()

    def finish(self) -> None:
        self.has_ended = True
        self.job.finish()

    def identity(self, subtask: int) -> int:
        return self.job.machines.attempt[subtask].identity

    @property
    def warnings(self) -> list[str]:
        return list(self.job.master.report.warnings)

    @property
    def failures(self) -> list[str]:
        return [failure.reason for failure in self.job.master.report.failures]
