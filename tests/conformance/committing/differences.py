"""The reviewed lists: every way in which our committers may differ from Flink's.

Each is a switch of the accounts beside this, which state the condition in code. `transcript` is a
smallest schedule that shows it. Those with a hazard break I9 of docs/protocol.md in Flink 2.3.0; in
the others the same committables take effect, in other calls.
"""

from __future__ import annotations

from tests.conformance.committing.account import (
    ABORTED_APART,
    ENDED_SUBTASK,
    LATE_NOTICE,
    PARTLY_TAKEN,
    PAST_THE_END,
    TRIED_LAST,
    TRIED_TOGETHER,
)
from tests.conformance.differences import Difference

DIRECT = (
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
        TRIED_TOGETHER,
        hazard="none",
        breaks="nothing: a commit may be repeated (C6).",
        flink="Each checkpoint is tried again by itself.",
        ours="One commit covers all that is completed, and so does a further try of it (C3).",
        transcript=(
            ("new 1 1", "", None),
            ("barrier 0 1 a", "", None),
            ("complete 1 late", "state 1 0:a", None),
            ("barrier 0 2 b", "", None),
            ("answer b retry", "", None),
            ("complete 2 late", "state 2 0:a,b", None),
            (
                "restart",
                "commit a ok | commit b retry | commit b ok",
                "commit a ok | commit b retry | commit a ok | commit b ok",
            ),
        ),
    ),
    Difference(
        LATE_NOTICE,
        hazard="none",
        breaks="nothing: the next notice, or the restart, makes up for one that was lost (C5).",
        flink="A notice has the checkpoints up to its own committed, and others wait for theirs.",
        ours="A commit covers all that is completed; its driver needs no notice.",
        transcript=(
            ("new 1 0", "", None),
            ("barrier 0 1 a", "", None),
            ("complete 1 late", "state 1 0:a", None),
            ("barrier 0 2 b", "", None),
            ("complete 2 late", "state 2 0:a,b", None),
            ("told 1", "commit a ok", "commit a ok | commit b ok"),
        ),
    ),
)

UPSTREAM = (
    Difference(
        PARTLY_TAKEN,
        hazard="D11",
        breaks="I9: nothing is committed globally any more, for ever and across restarts.",
        flink="The committers that have taken an aborted checkpoint pass it on, and the global one "
        "waits for the others' part of it before everything later.",
        ours="What a subtask handed over for an aborted checkpoint it hands over again with the "
        "next one (C1).",
        transcript=(
            ("new 2 0 upstream", "", None),
            ("barrier 0 1 a", "", None),
            ("abort 1", "", None),
            ("barrier 0 2 -", "", None),
            ("barrier 1 2 -", "", None),
            (
                "complete 2",
                "state 2 0:a | commit 0 a ok",
                "state 2 0:a | commit 0 a ok | global a ok",
            ),
        ),
    ),
    Difference(
        ENDED_SUBTASK,
        hazard="D12",
        breaks="I9: from the checkpoint on in which one writer's input has ended and another's has "
        "not, nothing is committed globally any more.",
        flink="A writer whose input has ended says nothing at later checkpoints, so its committer "
        "passes nothing on, and the global one waits for that.",
        ours="A subtask takes part in every checkpoint until all of them finish together (K8).",
        transcript=(
            ("new 2 0 upstream", "", None),
            ("end 0 -", "", None),
            ("barrier 0 1 -", "", None),
            ("barrier 1 1 -", "", None),
            ("complete 1", "state 1", None),
            ("barrier 0 2 -", "", None),
            ("barrier 1 2 a", "", None),
            (
                "complete 2",
                "state 2 1:a | commit 1 a ok",
                "state 2 1:a | commit 1 a ok | global a ok",
            ),
        ),
    ),
    Difference(
        PAST_THE_END,
        hazard="D10",
        breaks="I9: what the last checkpoint holds is never committed globally.",
        flink="The end of the data goes before what the committers pass on of the last checkpoint, "
        "and the global committer's task discards all that comes behind it.",
        ours="The job finishes when the checkpoint that holds all ends is committed (K8).",
        transcript=(
            ("new 1 0 upstream", "", None),
            ("end 0 a", "", None),
            ("barrier 0 1 -", "", None),
            (
                "complete 1",
                "state 1 0:a | commit 0 a ok",
                "state 1 0:a | commit 0 a ok | global a ok",
            ),
        ),
    ),
    Difference(
        ABORTED_APART,
        hazard="none",
        breaks="nothing: the same committables take effect with the same completed checkpoint.",
        flink="What was taken for an aborted checkpoint is committed and passed on apart from that "
        "of the next completed one.",
        ours="It is handed over again and committed with the next one, in the same call (C1).",
        transcript=(
            ("new 1 0 upstream", "", None),
            ("barrier 0 1 a", "", None),
            ("abort 1", "", None),
            ("barrier 0 2 b", "", None),
            (
                "complete 2",
                "state 2 0:a,b | commit 0 a ok | commit 0 b ok | global a ok | global b ok",
                "state 2 0:a,b | commit 0 a ok b ok | global a ok b ok",
            ),
        ),
    ),
    Difference(
        TRIED_LAST,
        hazard="none",
        breaks="nothing: the same committables are passed on, and committed in the same call.",
        flink="A committer passes on what it has committed in the order of handing over.",
        ours="What took a further try comes behind what was committed before.",
        transcript=(
            ("new 1 1 upstream", "", None),
            ("barrier 0 1 a,b", "", None),
            ("answer a retry", "", None),
            (
                "complete 1",
                "state 1 0:a,b | commit 0 a retry b ok | commit 0 a ok | global a ok b ok",
                "state 1 0:a,b | commit 0 a retry b ok | commit 0 a ok | global b ok a ok",
            ),
        ),
    ),
    Difference(
        LATE_NOTICE,
        hazard="none",
        breaks="nothing: the next notice, or the restart, makes up for one that was lost.",
        flink="A subtask commits a checkpoint when its notice reaches the task.",
        ours="A task is asked when the checkpoint is completed, and hears that before the next "
        "barrier.",
        transcript=(
            ("new 1 0 upstream", "", None),
            ("barrier 0 1 a", "", None),
            ("complete 1 late", "state 1 0:a", None),
            ("barrier 0 2 -", "", "commit 0 a ok | global a ok"),
        ),
    ),
)

ALL = (
    *(("direct", entry) for entry in DIRECT),
    *(("upstream", entry) for entry in UPSTREAM),
)
"""Every entry, with its topology."""
