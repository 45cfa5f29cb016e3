"""The studies by the names that the command line uses."""

from __future__ import annotations

from epochgate.fsm.closed import ClosedSystem
from epochgate.models.studies.acknowledged import Acknowledged
from epochgate.models.studies.flink.system import Flink
from epochgate.models.studies.reference import Reference
from epochgate.models.studies.valve import Valve

STUDIES: dict[str, type[ClosedSystem]] = {
    "reference": Reference,
    "valve": Valve,
    "acknowledged": Acknowledged,
    "flink": Flink,
}

CONSTANTS: dict[str, str] = {
    "N": "subtasks",
    "C": "coordinators",
    "K": "checkpoints that are taken",
    "E": "events from each coordinator to each subtask",
    "U": "events from each operator to its coordinator",
    "F": "failures that may happen",
    "sources": "subtasks that are sources",
    "losses": "events that may be lost",
    "refusals": "snapshots that a coordinator may refuse",
    "periodic": "checkpoints by the interval",
    "savepoints": "savepoints",
    "concurrent": "checkpoints that may be under way at the same time",
    "calls": "calls that may wait in a queue",
}
"""What each constant of the studies means."""
