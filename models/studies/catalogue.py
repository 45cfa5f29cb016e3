"""The studies by the names that the command line uses."""

from __future__ import annotations

from epochgate.models.closed.catalogue import Catalogue

STUDIES = Catalogue(
    {
        "reference": (
            "epochgate.models.studies.reference:Reference",
            "A reference model with known counts: P(N, C, K, E, F).",
        ),
        "valve": (
            "epochgate.models.studies.valve:Valve",
            "Flink's first design, the event valve: it holds where receivers are sources.",
        ),
        "acknowledged": (
            "epochgate.models.studies.acknowledged:Acknowledged",
            "Acknowledged operator events, the design of FLINK-16986.",
        ),
        "flink": (
            "epochgate.models.studies.flink.system:Flink",
            "Flink 2.3.0: one coordinator, its holder, and the checkpoint coordinator.",
        ),
    }
)

PROOFS = Catalogue(
    {
        "any_gateway": (
            "epochgate.models.studies.inductive_gateway:AnyGateway",
            "The gateway in any job: a million attempts, checkpoints and events, in any order.",
        ),
        "any_residents": (
            "epochgate.models.studies.inductive:AnyResidents",
            "The processes of a subtask, with a million attempts each, and a million failures.",
        ),
        "any_window": (
            "epochgate.models.studies.inductive:AnyWindow",
            "The send window: events of up to 4 GiB, a bound of 64 MiB, 2**40 bytes in all.",
        ),
    }
)
"""Too large for a search: every `always` of them is shown by induction."""

CASES = Catalogue(
    {
        "paimon": (
            "epochgate.models.studies.cases.paimon:Paimon",
            "Paimon's coordinator commits the end of a bounded job, whatever comes first.",
        ),
        "paimon.two_messages": (
            "epochgate.models.studies.cases.paimon:TwoMessages",
            "Paimon before: the notice overtakes END_INPUT, and nothing is sent again.",
        ),
        "paimon.at_the_notice": (
            "epochgate.models.studies.cases.paimon:AtTheNotice",
            "Half mended: restored writers send again, and no notice comes to commit at.",
        ),
        "paimon.one_message": (
            "epochgate.models.studies.cases.paimon:OneMessage",
            "Committables travel with the acknowledgement: one message has no order.",
        ),
        "iceberg": (
            "epochgate.models.studies.cases.iceberg:IcebergConnect",
            "Iceberg's sink for Kafka Connect commits each data file once.",
        ),
        "iceberg.last_offset": (
            "epochgate.models.studies.cases.iceberg:LastOffset",
            "Iceberg's sink before: the stamp is below a file that its snapshot holds.",
        ),
        "hudi": (
            "epochgate.models.studies.cases.hudi:Hudi",
            "Hudi's timeline with a fence: a canceled job's coordinator completes nothing.",
        ),
        "hudi.two_coordinators": (
            "epochgate.models.studies.cases.hudi:TwoCoordinators",
            "Hudi as reported: an instant is completed whose files were deleted.",
        ),
        "risingwave": (
            "epochgate.models.studies.cases.risingwave:RisingWave",
            "RisingWave's coordinated sink commits each epoch, also when some of them are empty.",
        ),
        "risingwave.empty_pre_commit": (
            "epochgate.models.studies.cases.risingwave:EmptyPreCommit",
            "RisingWave before: writers wait for different epochs for ever.",
        ),
        "sinkv2": (
            "epochgate.models.studies.cases.sinkv2:SinkV2",
            "Flink's committers at the end of a bounded job: everything is committed globally.",
        ),
        "sinkv2.early_end": (
            "epochgate.models.studies.cases.sinkv2:EarlyEnd",
            "Flink 2.3.0: the last committables come behind the end of the data.",
        ),
    }
)
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
