"""The closed job with clients, who ask its coordinators and want their snapshots without
checkpoints, at any moment: before it begins, while a coordinator starts or is rebuilt, after it
has failed the job, and after the end.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import Step, always, leads_to, sometimes
from epochgate.models.batch_snapshot import ASKED, BatchSnapshot
from epochgate.models.closed import untaken
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.surroundings.clients import Adoption, AskedUser, Client
from epochgate.models.closed.surroundings.driver import Person
from epochgate.models.holder import STARTED, STARTING


class AskedJob(ClosedJob):
    """The job and its clients: requests to coordinators, snapshots without checkpoints.

    Each coordinator is asked `asks` times for each of the two, and sends no events.
    """

    CONSTANTS: ClassVar[dict[str, int]] = {
        **ClosedJob.CONSTANTS,
        "subtasks": 1,
        "wanted": 1,
        "events": 1,
        "repeats": 0,
        "slow_starts": 1,
        "asks": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        **ClosedJob.DERIVED,
        "questions": "2",
        "snapshots": "asks + 0",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("launch", "launch"),
        Step("launch", "adopt"),
        Step("sender", "send"),
        Step("process", "arrive"),
        Step("process", "tell"),
        Step("process", "hear"),
        Step("user", "get_ready"),
        Step("user", "take_snapshot"),
        Step("user", "complete_future"),
        Step("store", "finish_save"),
        Step("backoff", "elapse"),
        Step("restarter", "back_off"),
        Step("client", "ask", is_fair=False),
        Step("client", "want", is_fair=False),
        Step("requester", "want", is_fair=False),
        Step("requester", "ask", is_fair=False),
        Step("user", "fail_to_start", is_fair=False),
        Step("user", "fail_everything", is_fair=False),
        Step("user", "fail_for_good", is_fair=False),
        Step("user", "fail_to_start_for_good", is_fair=False),
        Step("process", "die", is_fair=False),
        Step("person", "cancel", is_fair=False),
    )
    UNREAD: ClassVar[dict[str, str]] = {
        **ClosedJob.UNREAD,
        "sender.completed_heard": "what tasks say is examined in `TalkingJob`",
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        **{
            f"{name}.{row.trigger}": "explored by the other systems made of these machines"
            for name, machine in ClosedJob.MACHINES.items()
            if name not in ("holder", "request")
            for row in machine.ROWS
        },
        **untaken.NOWHERE,
        **untaken.left_to(
            "resuming",
            "holder.reset: the job begins from a checkpoint",
            "holder.restore_failed",
            "holder.restored: the coordinator failed the job before its start",
            "holder.restored: the restore was given up, or the job is over",
            "user.break_restore",
            "user.break_restore_for_good",
        ),
        **untaken.LEFT_TO_TWO,
        **untaken.left_to("talking", "holder.event", "holder.event_malformed", "holder.handled"),
        **untaken.left_to("endings", "person.stop", "person.give_up"),
        **untaken.left_to(
            "epochgate",
            "holder.fail_job: only the first failure since the last restore counts",
            "holder.fail_job: all attempts go down already",
            "request.submit: the checkpoint under way may not cover this request",
            "request.submit_periodic: the last request is not over; the timer asks again",
            "request.settle: the checkpoint is over, and another one is requested",
        ),
        **untaken.left_to(
            "batch",
            "batch_snapshot.ask: an earlier snapshot is still under way",
            "batch_snapshot.confirm",
            "batch_snapshot.fail",
            "batch_snapshot.lose",
            "batch_snapshot.succeed",
        ),
        "holder.batch_snapshot: a periodic checkpoint holds what the snapshot would": (
            "no checkpoint is periodic, unless `periodic` is 1"
        ),
    }
    WIRING: ClassVar[dict[str, str]] = {
        **ClosedJob.WIRING,
        "batch_snapshot.requester": "client",
    }

    asks: int
    periodic: int

    batch_snapshot: list[BatchSnapshot] = machines(BatchSnapshot)
    client: list[Client] = machines(Client)
    user: list[AskedUser] = machines(AskedUser)  # type: ignore[assignment]  # it takes the other's place
    launch: Adoption = machines(Adoption)
    person: Person = machines(Person)

    @sometimes("a client's question waits for the coordinator's start")
    def holds_a_question(self) -> bool:
        return self.holder[0].state == STARTING and self.holder[0].requests.size() > 0

    @sometimes("the future of a snapshot that was cancelled completes")
    def is_late(self) -> bool:
        return self.periodic > 0 or (
            self.user[0].future > 0 and self.batch_snapshot[0].state != ASKED
        )

    @sometimes("a coordinator answers that was rebuilt")
    def answers_after_all(self) -> bool:
        return (
            self.lifecycle.restarts > 0
            and self.holder[0].state == STARTED
            and self.client[0].questions > 0
        )

    @always("a client waits no longer than the coordinator starts")
    def answers_at_once(self) -> bool:
        return all(
            not self.client[c].awaits_answer or self.holder[c].state == STARTING
            for c in range(self.coordinators)
        )

    @always("a checkpoint that is asked for after the job's end is refused")
    def refuses_late_checkpoints(self) -> bool:
        return not self.requester.is_late

    def is_served(self) -> bool:
        return all(
            not self.client[c].awaits_answer and not self.client[c].awaits_snapshot
            for c in range(self.coordinators)
        )

    @leads_to("a client that asks learns the answer, or why there is none", then="is_served")
    def is_asked(self) -> bool:
        return not self.is_served()
