"""Closed systems whose claims are shown by induction, for ranges that no search can exhaust.

Each is about machines that run in production. What a claim rests on is claimed beside it, holds in
every reachable state too, and is shown with it.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, sometimes
from epochgate.models.closed.residing import FAILURES_HERE_MAX, ResidentTask
from epochgate.models.closed.surroundings.residing import AWAY, GONE, HERE, REPLACED
from epochgate.models.resident import ATTEMPTING, CLEARING, CREATED, FINISHED, LEFT
from epochgate.models.send_window import AWAITED, SendWindow

MILLION = 1 << 20


class AnyResidents(ResidentTask):
    """The processes of a subtask, with a million attempts each, and a million failures."""

    CONSTANTS: ClassVar[dict[str, int]] = {"tasks": 3, "attempts": MILLION, "F": MILLION}

    @always("a process is there while its machine has an attempt, or clears up behind one")
    def is_there(self) -> bool:
        return all(
            (self.process[t].state == AWAY) == (t >= self.driver.launched)
            and (self.process[t].state == AWAY) == (self.resident[t].state == CREATED)
            and (self.process[t].state == REPLACED) == (self.resident[t].state == LEFT)
            and (self.process[t].state != HERE or self.is_at_work(t))
            and (self.resident[t].state != FINISHED or self.process[t].state == GONE)
            and self.process[t].is_clearing
            == (self.process[t].state == HERE and self.resident[t].state == CLEARING)
            for t in range(self.tasks)
        )

    def is_at_work(self, task: int) -> bool:
        return self.resident[task].state == ATTEMPTING or self.resident[task].state == CLEARING

    @always("a process with an attempt speaks, and none that is gone, unless it was told to finish")
    def speaks_alone(self) -> bool:
        return all(
            (
                self.process[t].state != HERE
                or self.resident[t].state != ATTEMPTING
                or (
                    self.driver.speaking == self.process[t].identity
                    and not self.driver.has_finished
                )
            )
            and (
                self.process[t].state != GONE
                or self.resident[t].state == FINISHED
                or self.driver.speaking != self.process[t].identity
                or self.driver.speaking == 0
            )
            and (
                self.resident[t].state != FINISHED or self.process[t].identity == self.driver.newest
            )
            for t in range(self.tasks)
        )

    @always("attempts are numbered through, process after process")
    def numbers_attempts(self) -> bool:
        return all(
            (
                self.process[t].state == AWAY
                and self.process[t].identity == 0
                and self.process[t].failures == 0
                and self.resident[t].number == 0
            )
            or (
                self.process[t].state != AWAY
                and self.resident[t].number > 0
                and self.process[t].identity == t * self.attempts + self.resident[t].number
                and self.process[t].identity <= self.driver.newest
            )
            for t in range(self.tasks)
        )

    @always("a process knows of its failures what its machine knows")
    def counts_failures(self) -> bool:
        return all(
            self.resident[t].state == LEFT
            or self.resident[t].state == FINISHED
            or (
                (self.process[t].failures > 0)
                == (self.resident[t].has_failed or self.resident[t].is_doubted)
                and (self.process[t].failures >= FAILURES_HERE_MAX)
                == (self.resident[t].has_failed and self.resident[t].is_doubted)
            )
            for t in range(self.tasks)
        )

    @always("an attempt that failed by itself is cleared up behind at once")
    def clears_up(self) -> bool:
        return all(
            self.resident[t].state != ATTEMPTING or not self.resident[t].has_failed
            for t in range(self.tasks)
        )


READY, WAITING = "ready", "waiting"


class AnySender(Environment):
    """Sends events of any sizes, of which a subtask confirms any number: port `room`.

    Bytes are counted from the attempt's first event. An event that is larger than the bound is on
    the wire by itself, from `large_from` to `large_to`.
    """

    STATES, INITIAL = (READY, WAITING), READY

    system: AnyWindow

    size: int = Int("event_bytes", 1, low=1)
    """Of the next event."""
    step: int = Int("bytes", 1, low=1)
    """How much the subtask confirms next."""
    sent: int = Int("bytes")
    over: int = Int("bytes")
    granted: int = Int("granted")
    """0: what is granted to begin with."""
    large_from: int = Int("bytes")
    large_to: int = Int("bytes")
    watched: int = Int("bytes")
    """The sender is told once so much is over."""
    refused_bytes: int = Int("event_bytes")
    """The most that one of the events weighs that were refused since it was told last."""

    grow: Trigger
    shrink: Trigger
    take_longer: Trigger
    be_quick: Trigger
    send: Trigger
    want: Trigger
    confirm: Trigger
    look: Trigger
    told: Trigger

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("grow",        (READY, WAITING), STAY,    "may_grow",
            "add_byte",                   "the next event is larger"),
        Row("shrink",      (READY, WAITING), STAY,    "is_large",
            "take_byte",                  "the next event is the smallest"),
        Row("take_longer", (READY, WAITING), STAY,    "may_take_longer",
            "add_step",                   "more is confirmed at once"),
        Row("be_quick",    (READY, WAITING), STAY,    "takes_long",
            "take_step",                  "little is confirmed at once"),
        Row("send",        (READY, WAITING), STAY,    "has_more and is_granted",
            "put",                        "the event is within what is granted"),
        Row("send",        (READY, WAITING), STAY,    "has_more and not is_granted",
            "ask",                        "the window decides"),
        Row("want",        READY,            WAITING, None,
            "want_room",                  "it waits for room"),
        Row("confirm",     (READY, WAITING), STAY,    "has_unconfirmed",
            "count_over",                 "the subtask has handled events"),
        Row("look",        WAITING,          STAY,    "is_due",
            "say_freed",                  "what was watched for is over"),
        Row("told",        WAITING,          READY,   None,
            None,                         "there is room"),
    )
    # fmt: on

    def may_grow(self) -> bool:
        return self.size < self.system.event_bytes

    def is_large(self) -> bool:
        return self.size > 1

    def may_take_longer(self) -> bool:
        return self.step < self.system.bytes

    def takes_long(self) -> bool:
        return self.step > 1

    def has_more(self) -> bool:
        return self.sent + self.size <= self.system.bytes

    def until(self) -> int:
        """Count the bytes that are granted."""
        return self.granted if self.granted > 0 else self.system.unconfirmed_bytes_max

    def is_granted(self) -> bool:
        return self.sent + self.size <= self.until()

    def has_unconfirmed(self) -> bool:
        """Return whether there is so much to confirm, and none of it is a part of an event."""
        return self.over + self.step <= self.sent and (
            self.over + self.step <= self.large_from or self.over + self.step >= self.large_to
        )

    def is_due(self) -> bool:
        return self.over >= self.watched

    def add_byte(self) -> None:
        self.size += 1

    def take_byte(self) -> None:
        self.size = 1

    def add_step(self) -> None:
        self.step += 1

    def take_step(self) -> None:
        self.step = 1

    def put(self) -> None:
        if self.size > self.system.unconfirmed_bytes_max:
            self.large_from = self.sent
            self.large_to = self.sent + self.size
        self.sent += self.size

    def ask(self) -> None:
        self.system.send_window.send(self.size, self.sent, self.over)

    def want_room(self) -> None:
        self.system.send_window.want(self.sent, self.over)

    def count_over(self) -> None:
        self.over += self.step

    def say_freed(self) -> None:
        self.system.send_window.freed(self.sent, self.over)

    # port `room` of the send window

    def allow(self, size: int, until: int) -> None:
        assert size == self.size, "what may be sent is the event that was asked for"
        assert until >= self.sent + size, "what may be sent is within what is granted"
        self.granted = until
        self.put()

    def refuse(self, size: int, unconfirmed: int) -> None:
        assert unconfirmed > 0, "a sender is refused only where something waits"
        assert unconfirmed == self.sent - self.over, "the error says how much waits"
        if size > self.refused_bytes:
            self.refused_bytes = size

    def is_room(self, over: int) -> bool:
        """Return whether half of the bound is free, and what was refused would be sent."""
        left = self.sent - over
        bound = self.system.unconfirmed_bytes_max
        return left == 0 or (2 * left <= bound and left + self.refused_bytes <= bound)

    def watch(self, until: int) -> None:
        assert self.is_room(until), "a sender is told when what was refused would be sent"
        assert not self.is_room(until - 1), "a sender is told once what was refused would be sent"
        self.watched = until

    def tell(self) -> None:
        assert self.is_room(self.over), "a sender is told when what was refused would be sent"
        self.refused_bytes = 0
        self.told()


class AnyWindow(ClosedSystem):
    """The send window: events of up to 4 GiB, a bound of 64 MiB, 2**40 bytes in all."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        "event_bytes": 1 << 32,
        "unconfirmed_bytes_max": 1 << 26,
        "bytes": 1 << 40,
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        "send_window.freed: those who waited were told": "one sender waits here, not several",
    }
    DERIVED: ClassVar[dict[str, str]] = {"granted": "bytes + unconfirmed_bytes_max + event_bytes"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("sender", "grow", is_fair=False),
        Step("sender", "shrink", is_fair=False),
        Step("sender", "take_longer", is_fair=False),
        Step("sender", "be_quick", is_fair=False),
        Step("sender", "send", is_fair=False),
        Step("sender", "want", is_fair=False),
        Step("sender", "confirm", is_fair=False),
        Step("sender", "look", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"send_window.room": "sender"}

    event_bytes: int
    unconfirmed_bytes_max: int
    bytes: int

    send_window: SendWindow = machines(SendWindow)
    sender: AnySender = machines(AnySender)

    @always("no more than the bound is unconfirmed, or one event that is larger")
    def bounds_what_is_sent(self) -> bool:
        return (
            self.sender.sent <= self.sender.over + self.unconfirmed_bytes_max or self.is_one_event()
        )

    def is_one_event(self) -> bool:
        return self.sender.over == self.sender.large_from and (
            self.sender.sent == self.sender.large_to
        )

    @always("what is granted is within the bound, or up to the end of a larger event")
    def grants_within_the_bound(self) -> bool:
        return (
            self.sender.over <= self.sender.sent
            and self.sender.sent <= self.sender.until()
            and (
                self.sender.until() <= self.sender.over + self.unconfirmed_bytes_max
                or (self.is_one_event() and self.sender.until() == self.sender.sent)
            )
        )

    @always("the window knows the largest event that was refused")
    def knows_what_was_refused(self) -> bool:
        return self.sender.refused_bytes == self.send_window.refused

    @always("a sender waits exactly while the window knows that it does")
    def knows_who_waits(self) -> bool:
        return (self.sender.state == WAITING) == (self.send_window.state == AWAITED)

    @sometimes("an event that is larger than the bound is sent")
    def sends_a_large_event(self) -> bool:
        return self.sender.sent > self.sender.over + self.unconfirmed_bytes_max
