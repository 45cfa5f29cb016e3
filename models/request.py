"""The checkpoint request: submitted, queued until a checkpoint may be triggered, chosen, and
settled.

Decides that one checkpoint runs at a time, that none starts unless every subtask runs, and that a
request made while a checkpoint is under way is served by the next one; a periodic request is not,
since its timer asks again. Requests that wait together are served together; none is taken once the
job has ended. Source: Apache Flink's
CheckpointRequestDecider (section 3 of docs/protocol.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Bool, Ignore, Machine, Port, Row, Trigger, output

if TYPE_CHECKING:
    from epochgate.models.job import Job

IDLE, QUEUED, CHOSEN = "idle", "queued", "chosen"


class RequestPort(Port):
    """The requesters that wait for a checkpoint."""

    def chosen(self, checkpoint: int) -> None:
        """All requests made so far are served by this checkpoint."""

    def refused(self) -> None:
        """The request that was just made, and those that wait, will not be served."""


class CheckpointRequest(Machine):
    """All requests for a checkpoint that wait or are served together."""

    STATES = (IDLE, QUEUED, CHOSEN)
    INITIAL = IDLE

    system: Job
    requester: RequestPort = output(RequestPort)

    has_more: bool = Bool()
    """Another request came while the chosen one is being served."""

    submit: Trigger
    submit_periodic: Trigger
    reconsider: Trigger
    settle: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("submit",             IDLE,             QUEUED, "not has_ended",
            "consider",  "a checkpoint is requested"),
        Ignore("submit",          QUEUED,                   "not has_ended",
                         "the request is served together with the waiting one"),
        Row("submit",             CHOSEN,           STAY,   "not has_ended",
            "note_more", "the checkpoint under way may not cover this request"),
        Row("submit",             ANY,              STAY,   "has_ended",
            "refuse",    "the job has ended"),

        Row("submit_periodic",    IDLE,             QUEUED, "not has_ended",
            "consider",  "the interval is over"),
        Ignore("submit_periodic", (QUEUED, CHOSEN),         "not has_ended",
                         "the last request is not over; the timer asks again"),
        Ignore("submit_periodic", ANY,                      "has_ended",
                         "the job has ended"),

        Row("reconsider",         QUEUED,           CHOSEN, "may_trigger",
            "choose",    "every subtask runs, and no checkpoint is under way"),
        Ignore("reconsider",      QUEUED,                   "not may_trigger",
                         "a subtask does not run, or a checkpoint is under way"),
        Ignore("reconsider",      (IDLE, CHOSEN),           None,
                         "no request waits"),

        Row("settle",             CHOSEN,           IDLE,   "not is_wanted",
            None,        "the checkpoint is over"),
        Row("settle",             CHOSEN,           QUEUED, "is_wanted",
            "consider",  "the checkpoint is over, and another one is requested"),
    )
    # fmt: on

    def has_ended(self) -> bool:
        return self.system.lifecycle.has_ended()

    def may_trigger(self) -> bool:
        return self.system.lifecycle.may_checkpoint() and self.system.checkpoint.is_over()

    def is_wanted(self) -> bool:
        return self.has_more or self.system.lifecycle.needs_checkpoint()

    def consider(self) -> None:
        self.has_more = False
        self.reconsider()

    def note_more(self) -> None:
        self.has_more = True

    def refuse(self) -> None:
        self.requester.refused()

    def choose(self) -> None:
        self.requester.chosen(self.system.checkpoint.number + 1)
        self.system.checkpoint.trigger_next()
