"""The time for which the other end's operating system has acknowledged nothing, as TCP here knows
it.

A host that lives acknowledges what arrives also while the process there is stopped or computes; one
that is gone, or cut off, does not. Where a system does not tell (`TCP_INFO` is Linux's), nothing is
known. Runs on whichever thread asks.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

from epochgate.spark.wire.stream import Stream

_INFO: Final = getattr(socket, "TCP_INFO", None)
_INFO_BYTES: Final = 60
_WORDS: Final = struct.Struct("=8x13I")
"""What follows eight bytes of flags, up to the time of the last acknowledgement."""
_UNACKNOWLEDGED, _SINCE_DATA_MS, _SINCE_ACKNOWLEDGEMENT_MS = 4, 11, 12


def unacknowledged_s(stream: Stream) -> float | None:
    """Return for how many seconds something has been under way to the peer while nothing came from
    its host; 0.0 when all has arrived there, None when that is not known.
    """
    if _INFO is None:
        return None
    try:
        words = _WORDS.unpack(stream.getsockopt(socket.IPPROTO_TCP, _INFO, _INFO_BYTES))
    except (OSError, struct.error):
        return None  # the connection has ended, which is noticed otherwise, or it is not TCP
    if not words[_UNACKNOWLEDGED]:
        return 0.0
    return float(min(words[_SINCE_DATA_MS], words[_SINCE_ACKNOWLEDGEMENT_MS])) / 1000
