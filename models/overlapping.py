"""Checkpoints that overlap at one coordinator's gateways, up to `overlap` of them at once.

A job has one checkpoint under way at a time; its gateways and snapshots are made for more, as
Flink's are. Here the very same machines stand among coordinators and subtasks of a few lines, which
trigger a checkpoint before the last one is over, complete futures in any order, abort and fail::

    coordinator   [snapshot 1]   x   [snapshot 2]   y
    gateway       closed for 1: x is held; closed for 2 too: y is held apart
    subtask                          barrier 1   x   barrier 2   y

The claim is that of every checkpoint by itself: a subtask has handled at its barrier what was sent
before the coordinator's snapshot, and nothing else.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, sometimes, terminal
from epochgate.models.gateway import OPEN, Gateway
from epochgate.models.snapshot import CoordinatorSnapshot
from epochgate.models.surroundings.rounds import (
    COMPLETED,
    PENDING,
    Coordinator,
    Failures,
    Future,
    Futures,
    Round,
    Rounds,
    Sender,
    Subtask,
    Wire,
)


class Overlapping(ClosedSystem):
    """Gateways and snapshots of one coordinator, with checkpoints that overlap."""

    INDEX_SETS: ClassVar[dict[str, str]] = {
        "subtask": "subtasks",
        "coordinator": "coordinators",
        "lane": "overlap",
        "round": "checkpoints",
    }
    CONSTANTS: ClassVar[dict[str, int]] = {
        "subtasks": 1,
        "coordinators": 1,
        "overlap": 2,
        "checkpoints": 3,
        "events": 2,
        "F": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "attempts": "F",
        "numbers": "events",
        "event": "events",
        "in_flight": "subtasks * events",
        "posted": "events * 2",
        "item": "checkpoints + events * events",
        "length": "checkpoints + events",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("sender", "send"),
        Step("round", "begin"),
        Step("future", "complete"),
        Step("wire", "tell"),
        Step("attempt", "come_back"),
        Step("round", "hear_notice"),
        Step("future", "fail", is_fair=False),
        Step("round", "give_up", is_fair=False),
        Step("attempt", "fail", is_fair=False),
        Step("wire", "lose", is_fair=False),
        Step("wire", "confirm_again", is_fair=False, is_stuttering=True),
        Step("sender", "send_late", is_fair=False, is_stuttering=True),
        Step("future", "answer_late", is_fair=False, is_stuttering=True),
    )
    UNTAKEN: ClassVar[dict[str, str]] = {
        "round.pass_barrier: other subtasks have not passed it": "there is one subtask",
    }
    WIRING: ClassVar[dict[str, str]] = {
        "attempt.task": "wire",
        "gateway.sender": "sender",
        "holder.user": "futures",
        "snapshot.results": "future",
    }

    subtasks: int
    coordinators: int
    overlap: int
    checkpoints: int
    events: int
    F: int

    attempt: list[Subtask] = machines(Subtask)
    wire: list[Wire] = machines(Wire)
    gateway: dict[tuple[int, int], Gateway] = machines(Gateway)
    snapshot: dict[tuple[int, int], CoordinatorSnapshot] = machines(CoordinatorSnapshot)
    sender: dict[tuple[int, int], Sender] = machines(Sender)
    holder: list[Coordinator] = machines(Coordinator)
    futures: list[Futures] = machines(Futures)
    future: dict[tuple[int, int], Future] = machines(Future)
    round: list[Round] = machines(Round)
    checkpoint: Rounds = machines(Rounds)
    failures: Failures = machines(Failures)

    @sometimes("two checkpoints keep a gateway closed")
    def is_closed_twice(self) -> bool:
        return any(self.gateway[0, s].shut[1] for s in range(self.subtasks))

    @sometimes("events are held for both")
    def holds_for_both(self) -> bool:
        return any(
            self.gateway[0, s].held[0].size() > 0 and self.gateway[0, s].held[1].size() > 0
            for s in range(self.subtasks)
        )

    @sometimes("a newer checkpoint is complete, and an older one is not")
    def is_overtaken(self) -> bool:
        return any(
            self.round[n].state == PENDING and self.round[n + 1].state == COMPLETED
            for n in range(self.checkpoints - 1)
        )

    @terminal("every gateway is open, and what became of each send is known")
    def is_settled(self) -> bool:
        return all(
            self.gateway[0, s].state == OPEN and self.sender[0, s].undecided == 0
            for s in range(self.subtasks)
        )
