"""The files that are taken by the time at which they were modified.

Decides how a time is written, and that both ends are exclusive, as Spark has it. Pure values.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Final

from epochgate.errors import UsageError
from epochgate.spark.files.content import Stamp

_NS: Final = 1_000_000_000


class TimeUnreadable(UsageError):
    """A time is not written as one: the option, the text."""

    def __str__(self) -> str:
        option, text = self.args
        return (
            f"--{option} {text!r} ({option.replace('-', '_')} in Python) is no time; write it as "
            "2026-11-29 or 2026-11-29T12:30:00+01:00; without a zone it is UTC"
        )


@dataclass(frozen=True)
class ModifiedBetween:
    """Files that were modified after one time and before another, in ns since 1970."""

    after_ns: float = -math.inf
    before_ns: float = math.inf

    def has(self, stamp: Stamp) -> bool:
        """Return whether a file is one of them."""
        return self.after_ns < stamp.modified_ns < self.before_ns


ANY_TIME: Final = ModifiedBetween()


def parse_modified(after: str | None, before: str | None) -> ModifiedBetween:
    """Those that two texts name. Raises TimeUnreadable.

    >>> parse_modified("1970-01-01T00:00:01Z", None).after_ns
    1000000000
    """
    return ModifiedBetween(
        -math.inf if after is None else parse_time_ns("modified-after", after),
        math.inf if before is None else parse_time_ns("modified-before", before),
    )


def parse_time_ns(option: str, text: str) -> int:
    """Read a time that an option names, as ns since 1970. Raises TimeUnreadable."""
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise TimeUnreadable(option, text) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    since = time - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return since // datetime.timedelta(microseconds=1) * (_NS // 1_000_000)
