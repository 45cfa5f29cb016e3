"""The driver's threads between a coordinator and a task that say as much as they may: the queue's and
the wire's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import ANY, STAY, Bool, Channel, Fifo, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.closed.surroundings.flooding import (
    AT_REST,
    BARRIER,
    HERE,
    SAID,
)
from epochgate.models.receive_window import READING, ReceiveWindow

if TYPE_CHECKING:
    from epochgate.models.closed.flooding import FloodedTask

LOOKING, LOOKING_AGAIN, SAYING = "looking", "looking_again", "saying"


class ConnectionsWindow(ReceiveWindow):
    """The machine of each connection, renewed with it."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *ReceiveWindow.ROWS,
        Row("replaced", ANY, READING, None, None, "the next process has a connection of its own"),
    )
    # fmt: on


class FloodedWire(Environment):
    """The wire's thread, which reads from the connection: port `reading` of the receive window.

    What the operator says has two bytes, the rest one.
    """

    STATES = (AT_REST, LOOKING, LOOKING_AGAIN)
    INITIAL = AT_REST

    system: FloodedTask

    arrived_bytes: int = Int("arrived_bytes")
    arrived: int = Int("arrived")
    handled_bytes: int = Int("arrived_bytes")
    handled: int = Int("arrived")
    """What the queue has handled, which its thread writes."""
    seen_bytes: int = Int("arrived_bytes")
    seen: int = Int("arrived")
    """What the queue had handled when the last message was counted."""
    is_paused: bool = Bool()
    is_watched: bool = Bool()
    watched_bytes: int = Int("arrived_bytes")
    watched: int = Int("arrived")
    is_called: bool = Bool()
    """The queue's thread has asked this one to look."""
    has_read_rest: bool = Bool()

    read: Trigger
    read_rest: Trigger
    count: Trigger
    look_again: Trigger
    called: Trigger
    renew: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("read",       AT_REST,       LOOKING,       "may_read",
            "begin_read, pass_on",              "a message has arrived"),
        Row("count",      LOOKING,       LOOKING_AGAIN, None,
            "say_received",                     "more may be handled by now"),
        Row("read_rest",  LOOKING_AGAIN, LOOKING,       "has_rest and is_due",
            "say_handled, pass_rest_on",        "another message had been received with the first"),
        Row("read_rest",  LOOKING_AGAIN, LOOKING,       "has_rest and not is_due",
            "pass_rest_on",                     "another message had been received with the first"),
        Row("look_again", LOOKING_AGAIN, AT_REST,       "is_due",
            "say_handled",                      "it may have been handled before it was watched for"),
        Row("look_again", LOOKING_AGAIN, AT_REST,       "not is_due",
            None,                               "the queue's thread is going to say so"),
        Row("called",     AT_REST,       STAY,          "is_asked and is_due",
            "hear_call, say_handled",           "so much is handled as was watched for"),
        Row("called",     AT_REST,       STAY,          "is_asked and not is_due",
            "hear_call",                        "this thread has seen it already"),
        Row("renew",      AT_REST,       STAY,          None,
            "begin_again",                      "the next process has a connection of its own"),
    )
    # fmt: on

    def may_read(self) -> bool:
        return not self.is_paused and not self.system.task.up.empty()

    def has_rest(self) -> bool:
        return not self.has_read_rest and not self.system.task.up.empty()

    def is_asked(self) -> bool:
        return self.is_called

    def is_due(self) -> bool:
        return (
            self.is_watched
            and self.handled_bytes >= self.watched_bytes
            and self.handled >= self.watched
        )

    def begin_read(self) -> None:
        self.has_read_rest = False

    def pass_rest_on(self) -> None:
        self.has_read_rest = True
        self.pass_on()

    def pass_on(self) -> None:
        message = self.system.task.up.pop()
        self.arrived_bytes += 2 if message == SAID else 1
        self.arrived += 1
        self.seen_bytes = self.handled_bytes
        self.seen = self.handled
        self.system.queue.waiting.push(message)

    def say_received(self) -> None:
        self.system.receive_window.received(
            self.arrived_bytes, self.arrived, self.seen_bytes, self.seen
        )
        self.seen_bytes = 0
        self.seen = 0

    def say_handled(self) -> None:
        self.is_watched = False
        self.watched_bytes = 0
        self.watched = 0
        self.system.receive_window.handled(
            self.arrived_bytes, self.arrived, self.handled_bytes, self.handled
        )

    def hear_call(self) -> None:
        self.is_called = False

    def begin_again(self) -> None:
        self.arrived_bytes = 0
        self.arrived = 0
        self.handled_bytes = 0
        self.handled = 0
        self.is_paused = False
        self.is_watched = False
        self.watched_bytes = 0
        self.watched = 0
        self.is_called = False
        self.has_read_rest = False
        self.system.receive_window.replaced()

    # port `reading` of the receive window

    def pause(self) -> None:
        assert not self.is_paused, "a connection that is not read is not paused"
        self.is_paused = True

    def watch(self, until_bytes: int, until_messages: int) -> None:
        half_bytes = self.system.waiting_bytes_max // 2
        half = self.system.waiting_messages_max // 2
        bytes_due = self.arrived_bytes if self.arrived_bytes > half_bytes else half_bytes
        messages_due = self.arrived if self.arrived > half else half
        assert until_bytes + half_bytes == bytes_due, "half of the bytes may wait"
        assert until_messages + half == messages_due, "half of the messages may wait"
        self.is_watched = True
        self.watched_bytes = until_bytes
        self.watched = until_messages

    def resume(self) -> None:
        assert self.is_paused, "a connection that is read is not resumed"
        self.is_paused = False


