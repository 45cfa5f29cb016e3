"""The number of values in a payload, counted before one of them is built.

Decides how much memory a frame may become: an empty list is one byte on the wire and 64 in memory,
and a header of five bytes may announce millions of items. Frames of up to `UNCOUNTED_BYTES_MAX`
bytes, which are nearly all, are counted only when they hold a byte that may be such a header: what
else is in them becomes 5 MB at most. msgpack itself refuses lists and maps nested more than 1023
deep. Leaves what the values are to msgpack. Runs on whichever thread packs or decodes.
"""

from __future__ import annotations

import re
from typing import Final

VALUES_MAX: Final = 1 << 20
"""Values in one message: itself, and all that it holds. They take some 100 MB at most."""
UNCOUNTED_BYTES_MAX: Final = 64 * 1024 + 64

_LONG_HEADER: Final = re.compile(rb"[\xdc-\xdf]")
_ARRAY_32_BYTES: Final = 5
# How many bytes a value takes by its first byte; 0 for those that say it in the bytes that follow.
_WIDTHS: Final = (
    *(128 * [1] + 32 * [0] + [1 + length for length in range(32)] + 4 * [1] + 6 * [0]),
    *(5, 9, 2, 3, 5, 9, 2, 3, 5, 9, 3, 4, 6, 10, 18),
    *(7 * [0] + 32 * [1]),
)
# For strings, bytes and extensions: the bytes of their length, and what stands before their data.
_SIZED: Final = {
    0xC4: (1, 2),
    0xC5: (2, 3),
    0xC6: (4, 5),
    0xC7: (1, 3),
    0xC8: (2, 4),
    0xC9: (4, 6),
    0xD9: (1, 2),
    0xDA: (2, 3),
    0xDB: (4, 5),
}
# For lists and maps: the bytes of their length, and the values of each item.
_HOLDING: Final = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}


def may_be_many(payload: bytes | bytearray | memoryview) -> bool:
    """Return whether a frame's payload has to be counted; looks behind the header of its batch."""
    if len(payload) > UNCOUNTED_BYTES_MAX or payload[0] != 0xDD:
        return True
    return _LONG_HEADER.search(payload, _ARRAY_32_BYTES) is not None


def holds_more_than(payload: bytes | bytearray | memoryview, values_max: int) -> bool:
    """Return whether the msgpack in `payload` announces more than `values_max` values.

    Stops at what is no msgpack, and where the payload ends too early: both are msgpack's to refuse.

    >>> holds_more_than(bytes([0x93, 0x01, 0x90, 0x81, 0xA1, 0x61, 0xC0]), 6)
    False
    >>> holds_more_than(bytes([0x93, 0x01, 0x90, 0x81, 0xA1, 0x61, 0xC0]), 5)
    True
    >>> holds_more_than(bytes([0xDD, 0xFF, 0xFF, 0xFF, 0xFF]), 1 << 20)
    True
    """
    widths, place, due, values = _WIDTHS, 0, 1, 1
    end = len(payload)
    while due and place < end:
        head = payload[place]
        due -= 1
        width = widths[head]
        if width:
            place += width
        elif head in _SIZED:
            length_bytes, before = _SIZED[head]
            place += before + int.from_bytes(payload[place + 1 : place + 1 + length_bytes], "big")
        else:
            if head < 0xA0:
                held = head & 0x0F if head >= 0x90 else (head & 0x0F) * 2
                place += 1
            else:
                length_bytes, each = _HOLDING[head]
                announced = payload[place + 1 : place + 1 + length_bytes]
                held = int.from_bytes(announced, "big") * each
                place += 1 + length_bytes
            due += held
            values += held
            if values > values_max:
                return True
    return False
