"""Bounds on arriving frames: values before they are built, memory before they are whole."""

from __future__ import annotations

import ssl
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import Any

import msgpack
import pytest
from hypothesis import given

from epochgate.spark.wire import (
    FrameCorrupt,
    FrameTooLarge,
    MessageTooLarge,
)
from epochgate.spark.wire.arrivals import HELLO_BYTES_MAX
from epochgate.spark.wire.counting import VALUES_MAX, holds_more_than
from epochgate.spark.wire.frames import (
    FRAME_BYTES_MAX,
    FrameDecoder,
    batch_payload,
    pack_message,
    sealed_frame,
)
from epochgate.spark.wire.incoming import PLACELESS_BYTES_MAX, IncomingFrames
from epochgate.spark.wire.sealing import TAG_BYTES, FrameSeal
from tests.spark.wire.harness import Wire, eventually, running_wire
from tests.spark.wire.test_frames import PLAIN, decoder, stream_of

MIB = 1 << 20
LARGEST = FRAME_BYTES_MAX - TAG_BYTES - 64


def array_32(count: int) -> bytes:
    return b"\xdd" + count.to_bytes(4, "big")


def map_32(count: int) -> bytes:
    return b"\xdf" + count.to_bytes(4, "big")


@cache
def pairs(count: int) -> bytes:
    return b"".join(msgpack.packb(f"{number:x}") + b"\x80" for number in range(count))


