"""The queue of hints as the looks for new files use it, and the faults that it may have.

A hint names a path; it says neither that there is a file nor that it is new. Each method of a queue
is called on one thread at a time, which is not that of the protocol, and may block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from epochgate.errors import EpochgateError
from epochgate.spark.files.content import Stamp


class HintsFailed(EpochgateError):
    """A queue of hints cannot be asked: its name, what went wrong."""

    def __str__(self) -> str:
        name, cause = self.args
        return (
            f"{name} cannot be asked for new files: {cause}. They are found by listing SOURCE, "
            "later than by notifications; it is asked again"
        )


@dataclass(frozen=True)
class Heard:
    """The answer of a queue.

    named: paths, with stamps where the queue tells them. receipts: what is to be confirmed, in the
    queue's own form. foreign: how many hints name nothing that could be a file of the source.
    """

    named: Mapping[str, Stamp | None] = field(default_factory=dict)
    receipts: Sequence[Any] = ()
    foreign: int = 0

    def is_empty(self) -> bool:
        """Return whether there was no hint at all."""
        return not (self.named or self.receipts)


class Hints(Protocol):
    """A queue of hints; the first call of `hear` opens it. Methods raise HintsFailed."""

    @property
    def name(self) -> str:
        """The queue, as messages name it."""

    def hear(self, wait_s: float) -> Heard:
        """Wait until there are hints, `wait_s` seconds at most."""

    def confirm(self, receipts: Sequence[Any]) -> None:
        """Have these hints never be told again."""

    def close(self) -> None:
        """Release what is open; from another thread, also while it is asked."""
