"""The errors of entries and their stores."""

from __future__ import annotations

from epochgate.errors import EpochgateError, UsageError


class NotCreated(OSError):
    """An entry was not created, and will not be."""


class StoreUnusable(UsageError):
    """Entries cannot be kept there."""


class EntryDamaged(EpochgateError, ValueError):
    """An entry is not as it was written: its path or URL, reason, the next
    step.
    """

    def __str__(self) -> str:
        name, reason, next_step = self.args
        return f"{name} is damaged: {reason}. {next_step}"
