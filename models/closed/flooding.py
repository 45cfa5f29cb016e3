"""A closed system around the two windows of one attempt: a coordinator that sends faster than its
task takes, and a task that says more than the driver takes.

The coordinator sends on threads of its own, the queue's thread handles what the task says, the
wire's thread reads it, and the network holds little, so that the task waits in its sends. Meanwhile
checkpoints are taken, the process dies, and the job is canceled, between any two steps::

    coordinator   a b | c refused ............... told: c
    task              a        b waits in its send     b
    driver        not read ......... handled: read again

`SendWindow` and `ReceiveWindow` are the machines that run in production. The gateway and the
failover are left to `pressed`, a job whose senders have this window.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes, terminal
from epochgate.models.closed.surroundings.flooded_driver import (
    ConnectionsWindow,
    FloodedQueue,
    FloodedWire,
)
from epochgate.models.closed.surroundings.flooding import (
    AT_REST,
    HERE,
    READY,
    AttemptsSendWindow,
    FloodingCoordinator,
    FloodingTask,
)
from epochgate.models.receive_window import PAUSED
from epochgate.models.send_window import AWAITED


class FloodedTask(ClosedSystem):
    """One task and its coordinator, each faster than the other: what waits is bounded."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        "events": 4,
        "large": 4,
        "bytes_large": 3,
        "said": 2,
        "network": 1,
        "unconfirmed_bytes_max": 2,
        "waiting_bytes_max": 2,
        "waiting_messages_max": 1,
        "K": 1,
        "F": 1,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "event_bytes": "bytes_large + 0",
        "next_event": "events + 1",
        "bytes": "events + bytes_large - 1",
        "granted": "bytes + unconfirmed_bytes_max + bytes_large",
        "words": "events + 1",
        "down_length": "events + K",
        "arrived": "events + K + said",
        "arrived_bytes": "events + K + said + said",
        "queue_length": "waiting_messages_max + 2",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("coordinator", "send"),
        Step("coordinator", "send_besides", is_fair=False),
        Step("coordinator", "look"),
        Step("coordinator", "want"),
        Step("coordinator", "want_besides", is_fair=False),
        Step("coordinator", "look_again"),
        Step("task", "take"),
        Step("task", "say"),
        Step("task", "die", is_fair=False),
        Step("task", "restart"),
        Step("wire", "read"),
        Step("wire", "read_rest", is_fair=False),
        Step("wire", "count"),
        Step("wire", "look_again"),
        Step("wire", "called"),
        Step("queue", "handle"),
        Step("queue", "look"),
        Step("queue", "say"),
        Step("queue", "begin", is_fair=False),
        Step("queue", "cancel", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {
        "send_window.room": "coordinator",
        "receive_window.reading": "wire",
    }

    events: int
    large: int
    bytes_large: int
    said: int
    network: int
    unconfirmed_bytes_max: int
    waiting_bytes_max: int
    waiting_messages_max: int
    K: int
    F: int

    send_window: AttemptsSendWindow = machines(AttemptsSendWindow)
    receive_window: ConnectionsWindow = machines(ConnectionsWindow)
    coordinator: FloodingCoordinator = machines(FloodingCoordinator)
    task: FloodingTask = machines(FloodingTask)
    wire: FloodedWire = machines(FloodedWire)
    queue: FloodedQueue = machines(FloodedQueue)

    @always("no more than the bound is unconfirmed, or one event that is larger")
    def bounds_what_is_sent(self) -> bool:
        return (
            self.coordinator.sent - self.coordinator.over <= self.unconfirmed_bytes_max
            or self.coordinator.unconfirmed == 1
        )

    @always("no more than the bound waits for the queue, and what one read adds")
    def bounds_what_waits(self) -> bool:
        return self.queue.waiting.size() <= self.waiting_messages_max + 2 and (
            self.task.state != HERE
            or self.wire.arrived_bytes <= self.wire.handled_bytes + self.waiting_bytes_max + 4
        )

    @sometimes("both directions are held up at once")
    def holds_both_up(self) -> bool:
        return self.send_window.state == AWAITED and self.receive_window.state == PAUSED

    @sometimes("a checkpoint is under way while both directions are held up")
    def takes_checkpoints_meanwhile(self) -> bool:
        return self.holds_both_up() and self.queue.is_pending

    @sometimes("an event that is larger than the bound is sent")
    def sends_a_large_event(self) -> bool:
        return self.coordinator.sent - self.coordinator.over > self.unconfirmed_bytes_max

    def is_told(self) -> bool:
        return self.coordinator.state == READY

    def is_checkpointed(self) -> bool:
        return not self.queue.is_pending

    def is_read(self) -> bool:
        return self.receive_window.state != PAUSED or self.task.state != HERE

    @leads_to("a sender that was refused is told when there is room", then="is_told")
    def is_refused(self) -> bool:
        return self.coordinator.state != READY

    @leads_to("a checkpoint completes, unless its attempt fails", then="is_checkpointed")
    def is_checkpointing(self) -> bool:
        return self.queue.is_pending

    @leads_to("a connection that is not read is read again", then="is_read")
    def is_not_read(self) -> bool:
        return not self.is_read()

    @terminal("all is sent, said and handled, or the job is over; no sender waits")
    def is_at_rest(self) -> bool:
        return (
            self.coordinator.state == READY
            and self.queue.state == AT_REST
            and (
                self.queue.is_over
                or (
                    self.task.handled == self.events
                    and self.queue.heard == self.said
                    and self.coordinator.unconfirmed == 0
                )
            )
        )
