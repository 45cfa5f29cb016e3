"""Closing several things, each of which may raise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

__all__ = ["Closeable", "close_all"]


class Closeable(Protocol):
    """An object that has to be closed."""

    def close(self) -> None:
        """Release what it holds."""


def close_all(closeables: Iterable[Closeable]) -> None:
    """Close each; the first error is raised after all were closed."""
    errors: list[BaseException] = []
    for closeable in closeables:
        try:
            closeable.close()
        except BaseException as error:  # noqa: BLE001  # the others must be closed too
            errors.append(error)
    if errors:
        raise errors[0]
