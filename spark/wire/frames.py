"""Frames: how messages become bytes and bytes become messages.

A frame is a 4-byte big-endian length of what follows, a 16-byte tag (`sealing`), and one msgpack
value: a list of messages, a map that speaks about the connection itself (`{"closed": reason}`, the
last frame of a side that closes), or bytes: a part. A list that is longer than a part travels in
parts, behind a frame `{"parts": its bytes}`: no frame is large, each is checked by itself, and what
is sent is copied a part at a time. An empty list is a heartbeat without a value. A message is a
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

import msgpack

from epochgate.runtime.api.packing import (
    PACK_ERRORS,
    PayloadNotPlain,
    packed,
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
MESSAGE_BYTES_MAX: Final = 2 * 1024**3
PART_BYTES: Final = 1024 * 1024
LENGTH = struct.Struct(">I")
ARRAY_HEADER = struct.Struct(">BI")
PART_HEADER = struct.Struct(">BI")
PREFIX_BYTES: Final = LENGTH.size + TAG_BYTES
ENVELOPE_BYTES: Final = TAG_BYTES + ARRAY_HEADER.size
_ARRAY_32: Final = 0xDD
_BIN_32: Final = 0xC6
_INCOMPLETE: Final = object()
_PART: Final = object()
_MESSAGES_PER_PACK: Final = 128
_PACK_BYTES_TARGET: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Packed:
    """Consecutive messages in msgpack, without the header of a list around them."""

    count: int
    data: bytes | memoryview


def pack_message(message: Message, message_bytes_max: int) -> bytes | memoryview:
    """One message in msgpack.

    Raises `MessageNotPlain` when it is not a non-empty list or tuple of plain values,
    `MessageTooLarge` when it has more than `message_bytes_max` bytes.
    """
    if type(message) not in (list, tuple) or not message:
        _refuse_shape(message)
    try:
        data = packed(message)
    except PACK_ERRORS as error:
        raise MessageNotPlain(why_unsent(message[0], error)) from error
    if len(data) > message_bytes_max - ENVELOPE_BYTES:
        raise MessageTooLarge(
            f"message {message[0]!r} has {len(data)} bytes, and message_bytes_max = "
            f"{message_bytes_max} allows {message_bytes_max - ENVELOPE_BYTES}. Give the job a "
            "larger message_bytes_max, or let more subtasks share the state."
        )
    if len(data) > UNCOUNTED_BYTES_MAX and holds_more_than(data, VALUES_MAX):
        raise MessageTooLarge(
            f"message {message[0]!r} holds more than {VALUES_MAX} values. Send it in parts, or "
            "pack what it holds into bytes, which count as one value."
        )
    return data


def pack_messages(messages: Sequence[Message], message_bytes_max: int) -> list[Packed]:
    """Many messages in msgpack, several to a piece; raises like `pack_message`, and then nothing
    was packed.
    """
    pieces: list[Packed] = []
    for first in range(0, len(messages), _MESSAGES_PER_PACK):
        part = list(messages[first : first + _MESSAGES_PER_PACK])
        pieces.extend(_pack_together(part, message_bytes_max))
    return pieces


def _pack_together(messages: list[Message], message_bytes_max: int) -> list[Packed]:
    if set(map(type, messages)) <= {list, tuple} and all(messages):
        # A failure here is left to the way below, which finds the message at fault and names it.
        with contextlib.suppress(*PACK_ERRORS):
            data = packed(messages)
            count = len(messages)
            header_bytes = 1 if count < 16 else 3
            together_bytes = len(data) - header_bytes
            # What is large is not packed again: it travels in parts, whatever it holds.
            is_piece = together_bytes <= _PACK_BYTES_TARGET or (
                together_bytes > PART_BYTES and not holds_more_than(data, VALUES_MAX)
            )
            if is_piece and together_bytes <= message_bytes_max - ENVELOPE_BYTES:
                return [Packed(count, memoryview(data)[header_bytes:])]
    return [Packed(1, pack_message(message, message_bytes_max)) for message in messages]


def parts_of(payload: Sequence[bytes | memoryview], part_bytes: int) -> Iterator[bytes]:
    """The payloads of the frames that carry the pieces of a long payload, one after the other."""
    yield msgpack.packb({"parts": sum(map(len, payload))})
    for piece in payload:
        view = memoryview(piece)
        for start in range(0, len(view), part_bytes):
            part = view[start : start + part_bytes]
            yield b"".join((PART_HEADER.pack(_BIN_32, len(part)), part))


def _refuse_shape(message: object) -> NoReturn:
    raise MessageNotPlain(
        f"a message is a non-empty list or tuple [tag, ...], not {type(message).__name__} "
        f"{str(message)[:80]!r}."
    )


def framed_bytes(payload: Sequence[bytes | memoryview], part_bytes: int) -> int:
    """The bytes of all frames that `parts_of` makes."""
    parts = sum(-(-len(piece) // part_bytes) for piece in payload)
    announcement = msgpack.packb({"parts": sum(map(len, payload))})
    overhead_bytes = PREFIX_BYTES + PART_HEADER.size
    return PREFIX_BYTES + len(announcement) + sum(map(len, payload)) + parts * overhead_bytes


def batch_header(count: int) -> bytes:
    """Return the bytes that stand before `count` packed messages in a payload."""
    return ARRAY_HEADER.pack(_ARRAY_32, count)


def batch_payload(pieces: Sequence[bytes | memoryview], count: int) -> bytes:
    """The payload of a frame that carries `count` packed messages."""
    return b"".join((batch_header(count), *pieces))


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
    `feed`, and the parts of one batch, at most `message_bytes_max` bytes. Batches before a bad
    frame come out before its error is raised; after an error, each call raises it again.
    """

    def __init__(
        self, seal: FrameSeal, frame_bytes_max: int, message_bytes_max: int = MESSAGE_BYTES_MAX
    ) -> None:
        self._seal = seal
        self.frame_bytes_max, self.message_bytes_max = frame_bytes_max, message_bytes_max
        self._buffer = bytearray()
        self._start = 0
        self._parts = bytearray()
        self.delivered_bytes = 0
        """Of all frames so far whose values were taken."""
        self._announced_bytes = 0
        """Of the batch whose parts arrive; 0 when none does."""
        self.failure: WireError | None = None
        self.farewell: str | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes that have arrived and are in no batch yet."""
        return len(self._buffer) - self._start + len(self._parts)

    @property
    def awaited_bytes(self) -> int:
        """The whole length of the frame under way, or of all parts of a batch, once it is known; 0
        before.
        """
        if self._announced_bytes:
            return self._announced_bytes
        if len(self._buffer) - self._start < LENGTH.size:
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
            self.forget()
            raise

    def forget(self) -> None:
        """Free what has arrived and is in no batch: none follows."""
        self._buffer, self._parts = bytearray(), bytearray()
        self._start = self._announced_bytes = 0

    def _next_batch(self) -> Batch | None:
        while (frame := self._next_frame()) is not _INCOMPLETE:
            if type(frame) is dict:
                self._take_control(frame)
                if self.farewell is not None:
                    return None
            elif frame is not _PART:
                return _checked_batch(frame)
            elif len(self._parts) == self._announced_bytes:
                parts, self._parts, self._announced_bytes = self._parts, bytearray(), 0
                return _checked_batch(unpack_plain(parts))
        return None

    def _next_frame(self) -> Any:
        """The value of the next frame; _PART for one whose part is kept, or _INCOMPLETE."""
        buffer, start = self._buffer, self._start
        if len(buffer) - start < LENGTH.size:
            return _INCOMPLETE
        (frame_bytes,) = LENGTH.unpack_from(buffer, start)
        self._check_length(frame_bytes)
        end = start + LENGTH.size + frame_bytes
        if len(buffer) < end:
            return _INCOMPLETE
        payload_start = start + PREFIX_BYTES
        with memoryview(buffer) as view, view[payload_start:end] as payload:
            self._seal.check_next(bytes(view[start + LENGTH.size : payload_start]), payload)
            value = self._part(payload) if self._announced_bytes else unpack_plain(payload)
        if end == len(buffer):
            buffer.clear()
            end = 0
        self._start = end
        self.delivered_bytes += frame_bytes
        return value

    def _part(self, payload: memoryview) -> Any:
        if payload[0] != _BIN_32:
            value = unpack_plain(payload)
            if type(value) is dict and "closed" in value:
                return value
            raise FrameCorrupt("a frame that is no part came among the parts of a batch.")
        part_bytes = len(payload) - PART_HEADER.size
        missing_bytes = self._announced_bytes - len(self._parts)
        if not (
            0 < part_bytes <= missing_bytes
            and PART_HEADER.unpack_from(payload) == (_BIN_32, part_bytes)
        ):
            raise FrameCorrupt(
                f"a part of {part_bytes} bytes came where {missing_bytes} bytes were missing."
            )
        self._parts += payload[PART_HEADER.size :]
        return _PART

    def _take_control(self, value: dict[Any, Any]) -> None:
        if list(value) != ["parts"]:
            self.farewell = _farewell_of(value)
            return
        announced = value["parts"]
        if type(announced) is not int or announced <= 0:
            raise FrameCorrupt(f"a frame announces parts of {str(announced)[:20]} bytes.")
        if announced > self.message_bytes_max:
            raise FrameTooLarge(
                f"the peer announced a message of {announced} bytes; message_bytes_max is "
                f"{self.message_bytes_max}. Give the job a larger message_bytes_max, or let more "
                "subtasks share the state."
            )
        self._announced_bytes = announced

    def _check_length(self, frame_bytes: int) -> None:
        if frame_bytes > self.frame_bytes_max:
            raise FrameTooLarge(
                f"the peer announced a frame of {frame_bytes} bytes; frame_bytes_max is "
                f"{self.frame_bytes_max}. Give both sides the same frame_bytes_max."
            )
        if frame_bytes <= TAG_BYTES:
            raise FrameCorrupt(
                f"the peer announced a frame of {frame_bytes} bytes; the shortest has "
                f"{TAG_BYTES + 1}. Something else than epochgate writes into this connection."
            )


def unpack_plain(payload: bytes | bytearray | memoryview) -> Any:
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
