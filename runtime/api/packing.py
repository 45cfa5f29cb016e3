"""Plain values as bytes: what the wire packs messages with, and unpacks them with.

Decides what travels (what msgpack expresses, with str or bytes as keys), and what it has become
where it arrives: a tuple is a list, a subclass is its base, and nothing is shared with the sender.
Spark's wire and the in-process transport use it alike, so that a simulated job sees what a real one
does. Leaves limits of size, and whose fault a value is, to the callers. Any thread; packers are
kept per thread.
"""

from __future__ import annotations

import threading
from typing import Any, Final, NoReturn

import msgpack

COPIED_BYTES_MAX: Final = 256 * 1024
PACK_ERRORS: Final = (TypeError, ValueError, OverflowError, RecursionError)
"""What `PACKERS.packer.pack` raises for what msgpack does not express."""


class Packers(threading.local):
    """One packer per thread: making one costs more than packing a small message."""

    def __init__(self) -> None:
        self.packer: Any = msgpack.Packer(use_bin_type=True, buf_size=16 * 1024)
        self.gathering: Any = _gathering()


def _gathering() -> Any:
    return msgpack.Packer(use_bin_type=True, buf_size=16 * 1024, autoreset=False)


PACKERS: Final = Packers()


def packed(value: Any) -> bytes | memoryview:
    """`value` in msgpack; what is large is not copied out of the packer, which it keeps. Raises
    PACK_ERRORS.
    """
    packer = PACKERS.gathering
    packer.reset()
    packer.pack(value)
    data = packer.getbuffer()
    if len(data) <= COPIED_BYTES_MAX:
        return bytes(data)
    PACKERS.gathering = _gathering()
    return memoryview(data)


class PayloadNotPlain(ValueError):
    """Bytes that arrived are no plain value; the message says why, and what is accepted."""


def unpacked(payload: bytes | bytearray | memoryview) -> Any:
    """The plain value in `payload`. Raises PayloadNotPlain, for extension types as well.

    >>> unpacked(PACKERS.packer.pack(["event", 0, ("a", {"b": 1})]))
    ['event', 0, ['a', {'b': 1}]]
    """
    try:
        return msgpack.unpackb(
            payload,
            raw=False,
            use_list=True,
            strict_map_key=True,
            max_ext_len=0,  # also stops timestamps, which the hook would never see
            ext_hook=_refuse_extension,
        )
    except Exception as error:  # msgpack's own and Python's, according to what is wrong
        raise PayloadNotPlain(
            f"a frame does not hold plain msgpack ({type(error).__name__}: {error}). Map keys must "
            "be str or bytes, and extension types and timestamps are not accepted: check what the "
            "sender put in."
        ) from error


def why_unsent(tag: object, error: Exception) -> str:
    """Say why a message cannot be sent that `pack` has refused with `error`."""
    return (
        f"message {tag!r} cannot be sent: {error}. A message holds only None, bool, int "
        "(64 bits), float, str, bytes, lists and maps with str or bytes keys; turn anything "
        "else into bytes first."
    )


def _refuse_extension(code: int, data: bytes) -> NoReturn:
    raise ValueError(f"a msgpack extension type ({code})")
