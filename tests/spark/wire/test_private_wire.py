"""The private wire: nothing can be read on the way, and no other driver or protocol is taken."""

from __future__ import annotations

import os
import select
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psutil
import pytest
from hypothesis import given, settings, strategies as st

from epochgate.spark.wire import (
    AuthenticationFailed,
    CannotConnect,
    HandshakeTimedOut,
    ProtocolMismatch,
    TaskChannel,
    WireError,
    new_key,
)
from epochgate.spark.wire.certificate import Credentials, new_credentials, task_context
from epochgate.spark.wire.handshake import GREETING_BYTES
from epochgate.spark.wire.private_stream import HANDSHAKE_BYTES_MAX, PrivateStream
from epochgate.spark.wire.reception import HANDSHAKES_PER_TURN
from tests.spark.wire.harness import (
    ROOT,
    WAIT_S,
    Wire,
    eventually,
    open_descriptors,
    read_exactly,
    read_to_the_end,
    receive_count,
    running_wire,
)
from tests.spark.wire.relay import recording_relay

SECRET = b"the payload that no reader of the traffic may see"


@pytest.fixture(autouse=True)
def _private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wire, "is_private", True)


def conversation(wire: Wire, address: tuple[str, int]) -> None:
    """A hello, and the secret both ways."""
    with TaskChannel.connect(
        address, wire.key, {"host": SECRET.decode()}, certificate=wire.certificate
    ) as channel:
        connection = wire.recorder.next_connection()
        connection.send(["down", SECRET])
        assert receive_count(channel, 1) == [["down", SECRET]]
        channel.send(["up", SECRET])
        assert wire.recorder.next_message() == ["up", SECRET]


@pytest.mark.parametrize("is_private", [True, False], ids=["private", "plain"])
def test_a_record_of_all_traffic_shows_neither_key_nor_payload(
    is_private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wire, "is_private", is_private)
    with running_wire() as wire, recording_relay(wire.server.address) as relay:
        conversation(wire, relay.address)
        for recorded in (relay.to_driver, relay.to_task):
            assert wire.key not in recorded
            assert (SECRET in recorded) is not is_private
            assert (b"EGWIRE" in recorded) is not is_private


def test_a_driver_with_another_certificate_is_refused_and_told_nothing() -> None:
    other = new_credentials()
    with running_wire() as wire, recording_relay(wire.server.address) as relay:
        with pytest.raises(AuthenticationFailed, match="another certificate than this run's"):
            TaskChannel.connect(relay.address, wire.key, {}, certificate=other.certificate)
        assert isinstance(wire.recorder.next_refusal(), AuthenticationFailed)
        assert wire.recorder.no_task_came_in()
        # A ClientHello and an alert: no proof of the key has left.
        assert len(relay.to_driver) < 2000


def test_the_run_key_alone_does_not_make_a_driver() -> None:
    """A task that has learnt the run's key can connect; a task does not take it for the driver,
    whose private key is in the driver's memory alone.
    """
    with running_wire() as driver, running_wire() as impostor:
        impostor.key = driver.key
        with pytest.raises(AuthenticationFailed, match="another certificate"):
            TaskChannel.connect(
                impostor.server.address, driver.key, {}, certificate=driver.certificate
            )


def test_a_certificate_without_the_key_opens_nothing() -> None:
    with running_wire() as wire:
        with pytest.raises(AuthenticationFailed, match="refused this task's key"):
            TaskChannel.connect(wire.server.address, new_key(), {}, certificate=wire.certificate)
        assert isinstance(wire.recorder.next_refusal(), AuthenticationFailed)