EXPANDING: dict[str, Callable[[], bytes]] = {
    "empty lists": lambda: array_32(LARGEST) + b"\x90" * LARGEST,
    "empty lists in a message": lambda: b"\x91\x92\xa1m" + array_32(LARGEST) + b"\x90" * LARGEST,
    "empty maps": lambda: array_32(LARGEST) + b"\x80" * LARGEST,
    "lists of one": lambda: array_32(LARGEST // 2) + b"\x91\xc0" * (LARGEST // 2),
    "short texts": lambda: array_32(LARGEST // 3) + b"\xa2ab" * (LARGEST // 3),
    "pairs": lambda: b"\x91\x92\xa1m" + map_32(3 * MIB) + pairs(3 * MIB),
    "announced in one another": lambda: (array_32(LARGEST // 5)) * (LARGEST // 5),
    "announced in a large frame": lambda: (array_32(LARGEST) * 1000) + b"\xc0" * (LARGEST - 6000),
    "announced in a small frame": lambda: array_32(1) + array_32(60_000) * 1000 + b"\xc0" * 55_000,
    "short announcements in a small frame": lambda: b"\xdc\xff\xff" * 20_000,
}


def fed(payload: bytes) -> FrameDecoder:
    """A decoder that a frame of this payload has reached."""
    one = decoder()
    one.feed(stream_of([payload]))
    return one


@pytest.mark.parametrize("name", EXPANDING)
def test_a_frame_that_would_expand_is_refused_before_anything_is_built(name: str) -> None:
    one = fed(EXPANDING[name]())
    tracemalloc.start()
    try:
        started_s = time.thread_time()
        with pytest.raises((FrameTooLarge, FrameCorrupt)):
            one.next_batch()
        assert time.thread_time() - started_s < 3.0
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


MESSAGE = b"\x91\x92\xa1m"
WORST: dict[str, Callable[[], bytes]] = {
    **EXPANDING,
    "as many values as may be": lambda: (
        b"\x91\x92\xa1m" + array_32(VALUES_MAX - 4) + b"\x90" * VALUES_MAX
    ),
    "one large text": lambda: MESSAGE + b"\xc6" + LARGEST.to_bytes(4, "big") + bytes(LARGEST),
}
TENTH_OF_HEARTBEAT_S = 1.0
"""Of the time after which a task that is silent counts as lost, by default."""


@pytest.mark.parametrize("name", WORST)
def test_no_frame_keeps_the_wires_thread_for_a_tenth_of_the_heartbeat(name: str) -> None:
    one = fed(WORST[name]())
    started_s = time.thread_time()
    with suppress(FrameTooLarge, FrameCorrupt):
        one.next_batch()
    assert time.thread_time() - started_s < TENTH_OF_HEARTBEAT_S


def count_of(value: Any) -> int:
    if isinstance(value, list):
        return 1 + sum(map(count_of, value))
    if isinstance(value, dict):
        return 1 + sum(1 + count_of(held) for held in value.values())
    return 1


@given(PLAIN)
def test_values_are_counted_as_they_are(value: Any) -> None:
    packed = msgpack.packb(value)
    values = count_of(value)
    assert not holds_more_than(packed, values)
    assert values == 1 or holds_more_than(packed, values - 1)


@pytest.mark.parametrize(
    "value",
    [
        *(bytes(size) for size in (255, 256, 65_535, 65_536)),
        *("x" * size for size in (31, 32, 255, 256, 65_535, 65_536)),
        *([0] * size for size in (15, 16, 65_535, 65_536)),
        *({str(key): key for key in range(size)} for size in (15, 16, 65_535, 65_536)),
        *(-(2**bits) for bits in (5, 7, 15, 31, 63)),
        *(2**bits for bits in (7, 8, 16, 32, 63)),
    ],
    ids=lambda value: f"{type(value).__name__} {str(value)[:9]}",
)
def test_values_of_every_width_are_counted_as_they_are(value: Any) -> None:
    packed = msgpack.packb([value, value])
    values = count_of([value, value])
    assert not holds_more_than(packed, values)
    assert holds_more_than(packed, values - 1)


def test_a_message_of_as_many_values_as_may_be_passes_and_one_more_does_not() -> None:
    fitting = ["m", [0] * (VALUES_MAX - 3)]
    packed = pack_message(fitting, FRAME_BYTES_MAX)
    assert fed(batch_payload([packed], 1)).next_batch() == [fitting]
    beyond = ["m", [0] * (VALUES_MAX - 2)]
    with pytest.raises(MessageTooLarge, match=rf"'m' holds more than {VALUES_MAX} values"):
        pack_message(beyond, FRAME_BYTES_MAX)
    with pytest.raises(FrameTooLarge, match=f"more than {VALUES_MAX} values"):
        fed(batch_payload([msgpack.packb(beyond)], 1)).next_batch()


def test_a_hello_is_short() -> None:
    with running_wire() as wire:
        sock, session = wire.authenticated()
        with sock:
            hello = msgpack.packb([["hello", {"run_id": "x" * HELLO_BYTES_MAX}]])
            sock.sendall(sealed_frame(hello, FrameSeal(session.from_task))[:100])
            assert isinstance(wire.recorder.next_refusal(), FrameTooLarge)
        assert wire.recorder.no_task_came_in()


class LargeSender:
    """A task that says hello, then begins a large frame, and ends it when it is told to."""

    def __init__(self, wire: Wire, payload_bytes: int) -> None:
        self.sock, session = wire.authenticated()
        seal = FrameSeal(session.from_task)
        self.sock.sendall(sealed_frame(msgpack.packb([["hello", {}]]), seal))
        self.connection = wire.recorder.next_connection()
        self._rest = memoryview(sealed_frame(msgpack.packb([["m", bytes(payload_bytes)]]), seal))
        self.frame_bytes = len(self._rest)
        self.sock.setblocking(False)

    def send(self, *, leaving: int) -> bool:
        """Write as much as the socket takes; whether no more than `leaving` bytes are left."""
        while len(self._rest) > leaving:
            try:
                sent = self.sock.send(self._rest[: len(self._rest) - leaving])
            except (BlockingIOError, ssl.SSLWantWriteError):
                return False
            self._rest = self._rest[sent:]
        return True


@contextmanager
def large_senders(wire: Wire, count: int, payload_bytes: int) -> Iterator[list[LargeSender]]:
    with ExitStack() as stack:
        senders = [LargeSender(wire, payload_bytes) for _ in range(count)]
        for sender in senders:
            stack.enter_context(sender.sock)
        yield senders


def held(senders: list[LargeSender]) -> int:
    return sum(sender.connection.decoder.held_bytes for sender in senders)


def test_unfinished_frames_of_all_connections_stay_within_their_bound_and_all_arrive() -> None:
    frame_bytes, count = 8 * MIB, 12
    bound = 2 * frame_bytes + MIB
    with (
        running_wire(frame_bytes_max=frame_bytes + MIB, incoming_bytes_max=bound) as wire,
        large_senders(wire, count, frame_bytes) as senders,
    ):
        for _ in range(200):
            for sender in senders:
                sender.send(leaving=1)
        assert eventually(lambda: held(senders) >= 2 * frame_bytes - MIB)
        assert held(senders) <= bound + count * 2 * PLACELESS_BYTES_MAX
        assert wire.recorder.no_message_waits()
        assert eventually(lambda: sum(sender.send(leaving=0) for sender in senders) == count)
        lengths = [len(wire.recorder.next_message()[1]) for _ in senders]
        assert lengths == [frame_bytes] * count
        assert wire.recorder.nothing_was_lost()


def test_a_frame_that_never_ends_gives_way_to_one_that_waits() -> None:
    frame_bytes = 4 * MIB
    with (
        running_wire(
            frame_bytes_max=frame_bytes + MIB,
            incoming_bytes_max=frame_bytes + MIB,
            heartbeat_timeout_s=0.5,
        ) as wire,
        large_senders(wire, 2, frame_bytes) as (stalled, patient),
    ):
        left = 100_000
        assert eventually(lambda: stalled.send(leaving=left))
        assert eventually(lambda: held([stalled]) > frame_bytes - left)

        def is_lost_although_it_drips() -> bool:
            nonlocal left
            left -= 1
            with suppress(ConnectionError):
                stalled.send(leaving=left)
            patient.send(leaving=0)
            return not wire.recorder.nothing_was_lost()

        assert eventually(is_lost_although_it_drips)
        lost, reason = wire.recorder.next_loss()
        assert lost is stalled.connection
        assert f"a frame of {stalled.frame_bytes} bytes has not arrived whole" in reason
        assert eventually(lambda: patient.send(leaving=0))
        assert len(wire.recorder.next_message()[1]) == frame_bytes


def test_a_lost_connection_keeps_nothing_of_what_waited_in_either_direction() -> None:
    with running_wire() as wire, large_senders(wire, 1, 4 * MIB) as (sender,):
        for _ in range(32):
            sender.connection.send(["m", bytes(MIB)])
        assert eventually(lambda: sender.send(leaving=1))
        assert eventually(lambda: held([sender]) == sender.frame_bytes - 1)
        assert sender.connection.waiting_bytes
        sender.connection.close("the test is over")
        lost, _ = wire.recorder.next_loss()
        assert (lost.decoder.held_bytes, lost.waiting_bytes) == (0, 0)


def test_places_are_given_in_order_and_freed_with_their_connection() -> None:
    frames: IncomingFrames[str] = IncomingFrames(10 * MIB)
    frames.enter("small", PLACELESS_BYTES_MAX - 1, 0.0)
    frames.enter("a", 6 * MIB, 1.0)
    frames.enter("b", 6 * MIB, 2.0)
    frames.enter("c", 1 * MIB, 3.0)
    assert [frames.is_waiting(name) for name in ("small", "a", "b", "c")] == [
        *(False, False, True, True)
    ]
    assert frames.overdue(1.0, 0.0) == []
    assert frames.overdue(1.5, 0.0) == ["a"]
    assert frames.leave("small", 4.0) == []
    assert frames.leave("a", 4.0) == ["b", "c"]
    assert frames.overdue(100.0, 0.0) == []
    frames.enter("a", 6 * MIB, 5.0)
    assert frames.is_waiting("a")
    assert frames.leave("a", 6.0) == []
    assert not frames.is_waiting("a")
    assert frames.leave("b", 7.0) == []
    frames.enter("a", 9 * MIB, 8.0)
    assert frames.has_place("a")


def test_what_is_larger_than_all_places_is_let_in_alone_and_has_time_for_its_size() -> None:
    frames: IncomingFrames[str] = IncomingFrames(10 * MIB)
    frames.enter("a", 1 * MIB, 0.0)
    frames.enter("huge", 320 * MIB, 0.0)
    frames.enter("b", 1 * MIB, 0.0)
    assert [frames.is_waiting(name) for name in ("a", "huge", "b")] == [False, True, True]
    assert frames.leave("a", 1.0) == ["huge"]
    assert frames.overdue(100.0, 10.0) == []
    assert frames.overdue(102.0, 10.0) == ["huge"]
    assert frames.leave("huge", 102.0) == ["b"]
