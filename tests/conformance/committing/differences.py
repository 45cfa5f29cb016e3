"""The reviewed list: every way in which our committer may differ from Flink's global committer.

Each is a switch of the account beside this, which states the condition in code. `transcript` is a
smallest schedule that shows it. The first three break I9 of docs/protocol.md in Flink 2.3.0; in the
others the same committables take effect, in other calls.
"""

from __future__ import annotations

from tests.conformance.committing.account import (
    ABORTED_APART,
    DROPPED_FAILURE,
    ENDED_SUBTASK,
    LATE_NOTICE,
    ONLY_THE_REST,
    PARTLY_TAKEN,
)
from tests.conformance.differences import Difference

DIFFERENCES = (
    Difference(
        PARTLY_TAKEN,
        hazard="D11",
        breaks="I9: nothing is committed any more, for ever and across restarts, though each "
        "checkpoint is completed.",
        flink="An aborted checkpoint that some writers have taken and others have not stays "
        "incomplete, and no later checkpoint is committed before it.",
        ours="What a subtask handed over for an aborted checkpoint it hands over again with the "
        "next one (C1).",
        transcript=(
            ("new 2 0", "", None),
            ("barrier 0 1 a", "", None),
            ("abort 1", "", None),
            ("barrier 0 2 -", "", None),
            ("barrier 1 2 -", "", None),
            ("complete 2", "state 2 0:a", "state 2 0:a | commit a ok"),
        ),
    ),
    Difference(
        ENDED_SUBTASK,
        hazard="D12",
        breaks="I9: from the checkpoint on in which one writer's input has ended and another's has "
        "not, nothing is committed any more.",
        flink="A writer whose input has ended says nothing at later checkpoints, and each of them "
        "waits for a word from all writers.",
        ours="A subtask takes part in every checkpoint until all of them finish together (K8).",
        transcript=(
            ("new 2 0", "", None),
            ("end 0 -", "", None),
            ("barrier 0 1 -", "", None),
            ("barrier 1 1 -", "", None),
            ("complete 1", "state 1", None),
            ("barrier 0 2 -", "", None),
            ("barrier 1 2 a", "", None),
            ("complete 2", "state 2 1:a", "state 2 1:a | commit a ok"),
        ),
    ),
    Difference(
        DROPPED_FAILURE,
        hazard="documented: signalFailedWithKnownReason drops the committable",
        breaks="I9: a committable of a completed checkpoint never takes effect, and the job goes "
        "on.",
        flink="A committable that the sink calls failed for a known reason is counted and dropped.",
        ours="A commit that cannot be done fails the job, and stays in the stored ledger (C3).",
        transcript=(
            ("new 1 0", "", None),
            ("barrier 0 1 a", "", None),
            ("answer a known", "", None),
            ("complete 1", "state 1 0:a | commit a known", "state 1 0:a | commit a known | failed"),
        ),
    ),
    Difference(
        ABORTED_APART,
        hazard="none",
        breaks="nothing: the same committables take effect with the same completed checkpoint.",
        flink="What came for an aborted checkpoint that all writers have taken is committed in a "
        "call of its own, before that of the next completed one.",
        ours="It is handed over again and committed with the next one, in the same call (C1).",
        transcript=(
            ("new 1 0", "", None),
            ("barrier 0 1 a", "", None),
            ("abort 1", "", None),
            ("barrier 0 2 b", "", None),
            (
                "complete 2",
                "state 2 0:a,b | commit a ok | commit b ok",
                "state 2 0:a,b | commit a ok b ok",
            ),
        ),
    ),
    Difference(
        ONLY_THE_REST,
        hazard="none",
        breaks="nothing: a commit may be repeated (C6).",
        flink="A further try gets the committables that asked for it.",
        ours="A further try gets the checkpoint as a whole, since it takes effect as a whole.",
        transcript=(
            ("new 1 1", "", None),
            ("barrier 0 1 a,b", "", None),
            ("answer a retry", "", None),
            (
                "complete 1",
                "state 1 0:a,b | commit a retry b ok | commit a ok",
                "state 1 0:a,b | commit a retry b ok | commit a ok b ok",
            ),
        ),
    ),
    Difference(
        LATE_NOTICE,
        hazard="none",
        breaks="nothing: the next notice, or the restart, makes up for one that was lost (C5).",
        flink="A checkpoint is committed when its notice reaches the committer's task.",
        ours="The committer is where the checkpoint is completed, so there is no notice between.",
        transcript=(
            ("new 1 0", "", None),
            ("barrier 0 1 a", "", None),
            ("complete 1 late", "state 1 0:a", "state 1 0:a | commit a ok"),
        ),
    ),
)
