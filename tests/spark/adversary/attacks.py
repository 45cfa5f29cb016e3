"""Attacks without the run's key, by any process that reaches the driver's port.

Each of them fails if the driver answers otherwise than it must; what an attack costs the driver is
for the test to measure.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from epochgate.spark.wire import new_key
from epochgate.spark.wire.handshake import (
    ANSWER_BYTES,
    GREETING_BYTES,
    MAGIC,
    NONCE_BYTES,
    REFUSED,
    VERDICT_BYTES,
    TaskHandshake,
)
from tests.spark.adversary.target import Target
from tests.spark.wire.harness import read_exactly, read_to_the_end

ARRIVALS = 512
"""How many connections may be in their handshake: half of the driver's descriptors."""
CLOSED_BY_RESET = struct.pack("ii", 1, 0)
HELD = ARRIVALS + 32
"""Descriptors, in attacks by many connections at a time."""
PRIVATE_SHARE = 4
"""Where the wire is private, a quarter as many handshakes: a client's costs two milliseconds."""


@dataclass(frozen=True)
class Attack:
    """The deed of an attack, and what it may cost: memory and descriptors of the driver beside
    those at rest, and seconds between two commits.
    """

    name: str
    strike: Callable[[Target], None]
    rss_mb: int = 64
    descriptors: int = 64
    gap_s: float = 5.0
    costs_attempts: bool = False


def send_garbage(target: Target) -> None:
    beginnings = (b"GET / HTTP/1.1\r\n\r\n", bytes(1000), os.urandom(1000), b"EGWIRE\0\7")
    for number in range(target.size.garbage):
        with target.stranger() as sock, suppress(ConnectionError):
            sock.sendall(beginnings[number % len(beginnings)])


def flood_after_the_magic(target: Target) -> None:
    piece, left = bytes(1_000_000), target.size.flood_bytes
    while left > 0:
        with target.greeted() as sock, suppress(ConnectionError, ssl.SSLError):
            sock.sendall(MAGIC)
            left -= len(piece)
            while left > 0:
                left -= sock.send(piece)


def hold_half_open(target: Target) -> None:
    with ExitStack() as stack:
        for _ in range(target.size.half_open):
            stack.enter_context(target.stranger())
        time.sleep(target.size.half_open_s)


def churn_half_open(target: Target) -> None:
    """Keep more connections half open than the driver has descriptors, and renew them."""
    held: deque[socket.socket] = deque()
    until_s = time.monotonic() + target.size.churn_s
    try:
        while time.monotonic() < until_s:
            held.append(target.stranger())
            if len(held) > 2 * ARRIVALS + 200:
                held.popleft().close()
    finally:
        for sock in held:
            sock.close()


def drip(target: Target) -> None:
    """Say what a task says, a byte at a time."""
    said = target.first_bytes()[:-1]
    with ExitStack() as stack:
        socks = [stack.enter_context(target.stranger()) for _ in range(target.size.drips)]
        for place in range(len(said)):
            for sock in socks:
                with suppress(ConnectionError):
                    sock.send(said[place : place + 1])
            time.sleep(target.size.drips_s / len(said))  # the pace of the attack


def connect_as_often_as_possible(target: Target) -> None:
    until_s, connects = time.monotonic() + target.size.connects_s, 0
    while time.monotonic() < until_s:
        with socket.socket() as sock, suppress(ConnectionError):
            # Closed by a reset, lest the port stay taken for a minute.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, CLOSED_BY_RESET)
            sock.connect(target.address)
            connects += 1
    assert connects > 100 * target.size.connects_s


def shake_hands_and_be_silent(target: Target) -> None:
    """End the handshake of TLS as often as possible, where there is one."""
    until_s = time.monotonic() + target.size.connects_s
    with ExitStack() as stack:
        while time.monotonic() < until_s:
            with suppress(ConnectionError, ssl.SSLError):
                stack.enter_context(target.greeted())


def try_wrong_keys(target: Target) -> None:
    share = 1 if target.certificate is None else PRIVATE_SHARE
    for _ in range(target.size.wrong_keys // share):
        with target.greeted() as sock:
            greeting = read_exactly(sock, GREETING_BYTES)
            sock.sendall(TaskHandshake(new_key()).answer(greeting))
            assert_refused(sock)


def assert_refused(sock: socket.socket) -> None:
    assert read_exactly(sock, VERDICT_BYTES) == REFUSED
    with suppress(ssl.SSLError):
        assert read_to_the_end(sock) == b""


def reflect_proofs(target: Target) -> None:
    """Answer with the driver's own nonce, and with what it says on another connection."""
    with target.greeted() as one, target.greeted() as other:
        nonce = read_exactly(one, GREETING_BYTES)[len(MAGIC) :]
        others = read_exactly(other, GREETING_BYTES)[len(MAGIC) :]
        one.sendall(MAGIC + nonce + others)
        assert_refused(one)
        other.sendall(MAGIC + others + REFUSED)
        assert_refused(other)


def replay_sessions(target: Target) -> None:
    """Say again, byte by byte, what a task with the key has said."""
    with target.authenticated() as genuine:
        said = genuine.answer + genuine.hello(target.hello(0, 1))
    for _ in range(20):
        with target.greeted() as sock:
            read_exactly(sock, GREETING_BYTES)
            sock.sendall(said)
            assert_refused(sock)


def flip_bits(target: Target) -> None:
    """Change a bit of what a task with the key says: of its proof, and of its first frame."""
    for place in range(len(MAGIC), ANSWER_BYTES, 3):
        with target.greeted() as sock:
            answer = TaskHandshake(target.key).answer(read_exactly(sock, GREETING_BYTES))
            sock.sendall(flipped(answer, place))
            assert_refused(sock)
    length_bytes = 4
    for place in range(length_bytes, 100, 5):
        with target.authenticated() as peer:
            peer.send(flipped(peer.hello(target.hello(0, 1)), place))
            assert peer.is_dismissed()


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]


def announce_4_gigabytes(target: Target) -> None:
    for length in (2**32 - 1, 2**31, 0):
        with target.authenticated() as peer:
            peer.send(length.to_bytes(4, "big") + bytes(NONCE_BYTES))
            assert peer.is_dismissed()


WITHOUT_KEY = [
    Attack("3,000 connections that send garbage", send_garbage, descriptors=HELD),
    Attack("200 MB after the magic", flood_after_the_magic, descriptors=HELD),
    Attack("5,000 half-open connections, held for 7 s", hold_half_open, descriptors=HELD),
    Attack(
        "half-open connections renewed for 25 s, more than descriptors",
        churn_half_open,
        descriptors=HELD,
    ),
    Attack("900 connections that send a byte at a time, for 8 s", drip, descriptors=HELD),
    Attack("as many connects as possible, for 6 s", connect_as_often_as_possible, descriptors=HELD),
    Attack(
        "as many TLS handshakes as possible, for 6 s", shake_hands_and_be_silent, descriptors=HELD
    ),
    Attack("2,000 wrong keys", try_wrong_keys),
    Attack("reflected proofs", reflect_proofs),
    Attack("replayed sessions", replay_sessions),
    Attack("flipped bits", flip_bits),
    Attack("frames that announce 4 GB", announce_4_gigabytes),
]
