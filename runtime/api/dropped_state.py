"""State in a checkpoint whose operator the job does not have: refused, unless it is named.

State is matched by the operator's id and by nothing else: neither by the name of its class, nor by
what it is called on a screen, nor by its place in the program. An operator that was renamed keeps
its id; one that is gone leaves state behind, and to go on without that is a choice that a person
makes. Source: Apache Flink's operator uids and its allowNonRestoredState. Pure; on the driver, and
in the tasks, which know their operators.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from epochgate.errors import UsageError
from epochgate.runtime.api.reports import size


class StateWithoutOperator(UsageError):
    """A checkpoint holds state of operators that the job does not have: which checkpoint, the bytes
    by operator id, the ids that the job has.
    """

    def __init__(self, what: str, left: Mapping[str, int], known: Collection[str]) -> None:
        self.what, self.left, self.known = what, dict(left), sorted(known)
        super().__init__(what, self.left, self.known)

    def __str__(self) -> str:
        held = ", ".join(f"{name!r} ({size(count)})" for name, count in sorted(self.left.items()))
        has = ", ".join(map(repr, self.known)) or "none"
        options = " ".join(f"--allow-dropped-state {name}" for name in sorted(self.left))
        return (
            f"{self.what} holds state of operators {held}, which this job does not have; its "
            f"operators are {has}. Give a renamed operator its previous id. To drop the "
            f"state, name the operator: {options} "
            f"(allow_dropped_state={sorted(self.left)} in Python)"
        )


def insist_on_operators(
    what: str, states: Mapping[str, bytes | None], known: Collection[str]
) -> None:
    """Raise StateWithoutOperator for state of an operator that is not known; no bytes are none."""
    left = {name: len(state) for name, state in states.items() if state and name not in known}
    if left:
        raise StateWithoutOperator(what, left, known)