class FloodedQueue(Environment):
    """The queue's thread, which handles what tasks say, takes checkpoints, and ends the job."""

    STATES = (AT_REST, LOOKING, SAYING)
    INITIAL = AT_REST

    system: FloodedTask

    waiting: Fifo[int] = Channel("words", "queue_length")
    heard: int = Int("said")
    checkpoints: int = Int("K")
    is_pending: bool = Bool()
    """A checkpoint is under way."""
    failures: int = Int("F")
    is_over: bool = Bool()

    handle: Trigger
    look: Trigger
    say: Trigger
    begin: Trigger
    cancel: Trigger
    attempt_lost: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("handle",       AT_REST, LOOKING, "has_message",
            "handle_one",                     "the oldest message is handled"),
        Row("look",         LOOKING, SAYING,  "is_due",
            "call_wire",                      "as much is over as is watched for"),
        Row("look",         LOOKING, AT_REST, "not is_due",
            "call_wire",                      "nothing is to be said to the send window"),
        Row("say",          SAYING,  AT_REST, None,
            "say_freed",                      "another thread may have said so meanwhile"),
        Row("begin",        AT_REST, STAY,    "may_begin",
            "send_barrier",                   "the interval is over"),
        Row("cancel",       AT_REST, STAY,    "is_on",
            "end",                            "a user cancels the job, before all that waits"),
        Row("attempt_lost", ANY,     LOOKING, None,
            "give_up",                        "the events of the attempt are lost, its messages dropped"),
    )
    # fmt: on

    def has_message(self) -> bool:
        return not self.waiting.empty()

    def may_begin(self) -> bool:
        return (
            self.checkpoints < self.system.K
            and not self.is_pending
            and self.system.task.state == HERE
        )

    def is_on(self) -> bool:
        return not self.is_over

    def handle_one(self) -> None:
        message = self.waiting.pop()
        self.system.wire.handled_bytes += 2 if message == SAID else 1
        self.system.wire.handled += 1
        if message == SAID:
            self.heard += 1
        elif message > self.system.events:
            self.is_pending = False
        else:
            self.system.coordinator.confirm(message)

    def is_due(self) -> bool:
        return self.system.coordinator.is_due()

    def say_freed(self) -> None:
        self.system.coordinator.say_freed()

    def call_wire(self) -> None:
        if self.system.wire.is_due():
            self.system.wire.is_called = True

    def send_barrier(self) -> None:
        self.checkpoints += 1
        self.is_pending = True
        self.system.task.down.push(BARRIER)

    def end(self) -> None:
        self.is_over = True
        self.system.task.leave()

    def lose_attempt(self) -> None:
        self.attempt_lost()

    def give_up(self) -> None:
        self.waiting.clear()
        self.heard = 0
        self.is_pending = False
        self.system.coordinator.lose_all()
