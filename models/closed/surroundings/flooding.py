"""The surroundings of one attempt's two windows: a coordinator and a task that say as much as they
may, and a network that holds little; the driver's threads between them are in `flooded_driver`.

Each thread is a machine, and a thread that reads what another one writes does it in a step of its
own, so that the other goes on between what it has seen and what comes of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from epochgate.fsm import STAY, Bool, Channel, Fifo, Int, Row, Trigger
from epochgate.fsm.closed import Environment
from epochgate.models.send_window import QUIET, SendWindow

if TYPE_CHECKING:
    from epochgate.models.closed.flooding import FloodedTask

READY, REFUSED, ASKING, WAITING = "ready", "refused", "asking", "waiting"
AT_REST = "at_rest"
HERE, GONE = "here", "gone"
SAID, BARRIER = 0, 0
"""On the way up the operator's own message, on the way down the barrier; events have numbers."""


class AttemptsSendWindow(SendWindow):
    """The machine of each attempt's gateway, renewed with it."""

    replaced: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *SendWindow.ROWS,
        Row("replaced", QUIET, STAY, None, None, "the next attempt has a gateway of its own"),
    )
    # fmt: on


class FloodingCoordinator(Environment):
    """A coordinator that sends on threads of its own until it is refused, and again when it is
    told: port `room` of the send window.

    One event is larger than the bound. While one thread waits for room, another sends what fits.
    """

    STATES = (READY, REFUSED, ASKING, WAITING)
    INITIAL = READY

    system: FloodedTask

    next_event: int = Int("next_event", 1)
    sent: int = Int("bytes")
    granted: int = Int("granted")
    """The bytes up to which it may send without asking; 0 for the bound."""
    over: int = Int("bytes")
    """The bytes of events whose futures are done; the queue's thread writes it."""
    seen: int = Int("bytes")
    """What was over when it asked for room."""
    is_watched: bool = Bool()
    watched: int = Int("bytes")
    is_looking: bool = Bool()
    """A thread that has asked for room is about to look whether there is some by now."""
    unconfirmed: int = Int("events")
    """Events whose futures are pending."""
    refused_bytes: int = Int("event_bytes")
    """The most that one of the events weighs that were refused since it was told last."""

    send: Trigger
    send_besides: Trigger
    refused: Trigger
    look: Trigger
    want: Trigger
    want_besides: Trigger
    look_again: Trigger
    told: Trigger
    renew: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("send",         READY,   STAY,    "has_more and is_granted",
            "put",                            "the event is within what is granted"),
        Row("send",         READY,   STAY,    "has_more and not is_granted",
            "ask",                            "the window decides"),
        Row("send_besides", WAITING, STAY,    "has_more",
            "ask",                            "another thread sends, while one waits"),
        Row("refused",      READY,   REFUSED, None,
            None,                             "nothing was sent"),
        Row("refused",      WAITING, STAY,    None,
            None,                             "the other thread sends nothing"),
        Row("look",         REFUSED, ASKING,  None,
            "note_over",                      "it asks for room: what is over is read"),
        Row("want",         ASKING,  WAITING, None,
            "want_room",                      "more may be over by now"),
        Row("want_besides", WAITING, STAY,    None,
            "want_room_too",                  "another thread waits for room as well"),
        Row("look_again",   (READY, REFUSED, WAITING), STAY, "is_looking_when_due",
            "look_no_more, say_freed",        "it may have been over before it was watched for"),
        Row("told",         WAITING, READY,   None,
            None,                             "the future of who waits is done"),
        Row("renew",        READY,   STAY,    None,
            "begin_again",                    "the next attempt has a gateway of its own"),
    )
    # fmt: on

    def size(self) -> int:
        return self.system.bytes_large if self.next_event == self.system.large else 1

    def has_more(self) -> bool:
        return self.next_event <= self.system.events and self.system.task.state == HERE

    def is_granted(self) -> bool:
        granted = self.granted if self.granted > 0 else self.system.unconfirmed_bytes_max
        return self.sent + self.size() <= granted

    def is_due(self) -> bool:
        return self.is_watched and self.over >= self.watched

    def is_looking_when_due(self) -> bool:
        return self.is_looking and self.is_due()

    def put(self) -> None:
        self.sent += self.size()
        self.unconfirmed += 1
        self.system.task.down.push(self.next_event)
        self.next_event += 1

    def ask(self) -> None:
        self.system.send_window.send(self.size(), self.sent, self.over)

    def note_over(self) -> None:
        self.seen = self.over

    def look_no_more(self) -> None:
        self.is_looking = False

    def want_room(self) -> None:
        self.is_looking = True
        self.system.send_window.want(self.sent, self.seen)
        self.seen = 0

    def want_room_too(self) -> None:
        self.is_looking = True
        self.system.send_window.want(self.sent, self.over)

    def say_freed(self) -> None:
        self.is_watched = False
        self.watched = 0
        self.system.send_window.freed(self.sent, self.over)

    def confirm(self, event: int) -> None:
        self.over += self.system.bytes_large if event == self.system.large else 1
        self.unconfirmed -= 1

    def lose_all(self) -> None:
        self.over = self.sent
        self.unconfirmed = 0

    def begin_again(self) -> None:
        self.next_event = 1
        self.sent = 0
        self.granted = 0
        self.over = 0
        self.is_watched = False
        self.watched = 0
        self.is_looking = False
        self.system.send_window.replaced()

    # port `room` of the send window

    def allow(self, size: int, until: int) -> None:
        assert size == self.size(), "what may be sent is the event that was asked for"
        assert until >= self.sent + size, "what may be sent is within what is granted"
        self.granted = until
        self.put()

    def refuse(self, size: int, unconfirmed: int) -> None:
        assert size == self.size(), "what is refused is the event that was asked for"
        assert unconfirmed > 0, "a sender is refused only where something waits"
        assert unconfirmed == self.sent - self.over, "the error says how much waits"
        if size > self.refused_bytes:
            self.refused_bytes = size
        self.refused()

    def is_room(self, over: int) -> bool:
        """Return whether half of the bound is free, and what was refused would be sent."""
        left = self.sent - over
        bound = self.system.unconfirmed_bytes_max
        return left == 0 or (2 * left <= bound and left + self.refused_bytes <= bound)

    def watch(self, until: int) -> None:
        assert self.is_room(until), "a sender is told when what was refused would be sent"
        assert not self.is_room(until - 1), "a sender is told once what was refused would be sent"
        self.is_watched = True
        self.watched = until

    def tell(self) -> None:
        assert self.is_room(self.over), "a sender is told when what was refused would be sent"
        self.refused_bytes = 0
        self.told()


