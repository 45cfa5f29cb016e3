"""The rate of an ingestion: that of its options, until `epochgate set` changes it.

Decides that a start with another `--rows-per-second` than the one before has that rate, and that a
start with the same has the rate of its checkpoint. Leaves what a rate does to `RateLimit`.
"""

from __future__ import annotations

from typing import Any, Final

import msgpack

from epochgate.runtime import CoordinatorContext
from epochgate.runtime.pipeline.setting import RateLimit, SettingCoordinator

RATE: Final = "rate"


class IngestRate(RateLimit):
    """The setting `rate`: rows a second of the whole ingestion; None: no limit."""

    def __init__(self, rows_per_s: float | None) -> None:
        super().__init__(rows_per_s, name=RATE)

    def create(self, context: CoordinatorContext) -> SettingCoordinator:
        """Create the coordinator."""
        return IngestRateCoordinator(self, context.fail_job)


class IngestRateCoordinator(SettingCoordinator):
    """Stores the rate of the options beside the one in force."""

    def packed(self) -> bytes:
        """Return the state: the rate, and that of the options."""
        return bytes(msgpack.packb([self.value, self._setting.initial]))

    def unpacked(self, state: bytes) -> Any:
        """Return the rate of the checkpoint; that of the options if it is another than before."""
        value, configured = msgpack.unpackb(state)
        return value if configured == self._setting.initial else self._setting.initial
