"""The splits that one subtask of a source is assigned, since which checkpoint, and which of its
readers are there.

Decides which reader is sent a split, what a reset returns to the enumerator, what a reader is told
about the end, and which reader is listened to. An assignment is uncheckpointed until the
coordinator's next checkpoint N, and belongs to N from then on::

    assign a, b | take(1) | assign c | take(2) | assign d | reset(1)
    the reader's state of checkpoint 1 holds a and b; c and d return to the enumerator

Leaves to the user's enumerator which splits there are and who gets them, and to the shell how they
are sent. An attempt has a place while it may be sent events; there are several places where a
subtask has concurrent attempts.

Source: Apache Flink's SourceCoordinatorContext and SplitAssignmentTracker (rules S1 to S6 and S8
in docs/protocol.md).
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    ANY,
    STAY,
    Array,
    Bool,
    Channel,
    Fifo,
    Ignore,
    Int,
    Machine,
    Opaque,
    Port,
    Row,
    System,
    Trigger,
    fallible,
    machines,
    output,
)

ABSENT, OWED, READING, RETURNED, TOLD = "absent", "owed", "reading", "returned", "told"
SETTLED = (ABSENT, OWED, READING, TOLD)
"""All but the state in which the enumerator hears of a reader, which ends in the same event."""


class ReaderPort(Port):
    """The reader of one attempt."""

    def send(self, attempt: int, split: Opaque) -> None: ...
    def tell_no_more(self, attempt: int) -> None: ...


class EnumeratorPort(Port):
    """The enumerator, and the coordinator around it."""

    def joined(self, attempt: int) -> None:
        """The reader of this attempt is there."""

    def left(self, attempt: int) -> None:
        """The attempt cannot be sent events any more."""

    @fallible("announced", succeeds="announced", in_event=True)
    def announce(self) -> None:
        """Tell the enumerator that the subtask has a reader. One that raises has heard it too, and
        has failed the job.
        """

    def asked(self, attempt: int) -> None:
        """The reader could read another split."""

    def said(self, attempt: int, event: Opaque) -> None:
        """The reader has sent this event."""

    def returned(self, split: Opaque) -> None:
        """The split is in no reader's state; one message for each, in the order of assignment."""

    def unsent(self) -> None:
        """Splits wait for a reader: the checkpoint that was to be taken cannot hold them."""

    def listed(self, split: Opaque) -> None:
        """The split was assigned; one message for each, in the order of assignment."""


