"""Errors that user code has raised: in words, and those that are no errors of it.

A door to user code catches BaseException: a library may call `sys.exit`, a cancelled asyncio call
raises CancelledError, and a thread that ends without a word holds the job for ever. `let_pass`
comes first at each door, for what a test raises through user code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from epochgate.errors import EpochgateError
from epochgate.runtime.api.operator import FatalTaskError
from epochgate.runtime.api.own_frames import own_frames

_OF_TESTS: Final = ("_pytest.", "hypothesis.")


class RaisedByTest(BaseException):
    """The base of what the test kit raises to stop the code under test where it stands."""


def let_pass(error: BaseException) -> None:
    """Raise `error` again if a test stops, skips or ends itself by it."""
    module = type(error).__module__
    is_of_framework = not isinstance(error, Exception) and module.startswith(_OF_TESTS)
    if is_of_framework or isinstance(error, RaisedByTest):
        raise error


def described(error: BaseException) -> str:
    """Return type and message of an error, then the frames of user code on lines of their own."""
    return f"{type(error).__name__}: {_safely(str, error)}{own_frames(error)}"


def in_words(error: BaseException) -> str:
    """Return the message of an error of epochgate's own, which says what to do, and any other as
    `described` does.

    >>> in_words(OSError("no space left"))
    'OSError: no space left'
    """
    is_own = isinstance(error, FatalTaskError | EpochgateError)
    return _safely(str, error) if is_own else described(error)


def quoted(error: BaseException) -> str:
    """Return an error as Python shows it, then the frames of user code on lines of their own."""
    return f"{_safely(repr, error)}{own_frames(error)}"


def _safely(shown: Callable[[object], str], error: BaseException) -> str:
    try:
        return shown(error)
    except BaseException:  # noqa: BLE001  # __str__ and __repr__ of the error are the user's code too
        return f"<{type(error).__name__}, which cannot be shown: its {shown.__name__} raises>"
