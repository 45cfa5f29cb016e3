"""Versions of state: what an operator or coordinator of now does with state of then.

Decides that state of the same version is taken as it is, that of an older one is upgraded by its
author before anything else sees it, and that of a newer one is refused: the code of then could do
more than that of now. Pure; in the tasks for operators, on the driver for coordinators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from epochgate.errors import UsageError
from epochgate.runtime.api.operator import FatalTaskError

FIRST: Final = 1
"""The version of state whose author has said nothing."""

Upgrade = Callable[[int, bytes], bytes]
"""From the version of a state, and the state, to that state in the present version."""
Versioned = bytes | list[int | bytes]
"""A state as it travels between driver and tasks: [version, state] where that is not the first."""


class StateTooNew(FatalTaskError, UsageError):
    """A checkpoint holds state of a newer version than the code: what, its version, the code's."""

    def __str__(self) -> str:
        what, version, own = self.args
        return (
            f"{what} is of version {version}, and this code reads version {own} at most: newer "
            "code wrote it. Start the job with that code; or with this one from a savepoint that "
            "this code, or older, has made"
        )


class StateNotUpgraded(FatalTaskError, UsageError):
    """State of an older version was met, and its author does not say how it is upgraded: whose,
    its version, the code's.
    """

    def __str__(self) -> str:
        whose, version, own = self.args
        return (
            f"the checkpoint holds state of version {version} of {whose}, which reads version "
            f"{own}. Override upgrade_state(version, state), or start with the code that wrote it"
        )


def upgraded(what: str, version: int, own: int, state: bytes, upgrade: Upgrade) -> bytes:
    """The state in the version of the code, `own`. Raises StateTooNew, TypeError where `upgrade`
    returns no bytes, and what that raises.
    """
    if version > own:
        raise StateTooNew(what, version, own)
    if version == own:
        return state
    new = upgrade(version, state)
    if not isinstance(new, bytes):
        raise TypeError(
            f"upgrade_state({version}, ...) returned {new!r} for {what}, and must return bytes"
        )
    return new


def parted(states: Mapping[str, Versioned]) -> tuple[dict[str, bytes], dict[str, int]]:
    """States by operator as they are stored: the bytes, and the versions that are not the first.

    >>> parted({"a": b"1", "b": [2, b"1"]})
    ({'a': b'1', 'b': b'1'}, {'b': 2})
    """
    stored: dict[str, bytes] = {}
    versions: dict[str, int] = {}
    for name, travelled in states.items():
        if isinstance(travelled, bytes):
            stored[name] = travelled
        else:
            version, state = travelled
            assert isinstance(version, int)
            assert isinstance(state, bytes)
            stored[name] = state
            if version != FIRST:
                versions[name] = version
    return stored, versions


def rejoined(states: Mapping[str, bytes], versions: Mapping[str, int]) -> dict[str, Versioned]:
    """Inverse of `parted`.

    >>> rejoined({"a": b"1", "b": b"1"}, {"b": 2})
    {'a': b'1', 'b': [2, b'1']}
    """
    return {
        name: [versions[name], state] if name in versions else state
        for name, state in states.items()
    }