class SplitAssignment(Machine):
    """The splits and the readers of one subtask."""

    INDEX = ("subtask",)
    STATES = (ABSENT, OWED, READING, RETURNED, TOLD)
    INITIAL = ABSENT

    system: SplitAssignments
    subtask: int
    readers: ReaderPort = output(ReaderPort)
    enumerator: EnumeratorPort = output(EnumeratorPort)

    attempt: list[int] = Array(Int("attempts"), "places")
    """For each place, its attempt."""
    is_taken: list[bool] = Array(Bool(), "places")
    """The place's attempt can be sent events."""
    has_joined: list[bool] = Array(Bool(), "places")
    """The place's reader has registered."""
    attempts: int = Int("attempts")
    """More than the number of every attempt that ever had a place."""
    uncheckpointed: Fifo[Opaque] = Channel("split", "splits")
    checkpointed: Fifo[Opaque] = Channel("split", "splits")
    """What belongs to checkpoints that are not known to be completed, the oldest first."""
    belongs_to: Fifo[int] = Channel("checkpoints", "splits")
    """For each checkpointed split, its checkpoint."""
    newest: int = Int("checkpoints")
    """The newest checkpoint to which a split belongs; 0 if there is none."""
    has_unsent: bool = Bool()
    """Splits were assigned while no reader was there, and wait for one."""
    has_forgotten: bool = Bool()
    """Splits may be in a reader's state that are remembered nowhere else."""

    ready: Trigger
    register: Trigger
    announced: Trigger
    assign: Trigger
    signal: Trigger
    request: Trigger
    speak: Trigger
    lost: Trigger
    reset: Trigger
    take: Trigger
    complete: Trigger
    abort: Trigger
    list_all: Trigger
    restore: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("ready",        SETTLED,                STAY,     "has_free_place",
            "take_place",                          "the attempt can be sent events; its reader will register"),

        Row("register",     ABSENT,                 READING,  "is_new",
            "join, send_waiting, announce",        "a reader of the subtask registers"),
        Row("register",     OWED,                   RETURNED, "is_new",
            "join, send_waiting, announce",        "before the end is told, the enumerator may assign more"),
        Row("register",     READING,                STAY,     "is_new",
            "join, send_everything",               "another attempt reads the same splits from the beginning"),
        Row("register",     TOLD,                   STAY,     "is_new",
            "join, send_everything, tell_it",      "another attempt reads the same splits from the beginning"),
        Ignore("register",  SETTLED,                          "not is_new and is_old",
                                                   "the reader has registered before, or is gone"),

        Row("announced",    RETURNED,               TOLD,     None,
            "tell_all",                            "no more splits were assigned: the signalled end stands"),
        Ignore("announced", (READING, TOLD),                  None,
                                                   "the enumerator has decided what the subtask reads"),

        Row("assign",       READING,                STAY,     None,
            "remember, send_to_all",               "the subtask's readers are there"),
        Row("assign",       RETURNED,               READING,  None,
            "remember, send_to_all",               "the subtask has more to read: the signalled end is void"),
        Row("assign",       ABSENT,                 STAY,     None,
            "remember, note_unsent",               "the split waits for a reader, or for the reset"),
        Row("assign",       OWED,                   ABSENT,   None,
            "remember, note_unsent",               "the subtask has more to read: the signalled end is void"),

        Row("signal",       READING,                TOLD,     None,
            "tell_all",                            "the enumerator has no more splits for the subtask"),
        Row("signal",       ABSENT,                 OWED,     None,
            None,                                  "the next reader will be told of the end"),
        Ignore("signal",    (OWED, RETURNED, TOLD),           None,
                                                   "the end is signalled already"),

        Row("request",      READING,                STAY,     "is_there",
            "pass_request_on",                     "the reader could read another split"),
        Ignore("request",   TOLD,                             "is_there",
                                                   "the request has crossed the notice of the end"),
        Ignore("request",   SETTLED,                          "not is_there and is_gone",
                                                   "the attempt is gone"),

        Row("speak",        (READING, TOLD),        STAY,     "is_there",
            "pass_event_on",                       "the reader has registered"),
        Ignore("speak",     SETTLED,                          "not is_there and is_gone",
                                                   "the attempt is gone"),

        Row("lost",         READING,                ABSENT,   "is_only_one",
            "leave",                               "the subtask's splits come back at the reset"),
        Row("lost",         TOLD,                   OWED,     "is_only_one",
            "leave",                               "the reader's successor is told of the end too"),
        Row("lost",         (READING, TOLD),        STAY,     "not is_only_one and has_place",
            "leave",                               "another reader of the subtask is there"),
        Ignore("lost",      (READING, TOLD),                  "not is_only_one and not has_place",
                                                   "the attempt was never ready, or is gone already"),
        Row("lost",         (ABSENT, OWED),         STAY,     "has_place",
            "leave",                               "the attempt's reader had not registered"),
        Ignore("lost",      (ABSENT, OWED),                   "not has_place",
                                                   "the attempt was never ready, or is gone already"),

        Row("reset",        ABSENT,                 STAY,     None,
            "take_back",                           "splits assigned after the checkpoint are in no state"),
        Row("reset",        OWED,                   ABSENT,   "has_newer",
            "take_back",                           "the subtask may be assigned the returned splits again"),
        Ignore("reset",     OWED,                             "not has_newer",
                                                   "the reader's state of the checkpoint holds all splits"),

        Row("take",         SETTLED,                STAY,     "not is_waiting",
            "move_under_checkpoint",               "the readers' snapshots come after the splits sent before"),
        Row("take",         (ABSENT, OWED),         STAY,     "is_waiting",
            "report_unsent",                       "splits that wait for a reader would be in no state"),

        Row("complete",     SETTLED,                STAY,     None,
            "forget_completed",                    "no reader goes back behind this checkpoint any more"),
        Ignore("abort",     SETTLED,                          None,
                                                   "the splits of the aborted checkpoint wait for a later one"),

        Row("list_all",     SETTLED,                STAY,     "not may_miss_some",
            "list_assigned",                       "readers begin from nothing after a batch snapshot"),

        Row("restore",      ANY,                    ABSENT,   None,
            "leave_all, forget_all, note_restore", "readers register again; their states hold their splits"),
    )
    # fmt: on

    def has_free_place(self) -> bool:
        return any(not self.is_taken[p] for p in range(self.system.places))

    def has_place(self, attempt: int) -> bool:
        return any(
            self.is_taken[p] and self.attempt[p] == attempt for p in range(self.system.places)
        )

    def is_there(self, attempt: int) -> bool:
        return any(
            self.has_joined[p] and self.attempt[p] == attempt for p in range(self.system.places)
        )

    def is_new(self, attempt: int) -> bool:
        return self.has_place(attempt) and not self.is_there(attempt)

    def is_old(self, attempt: int) -> bool:
        return attempt < self.attempts

    def is_gone(self, attempt: int) -> bool:
        return self.is_old(attempt) and not self.has_place(attempt)

    def is_only_one(self, attempt: int) -> bool:
        return self.is_there(attempt) and not any(
            self.has_joined[p] and self.attempt[p] != attempt for p in range(self.system.places)
        )

    def has_newer(self, checkpoint: int) -> bool:
        return not self.uncheckpointed.empty() or self.newest > checkpoint

    def is_waiting(self) -> bool:
        return self.has_unsent

    def may_miss_some(self) -> bool:
        return self.has_forgotten

    def take_place(self, attempt: int) -> None:
        is_placed = False
        for p in range(self.system.places):
            if not self.is_taken[p] and not is_placed:
                is_placed = True
                self.is_taken[p] = True
                self.attempt[p] = attempt
        if attempt >= self.attempts:
            self.attempts = attempt + 1

    def join(self, attempt: int) -> None:
        for p in range(self.system.places):
            if self.is_taken[p] and self.attempt[p] == attempt:
                self.has_joined[p] = True
        self.enumerator.joined(attempt)

    def send_waiting(self, attempt: int) -> None:
        self.has_unsent = False
        for split in self.uncheckpointed.take_all():
            self.readers.send(attempt, split)
            self.uncheckpointed.push(split)

    def send_everything(self, attempt: int) -> None:
        for split in self.checkpointed.take_all():
            self.readers.send(attempt, split)
            self.checkpointed.push(split)
        self.send_waiting(attempt)

    def announce(self) -> None:
        self.enumerator.announce()

    def tell_it(self, attempt: int) -> None:
        self.readers.tell_no_more(attempt)

    def tell_all(self) -> None:
        for p in range(self.system.places):
            if self.has_joined[p]:
                self.readers.tell_no_more(self.attempt[p])

    def remember(self, split: Opaque) -> None:
        self.uncheckpointed.push(split)

    def send_to_all(self, split: Opaque) -> None:
        for p in range(self.system.places):
            if self.has_joined[p]:
                self.readers.send(self.attempt[p], split)

    def note_unsent(self) -> None:
        self.has_unsent = True

    def pass_request_on(self, attempt: int) -> None:
        self.enumerator.asked(attempt)

    def pass_event_on(self, attempt: int, event: Opaque) -> None:
        self.enumerator.said(attempt, event)

    def leave(self, attempt: int) -> None:
        for p in range(self.system.places):
            if self.is_taken[p] and self.attempt[p] == attempt:
                self.free(p)

    def free(self, place: int) -> None:
        self.enumerator.left(self.attempt[place])
        self.is_taken[place] = False
        self.has_joined[place] = False
        self.attempt[place] = 0

    def take_back(self, checkpoint: int) -> None:
        self.newest = 0
        for split in self.checkpointed.take_all():
            number = self.belongs_to.pop()
            if number > checkpoint:
                self.enumerator.returned(split)
            else:
                self.checkpointed.push(split)
                self.belongs_to.push(number)
                self.newest = number
        for split in self.uncheckpointed.take_all():
            self.enumerator.returned(split)
        self.has_unsent = False

    def move_under_checkpoint(self, checkpoint: int) -> None:
        for split in self.uncheckpointed.take_all():
            self.checkpointed.push(split)
            self.belongs_to.push(checkpoint)
            self.newest = checkpoint

    def report_unsent(self) -> None:
        self.enumerator.unsent()

    def forget_completed(self, checkpoint: int) -> None:
        for split in self.checkpointed.take_all():
            number = self.belongs_to.pop()
            if number > checkpoint:
                self.checkpointed.push(split)
                self.belongs_to.push(number)
        if self.checkpointed.empty():
            self.newest = 0
        self.has_forgotten = True

    def list_assigned(self) -> None:
        for split in self.checkpointed.take_all():
            self.enumerator.listed(split)
            self.checkpointed.push(split)
        for split in self.uncheckpointed.take_all():
            self.enumerator.listed(split)
            self.uncheckpointed.push(split)

    def leave_all(self) -> None:
        for p in range(self.system.places):
            if self.is_taken[p]:
                self.free(p)

    def forget_all(self) -> None:
        self.uncheckpointed.clear()
        self.checkpointed.clear()
        self.belongs_to.clear()
        self.newest = 0
        self.has_unsent = False

    def note_restore(self, is_from_checkpoint: bool) -> None:
        self.has_forgotten = is_from_checkpoint


class SplitAssignments(System):
    """The subtasks of one source; `places` is how many attempts of one may be sent events."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "subtasks"}
    CONSTANTS: ClassVar[dict[str, int]] = {"subtasks": 0, "places": 0}

    subtasks: int
    places: int

    assignment: list[SplitAssignment] = machines(SplitAssignment)
