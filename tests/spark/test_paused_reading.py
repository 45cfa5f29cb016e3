"""The times at which a connection is not read, and is read again: both threads of its window, by
hand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from epochgate.spark.receive_window import (
    MARK_BYTES,
    MARK_MESSAGES,
    WAITING_BYTES_MAX,
    WAITING_MESSAGES_MAX,
    ReceiveWindow,
)
from tests.spark.slow_inbox import SlowInbox


class Counted:
    """A connection whose bytes have been decoded."""

    def __init__(self) -> None:
        self.decoder, self.delivered_bytes = self, 0


class Paused:
    """The reader by hand: the connection, and the calls that wait for the wire's thread."""

    def __init__(self) -> None:
        self.is_paused = False
        self.calls: deque[Callable[[], None]] = deque()

    def pause(self, connection: Any) -> None:
        self.is_paused = True

    def resume(self, connection: Any) -> None:
        self.is_paused = False

    def call(self, function: Callable[[], None]) -> None:
        self.calls.append(function)


class ByHand:
    """A window whose two threads do what the test says."""

    def __init__(self) -> None:
        self.reader, self.connection, self.inbox = Paused(), Counted(), SlowInbox()
        connection: Any = self.connection
        self.window = ReceiveWindow(self.reader, connection)

    def receive(self, message_bytes: int, messages: int = 1) -> bool:
        """Return whether the connection is read after these more bytes and messages."""
        self.connection.delivered_bytes += message_bytes
        self.window.received(self.inbox, messages)
        return not self.reader.is_paused

    def handle(self, marks: int = 1) -> bool:
        """Return whether the connection is read after as much more was handled as `marks` stand
        for.
        """
        for _ in range(marks):
            self.inbox.marks.popleft()()
        while self.reader.calls:
            self.reader.calls.popleft()()
        return not self.reader.is_paused


def test_more_bytes_than_the_bound_pause_a_connection_until_half_of_them_are_handled() -> None:
    by_hand = ByHand()
    quarter = WAITING_BYTES_MAX // 4
    assert [by_hand.receive(quarter) for _ in range(4)] == [True] * 4
    assert not by_hand.receive(MARK_BYTES)
    assert not by_hand.handle(2)
    assert by_hand.handle()
    assert by_hand.receive(2 * quarter)


def test_more_messages_than_the_bound_pause_a_connection_until_half_of_them_are_handled() -> None:
    by_hand = ByHand()
    quarter = WAITING_MESSAGES_MAX // 4
    assert [by_hand.receive(0, quarter) for _ in range(4)] == [True] * 4
    assert not by_hand.receive(0, MARK_MESSAGES)
    assert not by_hand.handle(2)
    assert by_hand.handle()


def test_what_was_received_with_the_message_that_was_too_much_is_waited_for_too() -> None:
    by_hand = ByHand()
    assert not by_hand.receive(WAITING_BYTES_MAX + 1)
    assert not by_hand.receive(WAITING_BYTES_MAX)
    assert not by_hand.handle()
    assert by_hand.handle()
    assert not by_hand.receive(0, WAITING_MESSAGES_MAX + 1)
    assert not by_hand.receive(0, WAITING_MESSAGES_MAX)
    assert not by_hand.handle()
    assert by_hand.handle()


class Hasty(SlowInbox):
    """A queue that has handled everything before its caller goes on."""

    def when_handled(self, call: Callable[[], None]) -> None:
        call()


def test_a_connection_whose_messages_are_handled_at_once_is_read() -> None:
    by_hand = ByHand()
    by_hand.inbox = Hasty()
    assert by_hand.receive(2 * WAITING_BYTES_MAX)


class Crossing(Paused):
    """The queue handles everything while the connection is being paused."""

    def __init__(self, inbox: SlowInbox) -> None:
        super().__init__()
        self._inbox = inbox

    def pause(self, connection: Any) -> None:
        super().pause(connection)
        self._inbox.handle()


def test_what_is_handled_while_a_connection_is_being_paused_is_not_overlooked() -> None:
    by_hand = ByHand()
    by_hand.reader = Crossing(by_hand.inbox)
    connection: Any = by_hand.connection
    by_hand.window = ReceiveWindow(by_hand.reader, connection)
    assert by_hand.receive(2 * WAITING_BYTES_MAX)
    assert not by_hand.reader.calls


def test_a_connection_is_read_again_when_exactly_half_of_a_bound_waits() -> None:
    half, by_bytes, by_messages = WAITING_BYTES_MAX // 2, ByHand(), ByHand()
    assert [by_bytes.receive(size) for size in (MARK_BYTES, half, half)] == [True, True, False]
    assert not by_bytes.handle()
    half = WAITING_MESSAGES_MAX // 2
    assert [by_messages.receive(0, n) for n in (MARK_MESSAGES, half, half)] == [True, True, False]
    assert by_messages.handle(2)
    assert by_bytes.handle()
