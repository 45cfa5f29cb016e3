"""The lines of a trace: JSON objects, each with a checksum, one for each run of equal events.

    {"trace":1,"system":"epochgate.models.job.Job","digest":...,"constants":{...},"segment":1,
     "first":1,"state":{...},...}                                                         the head
    {"n":7,"t":0.25,"do":"attempt[0].connect","with":[1],"out":[["attempt[0].task.restore",1,0,0]]}
    {"n":8,"t":0.31,"times":64,"do":"gateway[0][2].send","with":[0,null],
     "out":[["gateway[0][2].wire.event",3,[17,80],null]]}                               64 events
    {"end":71,"state":{...}}                                                              the foot

`n` is the number of the event, the first of them in a line of several; `t` the seconds of the
clock, read when the queue began the burst of events; `with` the trigger's arguments; `out` the
effects of the step, in their order, with the arguments. null stands for an opaque value, which is
not written. In a line of several events, `[17,80]` is a number that grows by one with each. `crc`
ends every line: the CRC-32 of what stands before it. A file without a foot was cut off: its process
was killed, or goes on.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

FORMAT: Final = 1
_SEAL: Final = b',"crc":"'
_SEAL_SIZE: Final = len(_SEAL) + len('00000000"}')
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode


class LineDamaged(Exception):
    """A line is not what was written; the text says how that is seen."""


def sealed(values: dict[str, Any]) -> bytes:
    r"""A line with its checksum and line end.

    >>> sealed({"end": 7})
    b'{"end":7,"crc":"a098a473"}\n'
    """
    return seal(_encode(values)[:-1].encode())


def seal(content: bytes) -> bytes:
    """The line of a JSON object that lacks its closing brace."""
    return content + b',"crc":"%08x"}\n' % zlib.crc32(content)


def opened(line: bytes) -> dict[str, Any]:
    """The values of a line, with or without its line end; raises LineDamaged."""
    bare = line.rstrip(b"\n")
    content, seal_of = bare[:-_SEAL_SIZE], bare[-_SEAL_SIZE:]
    if not seal_of.startswith(_SEAL):
        raise LineDamaged(f"it does not end with a checksum: {_shown(bare)}")
    if b'%08x"}' % zlib.crc32(content) != seal_of[len(_SEAL) :]:
        raise LineDamaged(f"its checksum does not fit what it says: {_shown(bare)}")
    try:
        text = (content + b"}").decode()
        values, end = _decode(text)
        if end != len(text):
            raise LineDamaged(f"something stands behind its object: {_shown(bare)}")
    except ValueError as error:
        raise LineDamaged(f"it is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise LineDamaged(f"it is no JSON object: {_shown(bare)}")
    return values


def _shown(line: bytes) -> str:
    text = line.decode(errors="backslashreplace")
    return text if len(text) <= 120 else f"{text[:50]} … {text[-60:]}"
