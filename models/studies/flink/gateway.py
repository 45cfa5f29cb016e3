"""Flink's subtask gateway: one object for each attempt, with marks, and buffers by checkpoint.

A gateway is closed while it has a buffer. Replacing it in the holder's map leaves it as it is, with
whatever it still holds. Each send has a future, which is tracked until it is settled; a checkpoint
takes all tracked futures over, and the tracker forgets them. Checkpoints count from 0; `latest` is
one more than the newest that was marked.

Source: Apache Flink's SubtaskGatewayImpl and IncompleteFuturesTracker. Runs on the main thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Channel, Fifo, Ignore, Int, Machine, Row, Trigger

if TYPE_CHECKING:
    from epochgate.models.studies.flink.system import Flink

OPEN, CLOSED = "open", "closed"
NONE, TRACKED, AWAITED = 0, 1, 2
"""Of a future: it does not exist or is settled; it is in the tracker; from here on: the checkpoint
of this number, counted from AWAITED, waits for it.
"""


class Gateway(Machine):
    """The gateway from the coordinator to one attempt of one subtask."""

    INDEX = ("subtask", "attempt")
    STATES = (OPEN, CLOSED)
    INITIAL = OPEN

    system: Flink
    subtask: int
    attempt: int

    latest: int = Int("K")
    marked: list[bool] = Array(Bool(), "K")
    shut: list[bool] = Array(Bool(), "K")
    """For which checkpoints there is a buffer."""
    held: list[Fifo[int]] = Array(Channel("event", "E"), "K")
    future: list[int] = Array(Int("future", names="NONE, TRACKED"), "E")

    send: Trigger
    mark: Trigger
    close: Trigger
    reopen: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",      OPEN,   STAY,   None,
            "track, call",     "no snapshot lies between"),
        Row("send",      CLOSED, STAY,   None,
            "track, hold",     "it is kept for the newest checkpoint that closes the gateway"),

        Row("mark",      ANY,    STAY,   "is_newer",
            "remember",        "a checkpoint is triggered"),

        Row("close",     OPEN,   CLOSED, "is_marked",
            "shut_for",        "the coordinator has its snapshot"),
        Row("close",     CLOSED, STAY,   "is_marked",
            "shut_for",        "it has that of a second checkpoint"),

        Row("reopen",    OPEN,   STAY,   "is_marked",
            "unmark",          "the checkpoint is over before its snapshot"),
        Row("reopen",    CLOSED, OPEN,   "is_marked and is_last",
            "release, unmark", "the barrier has passed, or the checkpoint is over"),
        Row("reopen",    CLOSED, STAY,   "is_marked and not is_last",
            "hand_on, unmark", "another checkpoint keeps it closed"),
        Ignore("reopen", ANY,            "not is_marked",
                               "it is late, repeated, or aborted"),
    )
    # fmt: on

    def is_newer(self, checkpoint: int) -> bool:
        return checkpoint >= self.latest

    def has_seen(self, checkpoint: int) -> bool:
        return checkpoint < self.latest

    def is_marked(self, checkpoint: int) -> bool:
        return self.marked[checkpoint]

    def is_last(self, checkpoint: int) -> bool:
        """Return whether it is closed for this checkpoint alone."""
        return self.shut[checkpoint] and not any(
            self.shut[k] and k != checkpoint for k in range(self.system.K)
        )

    def is_current(self) -> bool:
        return self.system.holder.current[self.subtask] == self.attempt

    def track(self, event: int) -> None:
        self.future[event] = TRACKED

    def call(self, event: int) -> None:
        """Call the task manager, which fails when the attempt is not there."""
        if self.system.task[self.subtask].can_be_called(self.attempt):
            self.system.task[self.subtask].wire.push(event)
        else:
            self.system.main.post_lost(self.subtask, self.attempt, event)

    def hold(self, event: int) -> None:
        newest = 0
        for k in range(self.system.K):
            if self.shut[k]:
                newest = k
        self.held[newest].push(event)

    def remember(self, checkpoint: int) -> None:
        self.marked[checkpoint] = True
        self.latest = checkpoint + 1

    def shut_for(self, checkpoint: int) -> None:
        self.shut[checkpoint] = True

    def unmark(self, checkpoint: int) -> None:
        self.marked[checkpoint] = False
        self.shut[checkpoint] = False

    def release(self, checkpoint: int) -> None:
        for event in self.held[checkpoint].take_all():
            self.call(event)

    def hand_on(self, checkpoint: int) -> None:
        """Send what the oldest checkpoint holds; hand what another holds to the next older one."""
        older = self.system.K
        for k in range(self.system.K):
            if self.shut[k] and k < checkpoint:
                older = k
        if older < self.system.K:
            self.held[older].drain(self.held[checkpoint])
        else:
            self.release(checkpoint)

    def reopen_newest(self) -> None:
        """Reopen for the newest mark, whatever it is for."""
        newest = self.system.K
        for k in range(self.system.K):
            if self.marked[k]:
                newest = k
        if newest < self.system.K:
            self.reopen(newest)

    def has_tracked(self) -> bool:
        return any(self.future[e] == TRACKED for e in range(self.system.E))

    def has_undecided(self) -> bool:
        return any(self.future[e] > NONE for e in range(self.system.E))

    def is_awaited_by(self, checkpoint: int) -> bool:
        return any(self.future[e] == AWAITED + checkpoint for e in range(self.system.E))

    def take_tracked(self, checkpoint: int) -> None:
        for e in range(self.system.E):
            if self.future[e] == TRACKED:
                self.future[e] = AWAITED + checkpoint

    def settle(self, event: int, is_lost: bool) -> None:
        """Complete a send's future, of which the checkpoint that waits for it learns."""
        status = self.future[event]
        self.future[event] = NONE
        if status >= AWAITED:
            self.system.snapshot[status - AWAITED].hear(is_lost)
