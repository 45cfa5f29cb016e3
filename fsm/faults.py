"""Everything that is wrong with a declaration, told at once.

`Faults` collects what several checks find, and raises it as one DeclarationError. While a module is
read with `deferred`, a class that is refused is kept with its faults instead, and who makes a
system of it is told them: the other classes of the module can be used, and all faults are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from epochgate.fsm.errors import DeclarationError

_refused: ContextVar[list[type] | None] = ContextVar("refused", default=None)


class Faults:
    """The faults that were found so far."""

    def __init__(self) -> None:
        self._found: list[DeclarationError] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the DeclarationError that is raised inside, and go on behind."""
        try:
            yield
        except DeclarationError as error:
            self._found.append(error)

    def tell(self) -> None:
        """Raise what was found: one error as it is, several as one, each fault in a line."""
        texts = [*dict.fromkeys(line for error in self._found for line in error.faults)]
        if len(self._found) == 1:
            raise self._found[0]
        if texts:
            raise DeclarationError("\n".join(texts), faults=tuple(texts))


@contextmanager
def deferred() -> Iterator[list[type]]:
    """Keep the classes that are refused inside, and go on behind; yields the list of them."""
    refused: list[type] = []
    token = _refused.set(refused)
    try:
        yield refused
    finally:
        _refused.reset(token)


def faults_of(refused: list[type]) -> list[str]:
    """Return what is wrong with classes that were kept, each fault once."""
    errors: list[DeclarationError] = [vars(one)["FAULT"] for one in refused]
    return [*dict.fromkeys(text for error in errors for text in error.faults)]


def is_kept(refused: type, error: DeclarationError) -> bool:
    """Return whether a class that is refused is kept; its faults then stand in it."""
    kept = _refused.get()
    if kept is None:
        return False
    refused.FAULT = error  # type: ignore[attr-defined]  # machines and systems have it
    kept.append(refused)
    return True
