"""Malformed events: how a coordinator refuses an event of an operator, and how built-in ones check
it.

An event whose sender is authenticated may still have any form: its code may be broken, or of
another version. `MalformedEvent` blames the attempt that sent it, and leaves the rest of the job
alone. Decides nothing else: `Holder` decides which attempt fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from epochgate.errors import EpochgateError
from epochgate.runtime.api.reports import shortened

EventForms: TypeAlias = Mapping[str, tuple[tuple[type, ...], ...]]
"""Tag of an event -> for each of its arguments the exact types it may have; none: any."""


class MalformedEvent(EpochgateError):
    """An event of an operator is none that its coordinator can handle.

    Raise it in `handle_event_from_operator`, before the coordinator's state changes, or fail the
    future returned there with it: the attempt that sent the event fails, and not the job.
    """


def insist_on_form(subtask: int, event: Any, forms: EventForms) -> None:
    """Raise MalformedEvent unless `event` is a list [tag, arguments ...] in one of `forms`."""
    if type(event) is not list or not event or type(event[0]) is not str or event[0] not in forms:
        raise MalformedEvent(
            f"subtask {subtask} sent {_shown(event)}, expected a list that begins with "
            f"{' or '.join(map(repr, forms))}; {_ADVICE}"
        )
    types = forms[event[0]]
    if len(event) != 1 + len(types) or any(
        kinds and type(value) not in kinds for kinds, value in zip(types, event[1:], strict=True)
    ):
        wanted = ", ".join(
            " or ".join(kind.__name__ for kind in kinds) or "a value" for kinds in types
        )
        raise MalformedEvent(
            f"subtask {subtask} sent {_shown(event)}, expected {event[0]!r} with ({wanted}); "
            f"{_ADVICE}"
        )


_ADVICE = (
    "the operator must be the one that belongs to this coordinator, from the same version of "
    "epochgate"
)


def _shown(event: Any) -> str:
    return shortened(repr(event), 200)
