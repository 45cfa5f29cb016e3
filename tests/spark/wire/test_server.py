"""The server: strangers, silent peers, failing listeners, many tasks, and what is left after it."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import threading
import time
from contextlib import ExitStack
from typing import Any

import pytest

from epochgate.spark.wire import (
    AuthenticationFailed,
    CannotBind,
    CannotConnect,
    ChannelClosed,
    Connection,
    FrameForged,
    HandshakeTimedOut,
    HelloInvalid,
    ProtocolMismatch,
    TaskChannel,
    TaskServer,
    WireSettingInvalid,
    new_key,
)
from epochgate.spark.wire.frames import sealed_frame
from epochgate.spark.wire.handshake import GREETING_BYTES
from epochgate.spark.wire.sealing import FrameSeal
from tests.spark.wire.harness import (
    WAIT_S,
    Recorder,
    eventually,
    open_descriptors,
    read_exactly,
    read_to_the_end,
    receive_count,
    running_wire,
)


def test_a_wrong_key_fails_on_both_sides_and_reaches_no_listener() -> None:
    with running_wire() as wire:
        with pytest.raises(AuthenticationFailed, match="check that this task belongs to this run"):
            TaskChannel.connect(wire.server.address, new_key(), {}, certificate=wire.certificate)
        assert isinstance(wire.recorder.next_refusal(), AuthenticationFailed)
        assert wire.recorder.no_task_came_in()


def test_a_server_without_the_key_is_refused_by_the_task() -> None:
    with (
        running_wire() as wire,
        wire.stranger() as relay_out,
        socket.create_server(("127.0.0.1", 0)) as fake,
    ):
        greeting = read_exactly(relay_out, GREETING_BYTES)

        def pretend() -> None:
            sock, _ = fake.accept()
            with sock:
                sock.sendall(greeting)
                read_exactly(sock, 72)
                sock.sendall(b"\1" * 32)
                read_to_the_end(sock)

        thread = threading.Thread(target=pretend)
        thread.start()
        with pytest.raises(AuthenticationFailed, match="does not hold this run's key"):
            TaskChannel.connect(fake.getsockname(), wire.key, {})
        thread.join()


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n\r\n", bytes(100_000), os.urandom(100_000)]
)
def test_garbage_before_the_handshake_is_refused_while_tasks_work_on(garbage: bytes) -> None:
    with running_wire() as wire, wire.pair() as (connection, channel):
        with wire.stranger() as sock:
            with contextlib.suppress(ConnectionError):
                sock.sendall(garbage)
            read_to_the_end(sock)
        assert isinstance(wire.recorder.next_refusal(), ProtocolMismatch)
        connection.send(["still here"])
        assert receive_count(channel, 1) == [["still here"]]
        assert wire.recorder.no_task_came_in()


def test_another_program_on_the_port_is_named_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def speak() -> None:
            sock, _ = other.accept()
            with sock:
                sock.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                read_to_the_end(sock)

        thread = threading.Thread(target=speak)
        thread.start()
        with pytest.raises(ProtocolMismatch, match=r"SSH-2\.0"):
            TaskChannel.connect(other.getsockname(), new_key(), {})
        thread.join()


def test_a_program_that_says_nothing_is_given_up() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(HandshakeTimedOut, match="did not complete the handshake"),
    ):
        TaskChannel.connect(silent.getsockname(), new_key(), {}, timeout_s=0.2)


def test_a_driver_that_is_not_there_is_explained() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = gone.getsockname()
    with pytest.raises(CannotConnect, match=rf"127.0.0.1:{address[1]}.*spark.driver.host"):
        TaskChannel.connect(address, new_key(), {}, timeout_s=1.0)


@pytest.mark.parametrize("beginning", [b"", b"EGW", b"EGWIRE\0\1" + bytes(63)])
def test_a_half_open_handshake_ends_with_its_time(beginning: bytes) -> None:
    with running_wire(handshake_timeout_s=1.0) as wire, wire.greeted() as sock:
        sock.sendall(beginning)
        assert len(read_to_the_end(sock)) == GREETING_BYTES
        assert isinstance(wire.recorder.next_refusal(), HandshakeTimedOut)


def test_an_authenticated_peer_that_never_says_hello_ends_with_its_time() -> None:
    with running_wire(handshake_timeout_s=1.0) as wire:
        sock, _ = wire.authenticated()
        with sock:
            read_to_the_end(sock)
        assert isinstance(wire.recorder.next_refusal(), HandshakeTimedOut)


@pytest.mark.parametrize(
    "payload", [b"\x91\x91\xa5hello", b"\x91\x92\xa5hello\x81\xc4\x01a\x01", b"\x91\x91\x01"]
)
def test_a_peer_without_a_proper_hello_is_refused(payload: bytes) -> None:
    with running_wire() as wire:
        sock, session = wire.authenticated()
        with sock:
            sock.sendall(sealed_frame(payload, FrameSeal(session.from_task)))
            read_to_the_end(sock)
        assert isinstance(wire.recorder.next_refusal(), HelloInvalid)
        assert wire.recorder.no_task_came_in()


def test_a_hello_under_another_sessions_key_is_forged() -> None:
    with running_wire() as wire:
        (first, _), (second, session) = wire.authenticated(), wire.authenticated()
        with first, second:
            first.sendall(sealed_frame(b"\x91\x92\xa5hello\x80", FrameSeal(session.from_task)))
            read_to_the_end(first)
        assert isinstance(wire.recorder.next_refusal(), FrameForged)


def test_strangers_beyond_the_limit_push_out_the_oldest_and_tasks_still_come_in() -> None:
    with running_wire(arrivals_max=5) as wire, ExitStack() as strangers:
        socks = [strangers.enter_context(wire.greeted()) for _ in range(20)]
        for sock in socks:
            read_exactly(sock, GREETING_BYTES)
        with wire.pair() as (connection, channel):
            connection.send(["hi"])
            assert receive_count(channel, 1) == [["hi"]]
        for sock in socks[:15]:
            assert read_to_the_end(sock) == b""


def test_a_stopped_process_is_lost_in_time_and_its_later_messages_are_refused() -> None:
    with (
        running_wire(heartbeat_timeout_s=1.0) as wire,
        wire.task_process("chatter") as process,
    ):
        connection = wire.recorder.next_connection()
        wire.recorder.next_message()
        process.send_signal(signal.SIGSTOP)
        stopped_s = time.monotonic()
        lost, reason = wire.recorder.next_loss()
        assert lost is connection
        assert time.monotonic() - stopped_s > 0.9
        assert "nothing was heard from the task" in reason
        while not wire.recorder.no_message_waits():
            wire.recorder.next_message()
        process.send_signal(signal.SIGCONT)
        assert process.stdout is not None
        assert b"nothing was heard from the task" in process.stdout.readline()
        assert wire.recorder.no_message_waits()
        assert wire.recorder.nothing_was_lost()


def test_a_killed_process_is_lost_at_once() -> None:
    with running_wire() as wire, wire.task_process("echo") as process:
        wire.recorder.next_connection()
        process.kill()
        _, reason = wire.recorder.next_loss()
        assert "the task's process ended" in reason or "broke" in reason


def test_heartbeats_keep_a_task_that_computes_for_long() -> None:
    with (
        running_wire(heartbeat_timeout_s=1.5, heartbeat_interval_s=0.1) as wire,
        wire.pair(heartbeat_interval_s=0.1, silence_timeout_s=1.5) as (connection, channel),
    ):
        # The time limits are the subject here, so time has to pass.
        time.sleep(4.0)
        assert wire.recorder.nothing_was_lost()
        connection.send(["still", "here"])
        assert receive_count(channel, 1) == [["still", "here"]]


def test_a_task_notices_a_silent_driver() -> None:
    blocked, released = threading.Event(), threading.Event()

    class Blocking(Recorder):
        def received(self, connection: Connection, messages: list[list[Any]]) -> None:
            blocked.set()
            released.wait(WAIT_S)

    with running_wire(listener=Blocking()) as wire:
        channel = wire.channel(silence_timeout_s=0.5)
        channel.send(["block"])
        assert blocked.wait(WAIT_S)
        with pytest.raises(ChannelClosed, match="nothing was heard from the driver"):
            channel.receive(WAIT_S)
        released.set()
        channel.close()


def test_a_blocked_driver_does_not_take_its_own_absence_for_the_tasks() -> None:
    class Blocking(Recorder):
        def received(self, connection: Connection, messages: list[list[Any]]) -> None:
            if messages[0] == ["block"]:
                time.sleep(3.0)  # blocked for longer than tasks may be silent
            super().received(connection, messages)

    blocking = Blocking()
    with (
        running_wire(listener=blocking, heartbeat_timeout_s=1.5, heartbeat_interval_s=0.05) as wire,
        wire.channel(heartbeat_interval_s=0.05) as first,
        wire.channel(heartbeat_interval_s=0.05) as second,
    ):
        first.send(["block"])
        second.send(["other"])
        assert {blocking.next_message()[0] for _ in range(2)} == {"block", "other"}
        first.send(["after"])
        assert blocking.next_message() == ["after"]
        assert blocking.nothing_was_lost()


def test_tasks_hear_of_the_driver_between_messages_that_take_it_long() -> None:
    count, each_s = 12, 0.25

    class Slow(Recorder):
        def received(self, connection: Connection, messages: list[list[Any]]) -> None:
            threading.Event().wait(each_s)
            super().received(connection, messages)

    slow = Slow()
    with running_wire(listener=slow) as wire, ExitStack() as channels:
        quiet = channels.enter_context(wire.channel(silence_timeout_s=count * each_s / 2))
        busy = [channels.enter_context(wire.channel()) for _ in range(count)]
        for _ in range(count + 1):
            slow.next_connection()
        for channel in busy:
            channel.send(["long"])
        # Raises when it was silent for half of the time that all of them take.
        assert quiet.receive(count * each_s) == []
        assert [slow.next_message() for _ in busy] == [["long"]] * count


@pytest.mark.parametrize("where", ["connected", "received", "lost"])
def test_a_listener_that_raises_loses_one_connection_and_never_the_server(where: str) -> None:
    losses: queue.Queue[str] = queue.Queue()

    class Faulty(Recorder):
        def connected(self, connection: Connection, hello: dict[str, Any]) -> None:
            super().connected(connection, hello)
            if hello and where == "connected":
                raise KeyError("fault of ours")

        def received(self, connection: Connection, messages: list[list[Any]]) -> None:
            super().received(connection, messages)
            if connection.hello and where == "received":
                raise KeyError("fault of ours")

        def lost(self, connection: Connection, reason: str) -> None:
            losses.put(reason)
            if connection.hello and where == "lost":
                raise KeyError("fault of ours")

    faulty = Faulty()
    with running_wire(listener=faulty) as wire, wire.channel() as good:
        with wire.channel({"bad": True}) as bad:
            if where == "received":
                bad.send(["m"])
            if where != "lost":
                with pytest.raises(ChannelClosed, match="KeyError: 'fault of ours'"):
                    receive_count(bad, 1)
        assert ("fault of ours" in losses.get(timeout=WAIT_S)) == (where != "lost")
        good.send(["good"])
        while faulty.next_message() != ["good"]:
            pass
        assert losses.empty()


def test_lost_comes_once_however_many_ends_meet() -> None:
    with running_wire() as wire:
        for _ in range(30):
            channel = wire.channel()
            connection = wire.recorder.next_connection()
            enders = [
                threading.Thread(target=connection.close, args=("one",)),
                threading.Thread(target=connection.close, args=("two",)),
                threading.Thread(target=channel.close),
            ]
            for ender in enders:
                ender.start()
            for ender in enders:
                ender.join()
            assert wire.recorder.next_loss()[0] is connection
    assert wire.recorder.nothing_was_lost()


def test_closing_the_server_frees_everything() -> None:
    threads, descriptors = threading.active_count(), open_descriptors()
    with running_wire() as wire, ExitStack() as channels:
        held = [channels.enter_context(wire.channel()) for _ in range(10)]
        stranger = channels.enter_context(wire.greeted())
        read_exactly(stranger, GREETING_BYTES)
        address = wire.server.address
        for _ in held:
            wire.recorder.next_connection()
        wire.server.close()
        wire.server.close()
        lost = {wire.recorder.next_loss()[0] for _ in held}
        assert len(lost) == 10
        assert all(not connection.send(["x"]) for connection in lost)
        with pytest.raises(ChannelClosed, match="the driver has closed its service"):
            receive_count(held[0], 1)
        with pytest.raises(CannotConnect):
            TaskChannel.connect(address, wire.key, {}, timeout_s=1.0)
    assert eventually(lambda: threading.active_count() == threads)
    assert eventually(lambda: open_descriptors() == descriptors)


def test_a_listener_may_close_the_server() -> None:
    class Closing(Recorder):
        def received(self, connection: Connection, messages: list[list[Any]]) -> None:
            wire.server.close()

    closing = Closing()
    with running_wire(listener=closing) as wire, wire.channel() as channel:
        channel.send(["close"])
        assert closing.next_loss()[1] == "the driver has closed its service"


def test_five_hundred_connections_are_served_at_once() -> None:
    processes, each = 4, 125
    with (
        running_wire(heartbeat_interval_s=1.0, heartbeat_timeout_s=20.0) as wire,
        ExitStack() as stack,
    ):
        for _ in range(processes):
            stack.enter_context(wire.task_process("crowd", str(each)))
        connections = [wire.recorder.next_connection() for _ in range(processes * each)]
        for number, connection in enumerate(connections):
            assert connection.send(["number", number])
        answers = {wire.recorder.next_message()[1] for _ in connections}
        assert answers == set(range(processes * each))
        assert wire.recorder.nothing_was_lost()


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = TaskServer(key=new_key(), host="127.0.0.1", port=port, listener=Recorder())
        with pytest.raises(CannotBind, match=rf"127.0.0.1:{port}.*Another program listens there"):
            server.start()
        server.close()
    descriptors = open_descriptors()
    server = TaskServer(key=new_key(), host="192.0.2.1", listener=Recorder())
    with pytest.raises(CannotBind):
        server.start()
    assert open_descriptors() == descriptors


@pytest.mark.parametrize(
    ("host", "port", "match"),
    [
        ("192.0.2.1", 0, "No interface of this machine has that address"),
        ("no-such-host.invalid", 0, "is not known here"),
        ("127.0.0.1", 65536, "port 65536 does not exist"),
        ("127.0.0.1", -1, "port -1 does not exist"),
    ],
)
def test_an_address_that_cannot_be_bound_is_explained(host: str, port: int, match: str) -> None:
    server = TaskServer(key=new_key(), host=host, port=port, listener=Recorder())
    with pytest.raises(CannotBind, match=match):
        server.start()


@pytest.mark.parametrize(
    "setting",
    [
        {"frame_bytes_max": 10},
        {"outgoing_bytes_max": 10},
        {"heartbeat_timeout_s": 0.1},
        {"handshake_timeout_s": 0.0},
        {"arrivals_max": 0},
        {"key": b"short"},
    ],
)
def test_a_setting_out_of_range_is_named(setting: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"key": new_key(), "host": "127.0.0.1", "listener": Recorder()}
    with pytest.raises(WireSettingInvalid, match=r"key|" + next(iter(setting))):
        TaskServer(**{**settings, **setting})


def test_calls_run_on_the_servers_thread_and_one_that_raises_ends_nothing() -> None:
    names: queue.Queue[str] = queue.Queue()
    with running_wire() as wire, wire.pair() as (connection, channel):
        wire.server.call(lambda: names.put("")[0])  # type: ignore[func-returns-value, index]
        wire.server.call(lambda: names.put(threading.current_thread().name))
        assert [names.get(timeout=WAIT_S), names.get(timeout=WAIT_S)] == ["", "epochgate-wire"]
        connection.send(["still here"])
        assert receive_count(channel, 1) == [["still here"]]
