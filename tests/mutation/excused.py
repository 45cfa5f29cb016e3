"""Which mutants of all kinds survive every claim and every test, and why they may.

`reasons` has those of the kinds that checker and runtime both have to find. A reason for a mutant
that is found fails.
"""

from __future__ import annotations

SAME_VALUE = "a value that is put into force twice is the same as once"
SHADOWED = "a row without a guard stands before it"
SAME_BATCH = "the entry of the batch was kept in the same step, so what it has left is the batch's"
NONE_PENDING = "without a pending change every row does the same: nothing"
ONE_STEP = (
    "both are done in one step of one thread, nothing reads one of them before the other is done, "
    "and an error in either ends the attempt"
)

OF_REASON: dict[str, tuple[str, ...]] = {
    SAME_VALUE: (
        "changes: set from any state: apply twice",
        "changes: restored from owed when is_asked and not covers_all: apply_pending twice",
        "changes: restored from owed when not is_asked: apply_pending twice",
    ),
    "what is acknowledged is not pending any more": (
        "changes: completed from owed when is_asked and covers_all: acknowledge_covered twice",
        "changes: completed from owed when is_asked and not covers_all: acknowledge_covered twice",
        "changes: restored from owed when is_asked and covers_all: acknowledge_covered twice",
        "changes: restored from owed when is_asked and not covers_all: acknowledge_covered twice",
    ),
    "in one step the newest value is applied last, whatever is applied before it": (
        "changes: restored from owed when is_asked and not covers_all: apply_pending before "
        "acknowledge_covered",
    ),
    NONE_PENDING: (
        "changes: snapshot from owed: also from durable",
        "changes: completed from owed when is_asked and covers_all: also from durable",
        "changes: completed from owed when is_asked and not covers_all: also from durable",
        "changes: restored from owed when is_asked and covers_all: also from durable",
        "changes: restored from owed when is_asked and not covers_all: also from durable",
        "changes: restored from owed when not is_asked: also from durable",
    ),
    "the change that is applied is the newest by then": (
        "changes.apply: `self.setting.apply(change)` -> `self.setting.apply(self.newest)`",
    ),
    "that a slot is free, told twice, is the same as once": (
        "placement: room from any state but given_up: note_room twice",
    ),
    "a watch that is set again is the same watch": (
        "send_window: want from any state when not has_room: watch twice",
        "send_window: freed from awaited when not has_room: watch twice",
        "receive_window: received from reading when is_over: watch twice",
        "receive_window: handled from paused when not has_room: watch twice",
    ),
    "where no sender waits, what the watch finds is ignored": (
        "send_window: freed from awaited when not has_room: also from quiet",
    ),
    "where no send is awaited, none is the last that is awaited": (
        "batch_snapshot: confirm from confirming when is_current and is_last: also from idle",
        "batch_snapshot: confirm from confirming when is_current and is_last: also from asked",
    ),
    "the number is the one behind what was read, however often it is noted": (
        "control_update: newest from reading: note_next twice",
    ),
    SHADOWED: (
        "control_update: broken from writing when has_tried: also from reading",
        "batch_snapshot: cancel from idle: also from confirming",
        *(
            f"batch_plan: broken from fetching: also from {state}"
            for state in ("looking", "restoring", "reading", "writing", "confirming")
        ),
    ),
    "the query fails where a plan is not read, and its maker with it": (
        "batch_plan: broken from any state but idle, forgetting, fetching: also from fetching",
    ),
    "what is noted twice is the same as once": (
        "batch_plan: begin from idle: note_batch twice",
        "batch_plan: run from idle: note_batch twice",
        "batch_plan: newest from reading: note_version twice",
    ),
    SAME_BATCH: (
        "batch_plan.ask_forget: `self.batch > self.system.retained` -> "
        "`self.behind > self.system.retained`",
        "batch_plan.ask_forget: `self.batch - self.system.retained` -> "
        "`self.behind - self.system.retained`",
    ),
    ONE_STEP: (
        "in_flight: show from empty when has_state: map before take",
        "in_flight: accept from shown: write before take",
    ),
}
"""Reason -> the names of the mutants that it is for."""
EXCUSED: dict[str, str] = {name: why for why, names in OF_REASON.items() for name in names}
