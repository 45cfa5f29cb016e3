"""One line on stderr that follows a search, for a person who watches."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from epochgate.console import console

if TYPE_CHECKING:
    from epochgate.fsm.checker.budget import Report


SOON_S = 24 * 3600
"""When memory or disk ends is told if that is sooner."""


class Watch:
    """A line on stderr that follows a search; nothing without a terminal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._screen = console()
        self._status: Any = None

    def __enter__(self) -> Watch:
        if self._screen.is_terminal:
            self._status = self._screen.status(f"{self._name}: compiling")
            self._status.start()
        return self

    def show(self, now: Report) -> None:
        """Follow the search."""
        if self._status is None:
            return
        guess = "" if now.estimate is None else f", perhaps {now.estimate:,} in all"
        growth = f" (times {now.growth:.2f})" if now.growth else ""
        disk = f" and {now.disk_bytes / 2**20:,.0f} MiB on disk" if now.disk_bytes else ""
        end = f" (in {now.full_in_s / 60:,.0f} min)" if now.full_in_s < SOON_S else ""
        self._status.update(
            f"{self._name}: {now.states:,} states{guess}, {now.states_per_s:,.0f}/s, "
            f"level {now.depth} of {now.frontier:,}{growth}, "
            f"{now.memory_bytes / 2**20:,.0f} MiB{disk}, {now.bytes_per_state:.1f} bytes a state, "
            f"{now.room} for {rounded(now.room_for)}{end}, {now.elapsed_s:.0f} s"
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()


def rounded(count: int) -> str:
    """A guess in words: two digits say all that is known.

    >>> rounded(2_814_000_000), rounded(950_000), rounded(420)
    ('2,800 million', '950,000', '420')
    """
    if count < 1_000_000:
        return f"{count:,}"
    digits = max(0, len(str(count)) - 2)
    return f"{count // 10**digits * 10**digits / 1e6:,.{1 if count < 10_000_000 else 0}f} million"
