"""Frames: what goes in comes out, in whatever pieces it arrives, and nothing else does."""

from __future__ import annotations

import itertools
import socket
import struct
import tracemalloc
from typing import Any, cast

import msgpack
import pytest
from hypothesis import given, settings, strategies as st

from epochgate.spark.wire import (
    FrameCorrupt,
    FrameForged,
    FrameTooLarge,
    MessageNotPlain,
    MessageTooLarge,
    WireError,
)
from epochgate.spark.wire.frames import (
    ENVELOPE_BYTES,
    FRAME_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    FrameDecoder,
    farewell_payload,
    pack_message,
    pack_messages,
    sealed_frame,
)
from epochgate.spark.wire.outgoing import FRAME_BYTES_TARGET, Outgoing
from epochgate.spark.wire.sealing import TAG_BYTES, FrameSeal

KEY = bytes(range(32))

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)
MESSAGES = st.lists(PLAIN, min_size=1, max_size=4)
BATCHES = st.lists(st.lists(MESSAGES, max_size=5), max_size=6)


def seal() -> FrameSeal:
    return FrameSeal(KEY)


def decoder(frame_bytes_max: int = FRAME_BYTES_MAX) -> FrameDecoder:
    return FrameDecoder(seal(), frame_bytes_max, MESSAGE_BYTES_MAX)


def stream_of(payloads: list[bytes]) -> bytes:
    one = seal()
    return b"".join(sealed_frame(payload, one) for payload in payloads)


def stream_of_batches(batches: list[list[Any]]) -> bytes:
    return stream_of([msgpack.packb(batch) for batch in batches])


