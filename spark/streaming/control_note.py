"""What an error of a steered function says besides: the values of its batch, and who has set them.

A value that the function cannot use fails its batch at every start, with an error of Spark's that
names the value at best. Runs where the function has failed.
"""

from __future__ import annotations

from collections.abc import Iterable

from epochgate.runtime.steering.deciding import Decision
from epochgate.runtime.steering.history import Update

_SHOWN = 60


def note_of(control: str, decision: Decision, updates: Iterable[Update]) -> str:
    """The values of the batch, each with the update that has set it, as far as that is kept."""
    setting = {
        name: one for one in updates if one.version <= decision.version for name in one.changes
    }
    told = [
        f"  {name} = {_cut(repr(value))}{_by(setting.get(name), decision.version)}"
        for name, value in decision.value.items()
    ]
    return (
        f"batch {decision.batch} ran with these values of control {control!r}, as it does whenever "
        "it runs again:\n" + "\n".join(told) + "\nIf a value was wrong: docs/steering.md, "
        '"A value was wrong".'
    )


def _by(update: Update | None, version: int) -> str:
    if update is not None:
        return f"   update {update.version}, by {update.updated_by}"
    return "   as it was initially" if version == 0 else ""


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
