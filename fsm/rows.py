"""The rows of a machine's table: one transition each, or one event that a state ignores.

A row is `transitions`' own configuration (trigger, source, dest, conditions and unless, after) with
one column more: `because`, the reason, which becomes the label in diagrams and tables and is never
empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

ANY = "*"
STAY = None
"""As a row's dest: an internal transition, the state is neither left nor entered."""


def _names(column: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if column is None:
        return ()
    parts = column.split(",") if isinstance(column, str) else column
    return tuple(part.strip() for part in parts)


@dataclass(frozen=True)
class Row:
    """One transition: `trigger` fires in `source`, `when` holds, go to `dest` and do `after`.

    `source` is a state, a tuple of states or `ANY`; `dest` a state or `STAY`. `when` names guards
    joined by "and", each perhaps with "not" before it; `after` names actions, comma-separated, run
    in that order once the state has changed.

    >>> row = Row("send", "closed", STAY, "is_bound and not is_full", "hold", "the gate is shut")
    >>> row.conditions, row.unless
    (('is_bound',), ('is_full',))
    """

    trigger: str
    source: str | tuple[str, ...]
    dest: str | None
    when: str | None
    after: str | tuple[str, ...] | None
    because: str

    @cached_property
    def literals(self) -> tuple[tuple[str, bool], ...]:
        """The guards of `when` with the value that each must have, in written order."""
        if self.when is None:
            return ()
        literals = []
        for part in self.when.split(" and "):
            words = part.split()
            negated = words[:1] == ["not"]
            literals.append((" ".join(words[1:] if negated else words), not negated))
        return tuple(literals)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """The guards that have to hold."""
        return tuple(name for name, expected in self.literals if expected)

    @cached_property
    def unless(self) -> tuple[str, ...]:
        """The guards that must not hold."""
        return tuple(name for name, expected in self.literals if not expected)

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """The names of the actions, in the order in which they happen."""
        return _names(self.after)

    @property
    def is_ignored(self) -> bool:
        """True if the event makes no difference."""
        return False


@dataclass(frozen=True)
class Ignore(Row):
    """An event that is harmless in `source`: nothing happens, and the caller is told that it was
    ignored.
    """

    def __init__(
        self, trigger: str, source: str | tuple[str, ...], when: str | None, because: str
    ) -> None:
        super().__init__(trigger, source, STAY, when, None, because)

    @property
    def is_ignored(self) -> bool:
        """It makes none."""
        return True
