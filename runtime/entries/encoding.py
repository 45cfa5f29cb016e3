"""The encoding of entries, JSON with a checksum.

Pure functions.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any, Final

BYTES: Final = "__bytes__"
_CHECKSUM: Final = "sha256"


def to_json(value: Any, **options: Any) -> str:
    """Plain values, bytes among them; `options` are those of `json.dumps`."""
    return json.dumps(value, default=_written, **options)


def from_json(written: str | bytes) -> Any:
    """Inverse of `to_json`. Raises ValueError."""
    return json.loads(written, object_hook=_read)


def to_bytes(entry: dict[str, Any]) -> bytes:
    """An entry with values that were checked, as it is written."""
    return to_json(entry, sort_keys=True).encode()


def from_bytes(data: bytes) -> dict[str, Any]:
    """Inverse of `to_bytes`. Raises ValueError for bytes that it never made."""
    entry = from_json(data)
    if not isinstance(entry, dict):
        raise ValueError(f"{data[:40]!r} is no entry of a control")
    return entry


def sealed(entry: dict[str, Any]) -> bytes:
    """An entry as it is written, with a checksum of what it says."""
    said = to_bytes(entry)
    return b'%s, "%s": "%s"}' % (
        said[:-1],
        _CHECKSUM.encode(),
        hashlib.sha256(said).hexdigest().encode(),
    )


def opened(data: bytes) -> dict[str, Any]:
    """Inverse of `sealed`; an entry of an earlier release has no checksum. Raises ValueError."""
    entry = from_bytes(data)
    checksum = entry.pop(_CHECKSUM, None)
    if checksum is not None and checksum != hashlib.sha256(to_bytes(entry)).hexdigest():
        raise ValueError("its checksum does not fit its content")
    return entry


def _written(value: Any) -> dict[str, str]:
    return {BYTES: base64.b64encode(value).decode()}


def _read(found: dict[str, Any]) -> Any:
    return base64.b64decode(found[BYTES]) if found.keys() == {BYTES} else found
