"""What tasks say faster than the driver takes it waits in the network, not on the driver."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from epochgate.runtime.api.transport import TaskInbox
from epochgate.spark.receive_window import (
    MARK_BYTES,
    MARK_MESSAGES,
    WAITING_BYTES_MAX,
    WAITING_MESSAGES_MAX,
    ReceiveWindow,
)
from epochgate.spark.wire import ChannelClosed, Connection, TaskChannel
from tests.spark.wire.harness import Wire, eventually, running_wire


class SlowInbox(TaskInbox):
    """A queue that handles nothing until it is told to."""

    def __init__(self) -> None:
        self.received_count = 0
        self.marks: deque[Callable[[], None]] = deque()

    def connected(self, subtask: int, identity: int) -> None: ...

    def received(self, subtask: int, identity: int, messages: list[Any]) -> None:
        self.received_count += len(messages)

    def when_handled(self, call: Callable[[], None]) -> None:
        self.marks.append(call)

    def lost(self, subtask: int, identity: int, reason: str) -> None: ...

    def handle(self) -> int:
        """Handle what was received; how many messages were."""
        while self.marks:
            self.marks.popleft()()
        return self.received_count


class Throttled:
    """Listens to a wire as the transport does."""

    def __init__(self, inbox: SlowInbox) -> None:
        self._inbox = inbox
        self._windows: dict[Connection, ReceiveWindow] = {}
        self.wire: Wire

    def connected(self, connection: Connection, hello: dict[str, Any]) -> None:
        self._windows[connection] = ReceiveWindow(self.wire.server, connection)
        self.wire.recorder.connected(connection, hello)

    def received(self, connection: Connection, messages: list[list[Any]]) -> None:
        self._inbox.received(0, 0, messages)
        self._windows[connection].received(self._inbox, len(messages))

    def lost(self, connection: Connection, reason: str) -> None:
        self.wire.recorder.lost(connection, reason)


@contextmanager
def throttled(inbox: SlowInbox) -> Iterator[tuple[Wire, Connection, TaskChannel]]:
    listener = Throttled(inbox)
    with running_wire(listener=listener, heartbeat_timeout_s=1.0) as wire:
        listener.wire = wire
        with wire.pair(silence_timeout_s=1.0) as (connection, channel):
            yield wire, connection, channel


@pytest.mark.parametrize(
    ("said", "count", "most"),
    [
        (["event", 0, bytes(100_000)], 600, WAITING_BYTES_MAX // 100_000 + 8),
        (["event", 0, bytes(90)], 300_000, WAITING_MESSAGES_MAX + 256 * 1024 // 90),
    ],
    ids=["large", "small"],
)
def test_a_task_waits_in_its_send_while_the_driver_is_behind_and_is_told_and_kept(
    said: list[Any], count: int, most: int
) -> None:
    inbox = SlowInbox()
    with throttled(inbox) as (wire, connection, channel):

        def send_all() -> None:
            for _ in range(count // 10):
                channel.send_many([said] * 10)

        sender = threading.Thread(target=send_all)
        sender.start()
        # Longer than either side's limit of silence.
        started_s, told = time.monotonic(), 0
        while time.monotonic() - started_s < 2.5:
            connection.send(["barrier", told + 1])
            message = wire_message(channel)
            told = max(told, message)
        assert told > 1
        assert inbox.received_count <= most
        assert sender.is_alive()
        assert eventually(lambda: inbox.handle() == count)
        sender.join()
        assert wire.recorder.nothing_was_lost()


def wire_message(channel: TaskChannel) -> int:
    messages = channel.receive(0.5)
    return int(messages[-1][1]) if messages else 0


def test_a_connection_that_is_lost_while_it_is_not_read_is_told_as_lost() -> None:
    inbox = SlowInbox()
    with throttled(inbox) as (wire, connection, channel):
        sender = threading.Thread(target=lambda: send_until_closed(channel))
        sender.start()
        assert eventually(lambda: inbox.received_count >= WAITING_BYTES_MAX // 100_000)
        connection.close("the job is over")
        assert wire.recorder.next_loss()[1] == "the job is over"
        sender.join()
        inbox.handle()


def send_until_closed(channel: TaskChannel) -> None:
    with suppress(ChannelClosed):
        while True:
            channel.send(["event", 0, bytes(100_000)])


class Counted:
    """A connection whose bytes have been decoded."""

    def __init__(self) -> None:
        self.decoder, self.delivered_bytes = self, 0


class Paused:
    """What reads, by hand: the connection, and the calls that wait for the wire's thread."""

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
        """Whether the connection is read after these more bytes and messages."""
        self.connection.delivered_bytes += message_bytes
        self.window.received(self.inbox, messages)
        return not self.reader.is_paused

    def handle(self, marks: int = 1) -> bool:
        """Whether the connection is read after as much more was handled as `marks` stand for."""
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
