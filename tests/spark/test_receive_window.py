"""The words of tasks that come faster than the driver takes them wait in the network, not on the
driver.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from epochgate.spark.receive_window import WAITING_BYTES_MAX, WAITING_MESSAGES_MAX, ReceiveWindow
from epochgate.spark.wire import ChannelClosed, Connection, TaskChannel
from tests.spark.slow_inbox import SlowInbox
from tests.spark.wire.harness import Wire, eventually, running_wire


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
