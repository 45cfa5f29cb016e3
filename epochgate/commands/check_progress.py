"""One line on stderr that follows a search, for a person who watches."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from epochgate.console import console

if TYPE_CHECKING:
    from epochgate.fsm.checker.budget import Report


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
        self._status.update(
            f"{self._name}: {now.states:,} states{guess}, {now.states_per_s:,.0f}/s, "
            f"frontier {now.frontier:,}, depth {now.depth}, {now.memory_bytes / 2**20:,.0f} MiB, "
            f"{now.elapsed_s:.0f} s"
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()
