"""The rate of an ingestion: that of its options, until `epochgate set` changes it.

A start with another `--rows-per-second` than the one before has that rate, and a start with the
same has the rate of its checkpoint: the rows of `changes` decide that.
"""

from __future__ import annotations

from typing import ClassVar, Final

from epochgate.runtime.pipeline.setting import RateLimit

RATE: Final = "rate"


class IngestRate(RateLimit):
    """The setting `rate`: rows a second of the whole ingestion; None: no limit."""

    is_of_options: ClassVar[bool] = True

    def __init__(self, rows_per_s: float | None) -> None:
        super().__init__(rows_per_s, name=RATE)
