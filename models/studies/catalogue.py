"""The studies by the names that the command line uses."""

from __future__ import annotations

from epochgate.fsm.closed import ClosedSystem
from epochgate.models.studies.acknowledged import Acknowledged
from epochgate.models.studies.cases import hudi, iceberg, paimon, risingwave, sinkv2
from epochgate.models.studies.flink.system import Flink
from epochgate.models.studies.reference import Reference
from epochgate.models.studies.valve import Valve

STUDIES: dict[str, type[ClosedSystem]] = {
    "reference": Reference,
    "valve": Valve,
    "acknowledged": Acknowledged,
    "flink": Flink,
}

CASES: dict[str, type[ClosedSystem]] = {
    "paimon": paimon.Paimon,
    "paimon.two_messages": paimon.TwoMessages,
    "paimon.at_the_notice": paimon.AtTheNotice,
    "paimon.one_message": paimon.OneMessage,
    "iceberg": iceberg.IcebergConnect,
    "iceberg.last_offset": iceberg.LastOffset,
    "hudi": hudi.Hudi,
    "hudi.two_coordinators": hudi.TwoCoordinators,
    "risingwave": risingwave.RisingWave,
    "risingwave.empty_pre_commit": risingwave.EmptyPreCommit,
    "sinkv2": sinkv2.SinkV2,
    "sinkv2.early_end": sinkv2.EarlyEnd,
}
"""Public bugs of other projects: mended under a name, and broken under names that begin with it."""

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

CONSTANTS_OF_CASES: dict[str, str] = {
    "N": "writers",
    "E": "data files",
    "K": "epochs or checkpoints",
    "F": "rebalances or failures",
    "jobs": "jobs, one after the other",
}
"""What each constant of the cases means."""
