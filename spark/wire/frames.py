"""Frames: how messages become bytes and bytes become messages.

A frame is a 4-byte big-endian length of what follows, a 16-byte tag (`sealing`), and one msgpack
value: a list of messages, or a map that speaks about the connection itself (`{"closed": reason}`,
the last frame of a side that closes). An empty list is a heartbeat without a value. A message is a
non-empty list `[tag, ...]` of plain values: None, bool, int, float, str, bytes, list, and map with
str or bytes keys. Extension types, timestamps among them, are refused by the receiver.

Decides the format and its limits: the length is checked before a byte of the frame is stored, and a
frame is parsed only after its tag was found genuine and its values were counted (`counting`).
Leaves sockets, locks and the meaning of messages to others. Runs on whichever thread calls; a
decoder belongs to its reader.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

import msgpack

from epochgate.runtime.api.packing import (
    PACK_ERRORS,
    PACKERS,
    PayloadNotPlain,
    unpacked,
    why_unsent,
)
from epochgate.spark.wire.counting import (
    UNCOUNTED_BYTES_MAX,
    VALUES_MAX,
    holds_more_than,
    may_be_many,
)
from epochgate.spark.wire.errors import (
    FrameCorrupt,
    FrameTooLarge,
    MessageNotPlain,
    MessageTooLarge,
    WireError,
)
from epochgate.spark.wire.sealing import TAG_BYTES, FrameSeal

Message: TypeAlias = Sequence[Any]
Batch: TypeAlias = list[list[Any]]

FRAME_BYTES_MAX: Final = 32 * 1024 * 1024
FRAME_BYTES_MIN: Final = 1024
LENGTH = struct.Struct(">I")
ARRAY_HEADER = struct.Struct(">BI")
PREFIX_BYTES: Final = LENGTH.size + TAG_BYTES
ENVELOPE_BYTES: Final = TAG_BYTES + ARRAY_HEADER.size
_ARRAY_32: Final = 0xDD
_MESSAGES_PER_PACK: Final = 128
_PACK_BYTES_TARGET: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Packed:
    """Consecutive messages in msgpack, without the header of a list around them."""

    count: int
    data: bytes | memoryview


def pack_message(message: Message, frame_bytes_max: int) -> bytes:
    """One message in msgpack.

    Raises `MessageNotPlain` when it is not a non-empty list or tuple of plain values,
    `MessageTooLarge` when it cannot travel in a frame of `frame_bytes_max` bytes.
    """
    if type(message) not in (list, tuple) or not message:
        _refuse_shape(message)
    try:
        data: bytes = PACKERS.packer.pack(message)
    except PACK_ERRORS as error:
        raise MessageNotPlain(why_unsent(message[0], error)) from error
    if len(data) > frame_bytes_max - ENVELOPE_BYTES:
        raise MessageTooLarge(
            f"message {message[0]!r} has {len(data)} bytes, and a frame of frame_bytes_max = "
            f"{frame_bytes_max} carries at most {frame_bytes_max - ENVELOPE_BYTES}. Raise "
            "frame_bytes_max on both sides, or send the payload in parts."
        )
    if len(data) > UNCOUNTED_BYTES_MAX and holds_more_than(data, VALUES_MAX):
        raise MessageTooLarge(
            f"message {message[0]!r} holds more than {VALUES_MAX} values. Send it in parts, or "
            "pack what it holds into bytes, which count as one value."
        )
    return data


def pack_messages(messages: Sequence[Message], frame_bytes_max: int) -> list[Packed]:
    """Many messages in msgpack, several to a piece; raises like `pack_message`, and then nothing
    was packed.
    """
    pieces: list[Packed] = []
    for first in range(0, len(messages), _MESSAGES_PER_PACK):
        part = list(messages[first : first + _MESSAGES_PER_PACK])
        pieces.extend(_pack_together(part, frame_bytes_max))
    return pieces


def _pack_together(messages: list[Message], frame_bytes_max: int) -> list[Packed]:
    if set(map(type, messages)) <= {list, tuple} and all(messages):
        # A failure here is left to the way below, which finds the message at fault and names it.
        with contextlib.suppress(*PACK_ERRORS):
            data: bytes = PACKERS.packer.pack(messages)
            count = len(messages)
            header_bytes = 1 if count < 16 else 3
            together_bytes_max = min(_PACK_BYTES_TARGET, frame_bytes_max - ENVELOPE_BYTES)
            if len(data) - header_bytes <= together_bytes_max:
                return [Packed(count, memoryview(data)[header_bytes:])]
    return [Packed(1, pack_message(message, frame_bytes_max)) for message in messages]


def _refuse_shape(message: object) -> NoReturn:
    raise MessageNotPlain(
        f"a message is a non-empty list or tuple [tag, ...], not {type(message).__name__} "
        f"{str(message)[:80]!r}."
    )


def batch_payload(pieces: Sequence[bytes | memoryview], count: int) -> bytes:
    """The payload of a frame that carries `count` packed messages."""
    return b"".join((ARRAY_HEADER.pack(_ARRAY_32, count), *pieces))


def farewell_payload(reason: str) -> bytes:
    """The payload of the frame with which a side says why it closes."""
    data: bytes = msgpack.packb({"closed": reason[:500]})
    return data


def sealed_frame(payload: bytes, seal: FrameSeal) -> bytes:
    """A whole frame: length, tag, payload."""
    return b"".join((LENGTH.pack(TAG_BYTES + len(payload)), seal.next_tag(payload), payload))


class FrameDecoder:
    """Turns arriving bytes, in whatever pieces, into batches of messages.

    Holds at most one frame that is not complete, so at most `frame_bytes_max` bytes plus one
    `feed`. Batches before a bad frame come out before its error is raised; after an error, each
    call raises it again.
    """

    def __init__(self, seal: FrameSeal, frame_bytes_max: int) -> None:
        self._seal = seal
        self.frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()
        self._start = 0
        self.failure: WireError | None = None
        self.farewell: str | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes that have arrived and are in no batch yet."""
        return len(self._buffer) - self._start

    @property
    def awaited_bytes(self) -> int:
        """The whole length of the frame under way, once it is known; 0 before."""
        if self.held_bytes < LENGTH.size:
            return 0
        (frame_bytes,) = LENGTH.unpack_from(self._buffer, self._start)
        return LENGTH.size + int(frame_bytes)

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes as they arrived."""
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += data

    def next_batch(self) -> Batch | None:
        """The messages of the next complete frame (none for a heartbeat), or None until more bytes
        arrive.

        None also once the peer said farewell; `farewell` then holds its reason. Raises
        `FrameTooLarge`, `FrameForged`, `FrameCorrupt`.
        """
        if self.failure is not None:
            raise self.failure
        if self.farewell is not None:
            return None
        try:
            return self._next_batch()
        except WireError as failure:
            self.failure = failure
            self._buffer.clear()
            self._start = 0
            raise

    def _next_batch(self) -> Batch | None:
        buffer, start = self._buffer, self._start
        if len(buffer) - start < LENGTH.size:
            return None
        (frame_bytes,) = LENGTH.unpack_from(buffer, start)
        self._check_length(frame_bytes)
        end = start + LENGTH.size + frame_bytes
        if len(buffer) < end:
            return None
        payload_start = start + PREFIX_BYTES
        with memoryview(buffer) as view, view[payload_start:end] as payload:
            self._seal.check_next(bytes(view[start + LENGTH.size : payload_start]), payload)
            value = unpack_plain(payload)
        if end == len(buffer):
            buffer.clear()
            end = 0
        self._start = end
        if type(value) is dict:
            self.farewell = _farewell_of(value)
            return None
        return _checked_batch(value)

    def _check_length(self, frame_bytes: int) -> None:
        if frame_bytes > self.frame_bytes_max:
            raise FrameTooLarge(
                f"the peer announced a frame of {frame_bytes} bytes; frame_bytes_max is "
                f"{self.frame_bytes_max}. Give both sides the same frame_bytes_max, or send the "
                "payload in parts."
            )
        if frame_bytes <= TAG_BYTES:
            raise FrameCorrupt(
                f"the peer announced a frame of {frame_bytes} bytes; the shortest has "
                f"{TAG_BYTES + 1}. Something else than epochgate writes into this connection."
            )


def unpack_plain(payload: bytes | memoryview) -> Any:
    """The plain msgpack value in `payload`; raises `FrameCorrupt` for anything else, extension
    types included, and `FrameTooLarge` for more values than the batch of one message may hold.
    """
    if may_be_many(payload) and holds_more_than(payload, 1 + VALUES_MAX):
        if len(payload) <= VALUES_MAX:
            raise FrameCorrupt(
                f"a frame of {len(payload)} bytes announces more than {VALUES_MAX} values, and "
                "each of them takes a byte at least."
            )
        raise FrameTooLarge(
            f"the peer sent a frame of {len(payload)} bytes that holds more than {VALUES_MAX} "
            "values. Give both sides the same version of epochgate, which sends no such frame."
        )
    try:
        return unpacked(payload)
    except PayloadNotPlain as error:
        raise FrameCorrupt(str(error)) from error


def _checked_batch(value: Any) -> Batch:
    if type(value) is not list:
        raise FrameCorrupt(
            f"a frame holds {type(value).__name__}, where a list of messages was expected."
        )
    if not set(map(type, value)) <= {list} or not all(value):
        raise FrameCorrupt(
            "a frame holds something else than messages, which are non-empty lists [tag, ...]."
        )
    return value


def _farewell_of(value: dict[Any, Any]) -> str:
    reason = value.get("closed")
    if type(reason) is not str:
        raise FrameCorrupt(
            f"a frame holds an unknown control map with the keys {sorted(map(str, value))[:5]}."
        )
    return reason