class FloodingTask(Environment):
    """A process that handles events, says as much as it may, and waits where the network is full.

    Messages on the way up: confirmations by the number of the event, the acknowledgement of a
    barrier, and what the operator says.
    """

    STATES = (HERE, GONE)
    INITIAL = HERE

    system: FloodedTask

    down: Fifo[int] = Channel("events", "down_length")
    up: Fifo[int] = Channel("words", "network")
    handled: int = Int("events")
    said: int = Int("said")

    take: Trigger
    say: Trigger
    die: Trigger
    restart: Trigger
    leave: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("take",    HERE, STAY, "has_event and can_say",
            "handle",                       "an event or a barrier has arrived, and is answered"),
        Row("say",     HERE, STAY, "has_words and can_say",
            "say_more",                     "the operator has something to say"),
        Row("die",     HERE, GONE, "may_fail",
            "spend_failure, lose",          "the process is gone, with all that is on its wire"),
        Row("restart", GONE, HERE, "may_restart",
            "renew",                        "the next attempt begins; what waited for the last is over"),
        Row("leave",   HERE, GONE, None,
            "lose",                         "the job is over"),
        Row("leave",   GONE, STAY, None,
            None,                           "the job is over, and the process gone before"),
    )
    # fmt: on

    def has_event(self) -> bool:
        return not self.down.empty()

    def can_say(self) -> bool:
        return self.up.size() < self.system.network

    def has_words(self) -> bool:
        return self.said < self.system.said

    def may_fail(self) -> bool:
        return self.system.queue.failures < self.system.F

    def may_restart(self) -> bool:
        return (
            not self.system.queue.is_over
            and self.system.coordinator.state == READY
            and self.system.queue.state == AT_REST
            and self.system.wire.state == AT_REST
        )

    def handle(self) -> None:
        event = self.down.pop()
        if event == BARRIER:
            self.up.push(self.system.events + 1)
        else:
            assert event == self.handled + 1, "events arrive once, in the order of the sends"
            self.handled = event
            self.up.push(event)

    def say_more(self) -> None:
        self.said += 1
        self.up.push(SAID)

    def spend_failure(self) -> None:
        self.system.queue.failures += 1

    def lose(self) -> None:
        self.down.clear()
        self.up.clear()
        self.system.queue.lose_attempt()

    def renew(self) -> None:
        self.handled = 0
        self.said = 0
        self.system.coordinator.renew()
        self.system.wire.renew()
