"""The runtime's findings against a mutant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Seen:
    """`how` it was found is `replay`, `comparison`, `disturbance`, `receipts`, `scenario` or
    `test`.
    """

    how: str
    account: str

    def __str__(self) -> str:
        return f"{self.how}: {self.account}"
