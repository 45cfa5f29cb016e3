"""The messages that the jobs with splits lose; the same in simulation and on Spark."""

from __future__ import annotations

from dataclasses import dataclass

from epochgate.runtime.testing.faulty_transport import Fault


@dataclass(frozen=True)
class Loss:
    """The faults of the transport, counted for each subtask; the element at which the first reader
    fails that comes to it; how many checkpoints may fail in a row without a restart of the job.
    """

    faults: list[Fault]
    poison: int | None = None
    tolerable: int = 0


LOSSES = {
    "splits": Loss([Fault("event", at, "lost", to="task") for at in (2, 4, 6)]),
    "splits and a reader": Loss([Fault("event", at, "lost", to="task") for at in (1, 3)], 10),
    "confirmations of splits that arrive": Loss(
        [Fault("confirm", at, "lost", to="driver") for at in (2, 4)], tolerable=2
    ),
    "the time of a checkpoint, by confirmations that come after it": Loss(
        [Fault("confirm", at, "late", to="driver", until="aborted") for at in (2, 4)], tolerable=2
    ),
}