def pieces_of(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    return [stream[first:last] for first, last in itertools.pairwise(places)]


def decode(pieces: list[bytes], one: FrameDecoder) -> tuple[list[list[Any]], type | None]:
    """The batches that came out, and the type of the error that ended it."""
    batches = []
    try:
        for piece in pieces:
            one.feed(piece)
            while (batch := one.next_batch()) is not None:
                batches.append(batch)
    except WireError as error:
        return batches, type(error)
    return batches, None


def everything_written(outgoing: Outgoing) -> list[list[list[Any]]]:
    """The batches that `outgoing` writes, one per frame."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        one, batches, written = decoder(), [], False
        while not written:
            written = outgoing.write_to(ours)
            try:
                while data := theirs.recv(1 << 20):
                    one.feed(data)
            except BlockingIOError:
                pass
        while (batch := one.next_batch()) is not None:
            batches.append(batch)
    return batches


@given(BATCHES, st.lists(st.integers(0, 2000), max_size=20))
def test_batches_survive_any_chunking(batches: list[list[Any]], cuts: list[int]) -> None:
    assert decode(pieces_of(stream_of_batches(batches), cuts), decoder()) == (batches, None)


@given(
    BATCHES.filter(any), st.integers(0, 10**6), st.integers(1, 255), st.lists(st.integers(0, 500))
)
def test_no_altered_byte_is_taken_for_a_message(
    batches: list[list[Any]], place: int, change: int, cuts: list[int]
) -> None:
    stream = bytearray(stream_of_batches(batches))
    stream[place % len(stream)] ^= change
    found, error = decode(pieces_of(bytes(stream), cuts), decoder())
    # A longer length may wait for bytes that never come; what came out is a proper beginning.
    assert found == batches[: len(found)]
    assert error is not None or len(found) < len(batches)


@given(st.binary(min_size=1, max_size=300), st.lists(st.integers(0, 300)))
def test_garbage_yields_nothing(garbage: bytes, cuts: list[int]) -> None:
    assert decode(pieces_of(garbage, cuts), decoder())[0] == []


@given(st.binary(max_size=60))
def test_genuine_frames_with_arbitrary_payload_are_batches_or_refused(payload: bytes) -> None:
    batches, error = decode([stream_of([payload])], decoder())
    assert error in (None, FrameCorrupt)
    assert all(type(m) is list and m for batch in batches for m in batch)


@given(st.lists(MESSAGES, max_size=30))
def test_packing_together_and_one_by_one_give_the_same_batch(messages: list[list[Any]]) -> None:
    together, single = Outgoing(seal(), FRAME_BYTES_MAX), Outgoing(seal(), FRAME_BYTES_MAX)
    for piece in pack_messages(messages, FRAME_BYTES_MAX):
        together.add(piece.data, piece.count)
    for message in messages:
        single.add(pack_message(message, FRAME_BYTES_MAX), 1)
    expected = [messages] if messages else []
    assert everything_written(together) == everything_written(single) == expected


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=60))
def test_every_frame_stays_under_the_limit(sizes: list[int]) -> None:
    frame_bytes_max = 4096
    outgoing = Outgoing(seal(), frame_bytes_max)
    messages = [["data", bytes(size)] for size in sizes]
    for piece in pack_messages(messages, frame_bytes_max):
        outgoing.add(piece.data, piece.count)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        assert outgoing.write_to(ours)
        found, error = decode([theirs.recv(1 << 20)], decoder(frame_bytes_max))
    assert error is None
    assert [message for batch in found for message in batch] == messages


def test_many_messages_leave_in_frames_of_the_target_size() -> None:
    outgoing = Outgoing(seal(), FRAME_BYTES_MAX)
    messages = [["event", 0, number, bytes(80)] for number in range(5000)]
    for message in messages:
        outgoing.add(pack_message(message, FRAME_BYTES_MAX), 1)
    batches = everything_written(outgoing)
    assert [message for batch in batches for message in batch] == messages
    assert len(batches) <= 5000 * 100 // FRAME_BYTES_TARGET + 1


def test_the_length_is_refused_before_the_frame_arrives() -> None:
    one = decoder(frame_bytes_max=2048)
    one.feed(struct.pack(">I", 2049))
    with pytest.raises(FrameTooLarge, match="2049 bytes; frame_bytes_max is 2048"):
        one.next_batch()
    one.feed(bytes(10))
    with pytest.raises(FrameTooLarge):
        one.next_batch()


def test_a_frame_of_exactly_the_limit_passes() -> None:
    frame_bytes_max = 2048
    fitting = ["m", bytes(frame_bytes_max - ENVELOPE_BYTES - 6)]
    assert len(pack_message(fitting, frame_bytes_max)) == frame_bytes_max - ENVELOPE_BYTES
    outgoing = Outgoing(seal(), frame_bytes_max)
    outgoing.add(pack_message(fitting, frame_bytes_max), 1)
    assert everything_written(outgoing) == [[fitting]]
    with pytest.raises(
        MessageTooLarge, match=r"message 'm' has 2028 bytes.*message_bytes_max = 2048"
    ):
        pack_message(["m", bytes(frame_bytes_max - ENVELOPE_BYTES - 5)], frame_bytes_max)


@pytest.mark.parametrize(
    "payload",
    [
        msgpack.packb([["m", msgpack.ExtType(5, b"x")]]),
        msgpack.packb([["m", msgpack.ExtType(5, b"")]]),
        msgpack.packb([["m", msgpack.Timestamp(1, 0)]]),
        msgpack.packb([["m", {1: 2}]]),
        msgpack.packb([["m"], []]),
        msgpack.packb([["m"], "text"]),
        msgpack.packb("text"),
        msgpack.packb({"opened": "x"}),
        msgpack.packb({"closed": 7}),
        msgpack.packb([["m"]]) + b"\x90",
        b"\x91" * 3000 + b"\x90",
        b"\xdd\xff\xff\xff\xff",
        b"\x91\x91\xa1\xff",
        b"\xc1",
    ],
)
def test_a_genuine_frame_with_anything_but_messages_is_corrupt(payload: bytes) -> None:
    one = decoder()
    one.feed(stream_of([payload]))
    with pytest.raises(FrameCorrupt):
        one.next_batch()


@pytest.mark.parametrize("frame_bytes", [0, 1, TAG_BYTES])
def test_a_length_below_the_shortest_frame_is_corrupt(frame_bytes: int) -> None:
    one = decoder()
    one.feed(struct.pack(">I", frame_bytes))
    with pytest.raises(FrameCorrupt):
        one.next_batch()


def frames_of(count: int) -> list[bytes]:
    one = seal()
    return [sealed_frame(msgpack.packb([["m", number]]), one) for number in range(count)]


@pytest.mark.parametrize(
    ("order", "accepted"),
    [((0, 0), 1), ((0, 2), 1), ((1, 0), 0), ((0, 1, 1), 2), ((0, 1, 0), 2), ((2,), 0)],
)
def test_replayed_omitted_and_reordered_frames_are_forged(
    order: tuple[int, ...], accepted: int
) -> None:
    frames = frames_of(3)
    batches, error = decode([frames[number] for number in order], decoder())
    assert (len(batches), error) == (accepted, FrameForged)


def test_a_frame_of_another_connection_or_direction_is_forged() -> None:
    other = FrameSeal(bytes(32))
    assert decode([sealed_frame(msgpack.packb([["m"]]), other)], decoder()) == ([], FrameForged)


@pytest.mark.parametrize(
    "message",
    [[], (), "text", {"a": 1}, None, ["m", object()], ["m", 2**64], ["m", {1, 2}], ["m", "\ud800"]],
)
def test_what_cannot_be_sent_is_refused_at_the_sender(message: Any) -> None:
    with pytest.raises(MessageNotPlain):
        pack_message(message, FRAME_BYTES_MAX)
    with pytest.raises(MessageNotPlain):
        pack_messages([["good"], message], FRAME_BYTES_MAX)
    assert pack_message(["good"], FRAME_BYTES_MAX) == msgpack.packb(["good"])


def test_a_message_that_contains_itself_is_refused() -> None:
    endless: list[Any] = ["m"]
    endless.append(endless)
    with pytest.raises(MessageNotPlain):
        pack_message(endless, FRAME_BYTES_MAX)


def test_a_farewell_ends_the_stream() -> None:
    one = decoder()
    one.feed(stream_of([msgpack.packb([["m"]]), msgpack.packb({"closed": "why"}), b"\x90"]))
    assert one.next_batch() == [["m"]]
    assert one.next_batch() is None
    assert one.farewell == "why"
    assert one.next_batch() is None


@given(st.lists(st.integers(0, 9000), min_size=1, max_size=8), st.integers(1, 5000))
def test_messages_larger_than_a_part_arrive_whole_in_whatever_pieces(
    sizes: list[int], piece_bytes: int
) -> None:
    outgoing, messages = Outgoing(seal(), 2048), [["state", bytes(size)] for size in sizes]
    for message in messages:
        outgoing.add(pack_message(message, MESSAGE_BYTES_MAX), 1)
    waiting_bytes = outgoing.waiting_bytes
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        assert outgoing.write_to(ours)
        arrived = theirs.recv(1 << 20)
    assert outgoing.waiting_bytes == 0
    assert len(arrived) <= waiting_bytes + 2048 * len(sizes)
    one, found = decoder(2048), []
    for start in range(0, len(arrived), piece_bytes):
        one.feed(arrived[start : start + piece_bytes])
        while (batch := one.next_batch()) is not None:
            found += batch
    assert found == messages
    assert (one.held_bytes, one.awaited_bytes) == (0, 0)


def part(data: bytes) -> bytes:
    return b"\xc6" + len(data).to_bytes(4, "big") + data


WHOLE = msgpack.packb([["m", 1]])


@pytest.mark.parametrize(
    "payloads",
    [
        [msgpack.packb({"parts": 0})],
        [msgpack.packb({"parts": -1})],
        [msgpack.packb({"parts": True})],
        [msgpack.packb({"parts": 5, "more": 1})],
        [part(WHOLE)],
        [msgpack.packb({"parts": len(WHOLE)}), part(b"")],
        [msgpack.packb({"parts": len(WHOLE)}), part(WHOLE + b"x")],
        [msgpack.packb({"parts": len(WHOLE)}), part(WHOLE)[:-1]],
        [msgpack.packb({"parts": len(WHOLE)}), WHOLE],
        [msgpack.packb({"parts": 9}), msgpack.packb({"parts": 9})],
        [msgpack.packb({"parts": 3}), part(b"\xc1\xc1\xc1")],
    ],
    ids=repr,
)
def test_parts_that_do_not_fit_together_are_corrupt(payloads: list[bytes]) -> None:
    one = decoder()
    one.feed(stream_of(payloads))
    with pytest.raises(FrameCorrupt):
        one.next_batch()


def test_a_side_may_close_among_the_parts_of_a_message() -> None:
    one = decoder()
    payloads = [msgpack.packb({"parts": len(WHOLE)}), part(WHOLE[:1]), farewell_payload("gone")]
    one.feed(stream_of(payloads))
    assert one.next_batch() is None
    assert one.farewell == "gone"


def test_a_message_that_is_announced_too_large_is_refused_before_it_arrives() -> None:
    one = FrameDecoder(seal(), FRAME_BYTES_MAX, message_bytes_max=5000)
    one.feed(stream_of([msgpack.packb({"parts": 5001})]))
    with pytest.raises(FrameTooLarge, match="5001 bytes; message_bytes_max is 5000"):
        one.next_batch()


def test_a_large_message_is_copied_by_parts_on_its_way() -> None:
    state_bytes = 64 << 20
    message = ["state", bytes(state_bytes)]
    tracemalloc.start()
    try:
        outgoing, one = Outgoing(seal(), FRAME_BYTES_MAX), decoder()
        (piece,) = pack_messages([["metrics", {}], message], MESSAGE_BYTES_MAX)
        outgoing.add(piece.data, piece.count)
        found = None
        while found is None:
            one.feed(next_frame(outgoing))
            found = one.next_batch()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found[1] == message
    # Packed (in a packer that grows by doubling), arrived, and what it has become.
    assert peak_bytes < 4.5 * state_bytes


class OneFrame:
    """A socket that takes one frame, and then no more."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def send(self, data: bytes | memoryview) -> int:
        if self.taken:
            raise BlockingIOError
        self.taken.append(bytes(data))
        return len(data)


def next_frame(outgoing: Outgoing) -> bytes:
    sock = OneFrame()
    outgoing.write_to(cast(Any, sock))
    return sock.taken[0]
