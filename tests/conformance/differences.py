"""The reviewed list: every way in which our machines may differ from Flink's holder.

Each is a hazard of Flink 2.3.0 by the invariants I1 to I6 of docs/protocol.md, named D1 to D9 as in
docs/flink-hazards.md, and is a switch of the account in `account.py`, which states the condition in
code. `transcript` is a smallest schedule that shows it: none of its commands can be left out. Where
the harm is that checkpoints never complete again, which no finite list of commands shows, a loop of
`starving.py` drives both sides for as long as one likes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.account import (
    EARLY_OPENING,
    FORGOTTEN_SENDS,
    HALF_MARKED,
    LATE_SENDS,
    MIXED_CLOSE,
    ORPHANED_SENDS,
    REFUSED_ACKNOWLEDGEMENT,
    SKIPPED_NOTICE,
    UNTOLD_NOTICE,
)


@dataclass(frozen=True)
class Difference:
    """One entry: where Flink and we differ, why that is allowed, and what it looks like."""

    name: str
    hazard: str
    breaks: str
    """Which invariants Flink breaks there, and how."""
    flink: str
    """What Flink does, and when."""
    ours: str
    transcript: tuple[tuple[str, str, str | None], ...]
    """Commands, each with Flink's lines and ours; None where ours are the same."""