def old_tls(context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def test_a_peer_that_speaks_tls_1_2_is_refused_by_the_driver() -> None:
    with running_wire() as wire:
        assert wire.certificate is not None
        context = old_tls(task_context(wire.certificate))
        with wire.stranger() as sock, pytest.raises(ssl.SSLError):
            context.wrap_socket(sock)
        refusal = wire.recorder.next_refusal()
        assert isinstance(refusal, ProtocolMismatch)
        assert "TLS 1.3" in str(refusal)


@contextmanager
def tls_driver(credentials: Credentials) -> Iterator[tuple[str, int]]:
    """A program that accepts one connection with Python's own `SSLSocket`."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            sock, _ = listening.accept()
            with sock:
                try:
                    credentials.context.wrap_socket(sock, server_side=True).close()
                except OSError:
                    sock.close()  # refused, as the test expects

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()
        thread.join(WAIT_S)


def test_a_driver_that_speaks_tls_1_2_is_refused_by_the_task() -> None:
    credentials = new_credentials()
    old_tls(credentials.context)
    with (
        tls_driver(credentials) as address,
        pytest.raises(ProtocolMismatch, match=r"does not speak the TLS 1\.3"),
    ):
        TaskChannel.connect(address, new_key(), {}, certificate=credentials.certificate)


def test_a_plain_driver_is_refused_by_a_task_with_a_certificate() -> None:
    certificate = new_credentials().certificate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Wire, "is_private", False)
        with running_wire() as wire, pytest.raises(ProtocolMismatch, match="setting of `wire`"):
            TaskChannel.connect(wire.server.address, wire.key, {}, certificate=certificate)


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\n\r\n", b"EGWIRE\0\1" + bytes(64), bytes(100_000), os.urandom(100_000)],
    ids=["http", "plain wire", "zeros", "random"],
)
def test_garbage_instead_of_tls_costs_its_own_connection(garbage: bytes) -> None:
    with running_wire(handshake_timeout_s=2.0) as wire, wire.pair() as (connection, channel):
        with wire.stranger() as sock:
            try:
                sock.sendall(garbage)
                read_to_the_end(sock)
            except ConnectionError:
                sock.close()  # closed before all was written
        assert isinstance(wire.recorder.next_refusal(), WireError)
        connection.send(["still here"])
        assert receive_count(channel, 1) == [["still here"]]


def client_hello(certificate: bytes) -> bytes:
    arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = task_context(certificate).wrap_bio(arriving, leaving)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return leaving.read()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_peer_that_stops_in_the_handshake_ends_with_its_time(share: float) -> None:
    with running_wire(handshake_timeout_s=1.0) as wire, wire.stranger() as sock:
        assert wire.certificate is not None
        hello = client_hello(wire.certificate)
        sock.sendall(hello[: int(share * len(hello))])
        read_to_the_end(sock)
        assert isinstance(wire.recorder.next_refusal(), HandshakeTimedOut)


def test_a_handshake_longer_than_any_tasks_is_refused_before_it_is_over() -> None:
    endless = b"\x16\x03\x01\x40\x00\x01\x01\x00\x00" + bytes(2 * HANDSHAKE_BYTES_MAX)
    with running_wire() as wire, wire.stranger() as sock:
        try:
            sock.sendall(endless)
            read_to_the_end(sock)
        except ConnectionError:
            sock.close()  # closed before all was written
        assert isinstance(wire.recorder.next_refusal(), ProtocolMismatch)


def test_a_crowd_in_its_handshake_is_bounded_and_tasks_still_come_in() -> None:
    with running_wire(arrivals_max=5) as wire, ExitStack() as strangers:
        assert wire.certificate is not None
        hello = client_hello(wire.certificate)
        socks = [strangers.enter_context(wire.stranger()) for _ in range(20)]
        for sock in socks:
            sock.sendall(hello[:100])
        with wire.pair() as (connection, channel):
            connection.send(["hi"])
            assert receive_count(channel, 1) == [["hi"]]
        for sock in socks[:15]:
            assert read_to_the_end(sock) == b""


def test_handshakes_that_come_together_leave_the_thread_to_tasks_between_them() -> None:
    count = 8 * HANDSHAKES_PER_TURN
    with (
        running_wire(arrivals_max=2 * count, handshake_timeout_s=60.0) as wire,
        wire.pair() as (_, channel),
        ExitStack() as strangers,
    ):
        assert wire.certificate is not None
        hello = client_hello(wire.certificate)
        socks = [strangers.enter_context(wire.stranger()) for _ in range(count)]
        answered = select.epoll()
        strangers.callback(answered.close)
        for sock in socks:
            answered.register(sock, select.EPOLLIN)
            sock.sendall(hello)
        channel.send(["in the midst of it"])
        assert wire.recorder.next_message() == ["in the midst of it"]
        assert eventually(lambda: len(answered.poll(0, count)) == count)


def test_the_private_key_is_in_no_file_and_leaves_no_descriptor() -> None:
    before = open_descriptors()
    credentials = new_credentials()
    assert open_descriptors() == before
    assert b"PRIVATE" not in credentials.certificate
    assert all(not file.path.endswith(".pem") for file in psutil.Process().open_files())


def test_a_task_that_connects_needs_no_library_beside_pythons_own() -> None:
    program = (
        "import sys\n"
        "sys.modules['cryptography'] = None\n"
        "from epochgate.spark.wire.certificate import task_context\n"
        "task_context(bytes.fromhex(sys.argv[1]))\n"
    )
    certificate = new_credentials().certificate.hex()
    subprocess.run(
        [sys.executable, "-c", program, certificate],
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_plain_wire_does_without_tls() -> None:
    program = "import sys, epochgate.spark.task_main; sys.exit('ssl' in sys.modules)"
    subprocess.run(
        [sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


def connected_streams(sndbuf: int) -> tuple[PrivateStream, PrivateStream]:
    """Both ends of a private stream whose handshake is over, over sockets that take little."""
    credentials = new_credentials()
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)
    driver = credentials.private(ends[0])
    task = PrivateStream(ends[1], task_context(credentials.certificate), is_driver=False)
    while not (driver.is_open and task.is_open):
        for stream in (task, driver):
            try:
                stream.handshake()
            except BlockingIOError:
                continue
    return driver, task


def count_or_blocked(call: Callable[[Any], int], buffer: Any) -> int:
    """Return how many bytes a call took or gave; -1 where it would block."""
    try:
        return call(buffer)
    except BlockingIOError:
        return -1


@settings(max_examples=20)
@given(st.integers(1, 600_000), st.sampled_from([64, 20_000, 65_536, 262_144]), st.booleans())
def test_all_bytes_pass_in_order_whatever_the_sockets_and_buffers_take(
    size: int, buffer_bytes: int, is_from_task: bool
) -> None:
    size = min(size, 400 * buffer_bytes)
    driver, task = connected_streams(8192)
    source, sink = (task, driver) if is_from_task else (driver, task)
    sent, received = os.urandom(size), bytearray()
    rest, buffer = memoryview(sent), bytearray(buffer_bytes)
    deadline_s = time.monotonic() + WAIT_S
    while len(received) < size:
        assert time.monotonic() < deadline_s
        if rest:
            # Blocked, it gets the same bytes again at the next turn.
            rest = rest[max(0, count_or_blocked(source.send, rest)) :]
        while (read_bytes := count_or_blocked(sink.recv_into, buffer)) > 0:
            received += buffer[:read_bytes]
    assert bytes(received) == sent
    driver.close()
    task.close()


def test_bytes_count_as_sent_only_when_all_of_them_are_with_the_system() -> None:
    driver, task = connected_streams(4096)
    payload, sent_bytes, received_bytes = memoryview(bytes(1 << 20)), 0, 0
    while (count := count_or_blocked(driver.send, payload[sent_bytes:])) > 0:
        sent_bytes += count
    buffer = bytearray(1 << 20)
    while (count := count_or_blocked(task.recv_into, buffer)) > 0:
        received_bytes += count
    assert received_bytes >= sent_bytes
    driver.close()
    assert eventually(lambda: count_or_blocked(task.recv_into, buffer) == 0)
    task.close()


def test_a_driver_that_ends_in_the_handshake_is_told_as_one_that_cannot_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def leave() -> None:
            sock, _ = listening.accept()
            sock.close()

        thread = threading.Thread(target=leave)
        thread.start()
        with pytest.raises(CannotConnect, match="during the"):
            TaskChannel.connect(
                listening.getsockname(),
                new_key(),
                {},
                certificate=new_credentials().certificate,
            )
        thread.join()


def test_a_task_that_greets_behind_tls_gets_the_greeting() -> None:
    with running_wire() as wire, wire.greeted() as sock:
        assert len(read_exactly(sock, GREETING_BYTES)) == GREETING_BYTES
