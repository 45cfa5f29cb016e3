"""Texts as dates, times of day and timestamps, for formats whose texts a user has declared as such.

Decides: a moment without a zone is in UTC. Leaves to others: which texts mean no value. Pure
functions; used in tasks.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_WITH_ZONE = r":\d{2}.*(?:[Zz]|[+-]\d{2}(?::?\d{2})?)$"
_TIME_OF_DAY = r"^\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?$"


def is_time(kind: pa.DataType) -> bool:
    """Return whether `times_of` makes values of this type."""
    return bool(pa.types.is_temporal(kind) and not pa.types.is_duration(kind))


def times_of(texts: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """The values that the texts are, null where one is null. Raises ArrowInvalid."""
    if pa.types.is_time(kind):
        if pc.all(pc.match_substring_regex(texts, _TIME_OF_DAY)).as_py() is False:
            wrong = texts.filter(pc.invert(pc.match_substring_regex(texts, _TIME_OF_DAY)))
            raise pa.ArrowInvalid(f"'{wrong[0]}' is no time of day")
        full = pc.binary_join_element_wise("1970-01-01T", texts, "")
        return full.cast(pa.timestamp(kind.unit)).cast(kind)
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return texts.cast(kind)
    none = pa.scalar(None, pa.string())
    has_zone = pc.match_substring_regex(texts, _WITH_ZONE)
    zoned = pc.if_else(has_zone, texts, none).cast(kind)
    plain = pc.if_else(has_zone, none, texts).cast(pa.timestamp(kind.unit))
    return pc.coalesce(zoned, pc.assume_timezone(plain, "UTC").cast(kind))