DIFFERENCES = (
    Difference(
        EARLY_OPENING,
        hazard="D1",
        breaks="I2: an event sent after the snapshot of an older checkpoint reaches the subtask "
        "before that checkpoint's barrier. Or the older one fails, although it was not aborted.",
        flink="An abort of the current triggering names no checkpoint: each gateway reopens for "
        "the newest one that it is still marked for, also when another is being triggered.",
        ours="An abort names its checkpoint, here the one that was triggered last; a gateway that "
        "is not marked for it any more stays as it is (G4, H14).",
        transcript=(
            ("new 1", "", None),
            ("start", "coord start", None),
            ("running 0", "coord ready 0 0", None),
            ("ckpt 1", "coord checkpoint 1", None),
            ("cdone 1 s1", "ckptfuture 1 s1", None),
            ("ckpt 2", "coord checkpoint 2", None),
            ("abort", "", None),
            ("abort", "", None),
            ("send 0 0 a", "deliver 0 0 a | sent a ok", ""),
            ("ack 0 0 1", "", "deliver 0 0 a | sent a ok"),
        ),
    ),
    Difference(
        SKIPPED_NOTICE,
        hazard="D2",
        breaks="I5: the gateways behind the one that throws stay closed; I4: what they hold is "
        "never decided. The coordinator is not told.",
        flink="A notice that a checkpoint is complete or aborted is posted, and a regional reset "
        "that comes inline replaces a gateway before it. The new gateway has not seen the "
        "checkpoint and throws, which skips the other gateways and the coordinator.",
        ours="A gateway that was never marked for a checkpoint ignores its end (G4).",
        transcript=(
            ("new 2", "", None),
            ("start", "coord start", None),
            ("running 1", "coord ready 1 0", None),
            ("ckpt 1", "coord checkpoint 1", None),
            ("cdone 1 s1", "ckptfuture 1 s1", None),
            ("send 1 0 a", "", None),
            ("auto 0", "", None),
            ("aborted 1", "", None),
            ("reset 0 0", "coord subtaskReset 0 0", None),
            ("auto 1", "EXC", "deliver 1 0 a | coord aborted 1 | sent a ok"),
        ),
    ),
    Difference(
        UNTOLD_NOTICE,
        hazard="D8",
        breaks="I6: a coordinator that has something open for each checkpoint it was asked for, "
        "and opens the next when it was told of the end, is never told, and lets every later "
        "checkpoint expire. (Flink's documentation calls such notices best effort, and so leaves "
        "this to the coordinator; H13 promises them.)",
        flink="The same where no gateway has seen the checkpoint, because it was aborted before "
        "coordinators were asked, or because all gateways were replaced: the coordinator is not "
        "told.",
        ours="The coordinator is told.",
        transcript=(
            ("new 1", "", None),
            ("start", "coord start", None),
            ("aborted 1", "EXC", "coord aborted 1"),
        ),
    ),
    Difference(
        REFUSED_ACKNOWLEDGEMENT,
        hazard="D2",
        breaks="I6: a subtask that has restarted may meet the barrier of a checkpoint from before, "
        "and its acknowledgement restarts the whole job.",
        flink="The same for a subtask's acknowledgement: the new gateway has not seen the "
        "checkpoint, and the exception fails the job.",
        ours="An acknowledgement of a checkpoint that the gateway never saw is ignored (G4, K7).",
        transcript=(
            ("new 1", "", None),
            ("start", "coord start", None),
            ("running 0", "coord ready 0 0", None),
            ("ack 0 0 1", "GLOBAL", ""),
        ),
    ),
    Difference(
        MIXED_CLOSE,
        hazard="D3",
        breaks="I6, and everything else: the process of the job manager ends.",
        flink="A future completes while some gateways are marked for its checkpoint and others are "
        "not, for instance one that a regional reset has replaced: closing them throws where "
        "nothing may throw.",
        ours="Nothing is closed, and the coordinator's part fails (H11).",
        transcript=(
            ("new 2", "", None),
            ("start", "coord start", None),
            ("ckpt 1", "coord checkpoint 1", None),
            ("reset 0 0", "coord subtaskReset 0 0", None),
            ("cdone 1 s1", "EXC", "ckptfuture 1 FAILED"),
            ("ckpt 2", "EXC", "coord checkpoint 2"),
        ),
    ),
    Difference(
        FORGOTTEN_SENDS,
        hazard="D4",
        breaks="I1: a checkpoint completes although an event that was sent before it may still be "
        "lost, and then is in no state at all.",
        flink="Sends that are under way are taken by the first checkpoint that waits for them, and "
        "forgotten: a later one does not wait, also when the first was aborted.",
        ours="Until it is decided, a send counts for every checkpoint whose snapshot comes after "
        "it (G9).",
        transcript=(
            ("new 1 manual", "", None),
            ("start", "coord start", None),
            ("running 0", "coord ready 0 0", None),
            ("send 0 0 a", "deliver 0 0 a", None),
            ("ckpt 1", "coord checkpoint 1", None),
            ("cdone 1 s1", "", None),
            ("ckpt 2", "coord checkpoint 2", None),
            ("cdone 2 s2", "ckptfuture 2 s2", ""),
            (
                "sendack a lost",
                "failover 0 0 | ckptfuture 1 FAILED | sent a FAILED",
                "failover 0 0 | ckptfuture 1 FAILED | ckptfuture 2 FAILED | sent a FAILED",
            ),
        ),
    ),
    Difference(
        ORPHANED_SENDS,
        hazard="D5",
        breaks="I4: the futures of these sends never complete; I6: every later checkpoint waits "
        "for them.",
        flink="A regional reset replaces a closed gateway and leaves what it holds where it is; "
        "what is sent through the old one afterwards stays there too.",
        ours="A gateway that is renewed fails what it still holds, and what is sent for the "
        "attempt before fails (G5, G8).",
        transcript=(
            ("new 1", "", None),
            ("start", "coord start", None),
            ("running 0", "coord ready 0 0", None),
            ("ckpt 1", "coord checkpoint 1", None),
            ("cdone 1 s1", "ckptfuture 1 s1", None),
            ("send 0 0 a", "", None),
            ("reset 0 0", "coord subtaskReset 0 0", "coord subtaskReset 0 0 | sent a FAILED"),
            ("ckpt 2", "coord checkpoint 2", None),
            ("cdone 2 s2", "", "ckptfuture 2 s2"),
        ),
    ),
    Difference(
        LATE_SENDS,
        hazard="D9",
        breaks="I6: nothing fails any more, and yet each checkpoint does, for ever, if the "
        "coordinator sends to a replaced attempt in the step in which it completes its future. No "
        "part of the checkpoint lacks that event: its attempt is gone.",
        flink="A call to an attempt that was replaced fails at once, and counts as being on its "
        "way until that is handled; a future that completes before then waits for it, and fails.",
        ours="What is sent for a replaced attempt is turned away, and was never on its way (G5). "
        "An event for an attempt that fails while a checkpoint is under way is another matter: "
        "there the checkpoint is aborted (K6).",
        transcript=(
            ("new 1", "", None),
            ("start", "coord start", None),
            ("running 0", "coord ready 0 0", None),
            ("reset 0 0", "coord subtaskReset 0 0", None),
            ("ckpt 1", "coord checkpoint 1", None),
            ("auto 0", "", None),
            ("send 0 0 a", "", None),
            ("cdone 1 s1", "", None),
            (
                "auto 1",
                "ckptfuture 1 FAILED | sent a FAILED",
                "ckptfuture 1 s1 | sent a FAILED",
            ),
        ),
    ),
    Difference(
        HALF_MARKED,
        hazard="none, in a job: ids only grow there, and what refuses one renews all gateways",
        breaks="I6, of the holder held to its interface: an id that was refused is refused for "
        "ever, and takes the job back each time, also once no gateway that is left has taken part "
        "in a newer checkpoint.",
        flink="A checkpoint id that is not newer fails the checkpoint and the job at the first "
        "gateway that has seen a newer one; the gateways before that one stay marked.",
        ours="It fails both as well, and no gateway is marked (H9).",
        transcript=(
            ("new 2", "", None),
            ("start", "coord start", None),
            ("ckpt 2", "coord checkpoint 2", None),
            ("reset 0 0", "coord subtaskReset 0 0", None),
            ("ckpt 1", "ckptfuture 1 FAILED | GLOBAL", None),
            ("reset 1 0", "coord subtaskReset 1 0", None),
            ("ckpt 1", "ckptfuture 1 FAILED | GLOBAL", "coord checkpoint 1"),
        ),
    ),
)
