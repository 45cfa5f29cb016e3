"""Small files of JSON beside a target, with a checksum, so that damage is told and never believed.

Decides the form: an object whose last key, `crc32`, has the checksum of the text before it. A file
of an earlier release has none, and is taken as it is. Runs on the driver.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.parquet_sink.errors import TargetDamaged

_BEFORE_CHECKSUM: Final = b', "crc32": '


def checked(values: Mapping[str, Any]) -> bytes:
    r"""The values, of which there are some, as JSON with their checksum.

    >>> checked({"run": "r1"})
    b'{"run": "r1", "crc32": 258280082}\n'
    """
    return checked_text(json.dumps(values))


def checked_text(text: str) -> bytes:
    """The same of values that are JSON already."""
    begun = text.encode().removesuffix(b"}")
    return b"%b%b%d}\n" % (begun, _BEFORE_CHECKSUM, zlib.crc32(begun))


def read_checked(files: FileSystem, path: str, what: str, way_on: str = "") -> dict[str, Any]:
    """The values of the file at `path`. Raises TargetDamaged with `what` it should be and the way
    on, also where it is not there.
    """
    try:
        return parsed_json(files.read_bytes(path), path, what, way_on)
    except OSError as error:
        raise TargetDamaged(path, what, repr(error), way_on) from error


def parsed_json(data: bytes, path: str, what: str, way_on: str = "") -> dict[str, Any]:
    """The inverse of `checked`. Raises TargetDamaged."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TargetDamaged(path, what, repr(error), way_on) from error
    if not isinstance(values, dict):
        raise TargetDamaged(path, what, f"a {type(values).__name__}", way_on)
    text, is_checked, _ = data.rpartition(_BEFORE_CHECKSUM)
    if is_checked and values.pop("crc32", None) != (found := zlib.crc32(text)):
        raise TargetDamaged(path, what, f"a text with checksum {found}", way_on)
    return values
