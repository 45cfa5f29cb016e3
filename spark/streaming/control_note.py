"""The addition to an error of a steered function: the values of its batch, and who has set them.

A value that the function cannot use fails its batch at every start, with an error of Spark's that
names the value at best. Runs where the function has failed.
"""

from __future__ import annotations

from collections.abc import Sequence

from epochgate.runtime.steering.deciding import Decision
from epochgate.runtime.steering.history import Update

_SHOWN = 60


def note_of(control: str, decision: Decision, updates: Sequence[Update]) -> str:
    """The values of the batch, each with the update that has set it, as far as that is kept."""
    is_whole = decision.version == 0 or any(one.version == 1 for one in updates)
    setting = {
        name: one for one in updates if one.version <= decision.version for name in one.changes
    }
    chosen = decision.state
    told = [
        f"  {name} = {_cut(repr(value))}"
        + ("" if chosen else _by(setting.get(name), is_whole=is_whole))
        for name, value in decision.value.items()
    ]
    by = "" if chosen is None else f", as coordinator {chosen.operator_id!r} chose"
    return (
        f"batch {decision.batch} ran with these values of control {control!r}{by}, as it does "
        "whenever it runs again:\n" + "\n".join(told) + "\nIf a value was wrong: docs/steering.md, "
        '"A value was wrong".'
    )


def _by(update: Update | None, *, is_whole: bool) -> str:
    """Tell who has set a value; nothing where updates are forgotten that may have."""
    if update is not None:
        return f"   update {update.version}, by {update.updated_by}"
    return "   as it was initially" if is_whole else ""


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
