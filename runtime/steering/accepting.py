"""The updates that a control takes: names that it has, with values of the type that they have.

Decides what a process knows of a control: `initial`, or else what the store has of it, the newest
updates, the newest decision of each query, and the initial values for each source that it prunes,
which has no decisions. A wrong value would be decided for a batch, which runs with it at every
start, so it is refused before it is written. Any process, any thread.
"""

from __future__ import annotations

import contextlib
import copy
import getpass
from collections.abc import Callable
from typing import Any

from epochgate.runtime.api.plain_values import kind_of, mismatch
from epochgate.runtime.api.raised import described
from epochgate.runtime.entries.encoding import to_bytes
from epochgate.runtime.entries.stores import Entries
from epochgate.runtime.steering.deciding import this_process
from epochgate.runtime.steering.errors import ControlMissing, ValueRefused
from epochgate.runtime.steering.layout import (
    controls_in,
    initials_of,
    newest_decisions,
    sources_of,
    versions_of,
)
from epochgate.runtime.steering.values import Value


def in_force(entries: Entries, store: str, control: str) -> Value:
    """The values that a control has in its store. Raises ControlMissing, OSError, ValueError."""
    found: Value = {}
    for stream in sources_of(entries, control):
        initials = initials_of(entries, control, stream)
        for number in initials.numbers()[-1:]:
            found |= initials.get(number)["value"]
    for decision in newest_decisions(entries, control):
        found |= decision["value"]
    versions = versions_of(entries, control)
    for number in versions.numbers()[-1:]:
        found |= versions.get(number)["value"]
    if not found:
        there = controls_in(entries)
        if control not in there:
            raise ControlMissing(store, control, there)
    return found


def insist_on_check(control: str, check: Callable[[Value], Any] | None, value: Value) -> None:
    """Raise ValueRefused for values that a user's check refuses: it raises, or returns what is
    false. The message has the type and the line of what it raises.
    """
    if check is None:
        return
    try:
        valid = check(copy.deepcopy(value))
        is_valid = valid is None or bool(valid)
    except BaseException as error:
        raise ValueRefused(
            f"the check of control {control!r}, given {value}, raised {described(error)}\n"
            f"Give values that it takes, or mend it"
        ) from error
    if not is_valid:
        raise ValueRefused(f"the check of control {control!r} returned {valid!r} for {value}")


def record_initial(entries: Entries, control: str, stream: str, initial: Value) -> None:
    """Let other processes know the values of a control by which a source is pruned. Raises OSError,
    ValueError.
    """
    initials = initials_of(entries, control, stream)
    numbers = initials.numbers() or [0]
    newest = initials.get(numbers[-1])["value"] if numbers[-1] else None
    # As they are written: True and 1 are equal, and of another type.
    if newest is None or to_bytes(newest) != to_bytes(initial):
        with contextlib.suppress(FileExistsError):  # another driver of the query came first
            initials.create(numbers[-1] + 1, {"value": initial})


def insist_on_fit(control: str, known: Value, changes: Value) -> None:
    """Raise ValueRefused for a name that is not known, and for a value of another type than the
    known one. A known None takes any type.

    >>> insist_on_fit("pricing", {"limit": 900, "until": None}, {"limit": 0.5, "until": "noon"})
    """
    if unknown := sorted(changes.keys() - known.keys()):
        raise ValueRefused(
            f"control {control!r} has no value {unknown[0]!r}; it has {', '.join(sorted(known))}. "
            "Add a new value to `initial`, and start the query again: its next batch has it"
        )
    for name, value in changes.items():
        if (problem := mismatch(name, known[name], value)) is not None:
            raise ValueRefused(
                f"control {control!r} has {problem}: a batch that is decided with it runs with it "
                f"at every start. Give {kind_of(known[name])}. "
                "If the function of the query takes another type, change `initial`, whose types "
                "count in every process that gives it: Control(name, initial, store=...)"
            )


def author() -> str:
    """Return the author of an update: the user, the host and the process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user has no name
        user = "unknown"
    return f"{user}@{this_process()}"
