"""The tasks of both systems, whatever they do them with."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import psutil

IN_FLIGHT = 8_192
"""Events that are sent and not confirmed, at most, over all subtasks."""
HOSTS = 2
"""Processes that have the slots: task managers, or executors of Spark."""


class Streamed(NamedTuple):
    """The seconds of a stream, until all events were confirmed and until all were handled."""

    confirmed_s: float
    handled_s: float


class CheckpointTime(NamedTuple):
    """The time that a checkpoint took: on the clock of the one who requests it, and as the system
    itself reports it.
    """

    clock_ms: float
    reported_ms: float


class Contender(Protocol):
    """A running job whose coordinator is told what to do, one thing at a time."""

    @property
    def driver(self) -> psutil.Process:
        """The process of the coordinator."""
        ...

    def others(self) -> list[psutil.Process]:
        """The processes of the tasks, and those above them; none if the driver has all."""
        ...

    def stream_in_calls(self, events: int) -> Streamed:
        """Send events to all subtasks, in the coordinator's calls."""
        ...

    def stream_by_thread(self, events: int) -> Streamed:
        """Send events to all subtasks, from a thread of the coordinator's own."""
        ...

    def confirmed_trips_us(self, times: int) -> list[float]:
        """Send single events, each when the one before is confirmed."""
        ...

    def answered_trips_us(self, times: int) -> list[float]:
        """Send single events, each when the one before has been answered by its subtask."""
        ...

    def checkpoints(self, times: int) -> list[CheckpointTime]:
        """Take checkpoints, each when the one before is completed."""
        ...

    def begin_load(self) -> None:
        """Begin to send events without end, in the coordinator's calls."""
        ...

    def end_load(self) -> int:
        """End it; return the number of events that were confirmed."""
        ...

    def raise_ms(self, subtask: int) -> float:
        """Let an operator raise; return the time until its successor has handled an event."""
        ...

    def fail_all_ms(self) -> float:
        """Fail the job; return the time until all successors have handled an event."""
        ...
