"""A channel and its connection: order, coalescing, size, thread safety, endings."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Any

import msgpack
import pytest

from epochgate.spark.wire import (
    ChannelClosed,
    Connection,
    MessageNotPlain,
    MessageTooLarge,
    TaskChannel,
)
from epochgate.spark.wire.frames import FrameDecoder, sealed_frame
from epochgate.spark.wire.sealing import FrameSeal
from tests.spark.wire.harness import (
    Recorder,
    eventually,
    read_to_the_end,
    receive_count,
    running_wire,
)

HELLO = msgpack.packb([["hello", {}]])


def send_endlessly(channel: TaskChannel) -> None:
    while True:
        channel.send(["late", bytes(1000)])


def test_hello_and_messages_arrive_as_they_were_sent() -> None:
    hello = {"subtask": 3, "run": "r", "attempt": 17, "nested": {"a": [1, None, 2.5, b"\0"]}}
    with running_wire() as wire, wire.channel(hello) as channel:
        connection = wire.recorder.next_connection()
        assert connection.hello == hello
        assert connection.peer.startswith("127.0.0.1:")
        message = ["barrier", 5, {"x": b"bytes", "y": [True, "ä"]}]
        channel.send(message)
        assert wire.recorder.next_message() == message
        assert connection.send(message)
        assert receive_count(channel, 1) == [message]


def test_receive_gives_an_empty_list_when_nothing_came_in_time() -> None:
    with running_wire() as wire, wire.pair() as (_, channel):
        assert channel.receive(0) == []
        started_s = time.monotonic()
        assert channel.receive(0.05) == []
        assert time.monotonic() - started_s >= 0.05


def test_order_is_kept_for_each_of_several_senders() -> None:
    senders, each = 6, 3000
    with running_wire() as wire, wire.pair() as (connection, channel):

        def send(sender: int) -> None:
            for number in range(0, each, 3):
                connection.send(["n", sender, number])
                connection.put(["n", sender, number + 1])
                connection.send_many([["n", sender, number + 2]])

        threads = [threading.Thread(target=send, args=(sender,)) for sender in range(senders)]
        for thread in threads:
            thread.start()
        messages = receive_count(channel, senders * each)
        for thread in threads:
            thread.join()
    for sender in range(senders):
        assert [m[2] for m in messages if m[1] == sender] == list(range(each))


def test_order_is_kept_for_each_of_several_sending_threads_of_a_task() -> None:
    senders, each = 4, 1000
    with running_wire() as wire, wire.pair(heartbeat_interval_s=0.01) as (_, channel):

        def send(sender: int) -> None:
            for number in range(each):
                channel.send(["n", sender, number])

        threads = [threading.Thread(target=send, args=(sender,)) for sender in range(senders)]
        for thread in threads:
            thread.start()
        messages = [wire.recorder.next_message() for _ in range(senders * each)]
        for thread in threads:
            thread.join()
    for sender in range(senders):
        assert [m[2] for m in messages if m[1] == sender] == list(range(each))


def test_messages_that_wait_together_travel_in_one_frame() -> None:
    with running_wire() as wire:
        sock, session = wire.authenticated()
        with sock:
            sock.sendall(sealed_frame(HELLO, FrameSeal(session.from_task)))
            connection = wire.recorder.next_connection()
            for number in range(100):
                connection.put(["n", number])
            assert connection.waiting_bytes > 0
            connection.flush()
            assert connection.waiting_bytes == 0
            from_driver = FrameDecoder(FrameSeal(session.from_driver), 1 << 20)
            from_driver.feed(sock.recv(1 << 20))
            assert from_driver.next_batch() == [["n", number] for number in range(100)]
        with wire.channel() as channel:
            channel.send_many([["n", number] for number in range(100)])
            assert [wire.recorder.next_message()[1] for _ in range(100)] == list(range(100))
            assert wire.recorder.batches == [100]


def test_what_the_listener_sends_leaves_by_itself() -> None:
    class Echo(Recorder):
        def received(self, connection: Connection, messages: list[list[Any]]) -> None:
            for message in messages:
                connection.send(message)

    with running_wire(listener=Echo()) as wire, wire.channel() as channel:
        for number in range(50):
            channel.send(["n", number])
            assert receive_count(channel, 1) == [["n", number]]


def test_sent_messages_leave_at_once_and_not_with_the_next_heartbeat() -> None:
    seldom = {
        "heartbeat_interval_s": 30.0,
        "heartbeat_timeout_s": 90.0,
        "handshake_timeout_s": 90.0,
    }
    with (
        running_wire(**seldom) as wire,
        wire.pair(heartbeat_interval_s=60.0) as (connection, channel),
    ):
        for number in range(20):
            connection.send(["n", number])
            assert channel.receive(5.0) == [["n", number]]
        connection.close("done")
        assert wire.recorder.next_loss(5.0) == (connection, "done")


def test_frames_wait_for_no_others() -> None:
    with (
        running_wire() as wire,
        wire.pair() as (connection, _),
        socket.socket(fileno=os.dup(connection.sock.fileno())) as sock,
    ):
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_messages_of_eight_megabytes_pass_both_ways() -> None:
    big = bytes(range(256)) * (8 * 4096)
    with running_wire() as wire, wire.pair() as (connection, channel):
        sender = threading.Thread(target=channel.send_many, args=([["up", big], ["up", big]],))
        sender.start()
        assert [wire.recorder.next_message() for _ in range(2)] == [["up", big], ["up", big]]
        sender.join()
        connection.send_many([["down", 1], ["down", big], ["down", 2], ["down", big]])
        assert receive_count(channel, 4) == [["down", 1], ["down", big], ["down", 2], ["down", big]]


def test_a_message_over_the_limit_is_refused_at_the_sender_and_harms_nothing() -> None:
    with (
        running_wire(message_bytes_max=4096) as wire,
        wire.pair(message_bytes_max=4096) as (connection, channel),
    ):
        for send in (channel.send, connection.send, connection.put):
            with pytest.raises(
                MessageTooLarge, match=r"'state' has 5\d\d\d bytes.*message_bytes_max"
            ):
                send(["state", bytes(5000)])
        for send_many in (channel.send_many, connection.send_many):
            with pytest.raises(MessageTooLarge):
                send_many([["fine"], ["state", bytes(5000)]])
        with pytest.raises(MessageNotPlain, match="'odd'"):
            connection.send(["odd", object()])
        channel.send(["after"])
        connection.send(["after"])
        assert wire.recorder.next_message() == ["after"]
        assert receive_count(channel, 1) == [["after"]]


def test_a_frame_over_the_drivers_limit_ends_the_connection_with_the_reason_on_both_sides() -> None:
    with running_wire(frame_bytes_max=4096) as wire, wire.pair() as (_, channel):
        channel.send(["state", bytes(50_000)])
        _, reason = wire.recorder.next_loss()
        assert "frame_bytes_max is 4096" in reason
        with pytest.raises(ChannelClosed, match="frame_bytes_max is 4096"):
            receive_count(channel, 1)


def test_a_map_with_numbers_as_keys_is_explained_to_its_sender() -> None:
    with running_wire() as wire, wire.pair() as (_, channel):
        channel.send(["state", {1: 2}])
        wire.recorder.next_loss()
        with pytest.raises(ChannelClosed, match="Map keys must be str or bytes"):
            receive_count(channel, 1)


def test_a_replayed_frame_is_refused_on_a_live_connection() -> None:
    with running_wire() as wire:
        sock, session = wire.authenticated()
        seal = FrameSeal(session.from_task)
        with sock:
            sock.sendall(sealed_frame(HELLO, seal))
            wire.recorder.next_connection()
            frame = sealed_frame(b"\x91\x91\xa3pay", seal)
            sock.sendall(frame + frame)
            _, reason = wire.recorder.next_loss()
            read_to_the_end(sock)
        assert "wrong tag" in reason
        assert wire.recorder.next_message() == ["pay"]
        assert wire.recorder.no_message_waits()


def test_nothing_is_handed_over_behind_the_listeners_close() -> None:
    class Evicting(Recorder):
        def received(self, connection: Connection, messages: list[list[Any]]) -> None:
            super().received(connection, messages)
            connection.close("evicted")

    evicting = Evicting()
    with running_wire(listener=evicting) as wire:
        sock, session = wire.authenticated()
        seal = FrameSeal(session.from_task)
        payloads = [HELLO, *(msgpack.packb([["n", number]]) for number in range(3))]
        with sock:
            sock.sendall(b"".join(sealed_frame(payload, seal) for payload in payloads))
            assert evicting.next_loss()[1] == "evicted"
        assert evicting.next_message() == ["n", 0]
        assert evicting.no_message_waits()


def test_a_tampered_frame_is_refused_by_the_task_behind_the_genuine_one() -> None:
    with running_wire() as wire, wire.pair() as (connection, channel):
        connection.send_many([["genuine"]])
        connection.sock.send(b"\0\0\0\x20" + bytes(32))
        assert receive_count(channel, 1) == [["genuine"]]
        with pytest.raises(ChannelClosed, match="wrong tag"):
            receive_count(channel, 1)


def test_the_drivers_reason_reaches_the_task_behind_its_last_message() -> None:
    with running_wire() as wire, wire.pair() as (connection, channel):
        connection.put(["last"])
        connection.close("a newer attempt has taken over")
        connection.close("too late")
        assert wire.recorder.next_loss() == (connection, "a newer attempt has taken over")
        assert not connection.send(["after"])
        assert not connection.send_many([["after"]])
        assert not connection.flush()
        assert channel.receive(5.0) == [["last"]]
        for _ in range(2):
            with pytest.raises(ChannelClosed, match="a newer attempt has taken over"):
                channel.receive(5.0)
        with pytest.raises(ChannelClosed, match="a newer attempt has taken over"):
            channel.send(["late"])


def test_a_task_that_only_sends_learns_the_drivers_reason_and_keeps_its_messages() -> None:
    with running_wire() as wire, wire.pair() as (connection, channel):
        connection.put(["last"])
        connection.close("evicted")
        wire.recorder.next_loss()
        with pytest.raises(ChannelClosed, match="evicted"):
            send_endlessly(channel)
        assert channel.receive(5.0) == [["last"]]
        with pytest.raises(ChannelClosed, match="evicted"):
            channel.receive(5.0)
        assert wire.recorder.no_message_waits()


def test_the_tasks_reason_reaches_the_driver_behind_its_last_message() -> None:
    with running_wire() as wire:
        channel = wire.channel()
        channel.send(["last"])
        channel.close("the partition is read")
        channel.close("again")
        connection, reason = wire.recorder.next_loss()
        assert reason == "the task closed: the partition is read"
        assert wire.recorder.next_message() == ["last"]
        assert not connection.send(["x"])
        with pytest.raises(ChannelClosed, match="this task closed the channel"):
            channel.receive(0)
        with pytest.raises(ChannelClosed, match="this task closed the channel"):
            channel.send(["x"])


def test_a_channel_that_closes_with_messages_unread_still_says_why() -> None:
    with running_wire() as wire, wire.pair() as (connection, channel):
        connection.send_many([["unread", bytes(1000)]] * 200)
        channel.send(["last"])
        channel.close("done")
        assert wire.recorder.next_loss()[1] == "the task closed: done"
        assert wire.recorder.next_message() == ["last"]


def test_a_failing_task_says_with_what() -> None:
    with running_wire() as wire:
        with pytest.raises(ZeroDivisionError), wire.channel():
            raise ZeroDivisionError("no")
        assert (
            wire.recorder.next_loss()[1]
            == "the task closed: the task failed: ZeroDivisionError: no"
        )


def test_a_receive_that_waits_ends_when_another_thread_closes_the_channel() -> None:
    with running_wire() as wire, wire.pair() as (_, channel):
        ended = threading.Event()

        def wait() -> None:
            with pytest.raises(ChannelClosed):
                channel.receive(20.0)
            ended.set()

        thread = threading.Thread(target=wait)
        thread.start()
        channel.close()
        assert ended.wait(60.0)
        thread.join()


def test_the_heartbeat_delivers_its_value() -> None:
    numbers = iter(range(1000))
    with (
        running_wire() as wire,
        wire.channel(heartbeat_interval_s=0.02, heartbeat_value=lambda: next(numbers)),
    ):
        assert [wire.recorder.next_message() for _ in range(3)] == [
            ["heartbeat", number] for number in range(3)
        ]


def test_a_heartbeat_value_that_raises_closes_the_channel_with_its_error() -> None:
    with (
        running_wire() as wire,
        wire.channel(heartbeat_interval_s=0.02, heartbeat_value=lambda: 1 // 0) as channel,
    ):
        with pytest.raises(ChannelClosed, match="heartbeat failed: ZeroDivisionError"):
            receive_count(channel, 1)
        wire.recorder.next_loss()


def test_a_task_that_does_not_read_is_closed_once_too_much_waits() -> None:
    limit = 1 << 20
    with (
        running_wire(frame_bytes_max=limit, outgoing_bytes_max=limit) as wire,
        wire.pair() as (connection, _),
    ):
        chunk, sent = ["data", bytes(10_000)], 0
        while connection.send(chunk):
            sent += 1
            assert connection.waiting_bytes <= limit + 20_000
            assert sent < 10_000
        _, reason = wire.recorder.next_loss()
        assert f"outgoing_bytes_max is {limit}" in reason


def test_a_slow_task_gets_everything_in_order() -> None:
    with running_wire() as wire, wire.pair() as (connection, channel):
        count = 3000
        for number in range(count):
            assert connection.send(["data", number, bytes(10_000)])
        assert connection.waiting_bytes > 0
        messages = receive_count(channel, count)
        assert [message[1] for message in messages] == list(range(count))
        assert eventually(lambda: connection.waiting_bytes == 0)


def test_a_task_waits_for_a_driver_that_is_slow_to_read() -> None:
    reading = threading.Event()

    class Slow(Recorder):
        def received(self, connection: Connection, messages: list[list[Any]]) -> None:
            assert reading.wait(60.0)
            super().received(connection, messages)

    slow = Slow()
    with running_wire(listener=slow) as wire, wire.channel() as channel:
        count = 2000
        sender = threading.Thread(
            target=channel.send_many, args=([["data", n, bytes(20_000)] for n in range(count)],)
        )
        sender.start()
        sender.join(0.3)
        assert sender.is_alive()
        reading.set()
        assert [slow.next_message()[1] for _ in range(count)] == list(range(count))
        sender.join()
