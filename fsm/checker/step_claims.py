"""Claims about each step, held against the real machines: what was before it, and what is after."""

from __future__ import annotations

from typing import Any

from epochgate.fsm.closed import ClosedSystem, Property


class StepClaimBroken(AssertionError):
    """A step has done what a claim about each step excludes."""


def members(system: ClosedSystem, claim: Property) -> list[tuple[int, ...]]:
    """The index of each member of the claim's index set; one empty index without."""
    if not claim.each:
        return [()]
    return [(n,) for n in range(system.constants[system.INDEX_SETS[claim.each]])]


def not_in_each(claim: Property) -> str:
    """Return what is said when the claim is broken."""
    return f"not in each step: {claim.claim}"


Measured = list[tuple[Any, ...]]
"""For each claim and member, what was before the step."""


class StepClaims:
    """All claims about each step of one system."""

    def __init__(self, system: ClosedSystem) -> None:
        self._system = system
        self._claims = [
            (claim, index, system.measured(claim))
            for claim in system.properties()
            if claim.kind == "each_step"
            for index in members(system, claim)
        ]

    def measured(self) -> Measured:
        """Return what there is before a step."""
        return [
            tuple(getattr(self._system, name)(*index) for name in names)
            for _, index, names in self._claims
        ]

    def expect_kept(self, before: Measured) -> None:
        """Raise StepClaimBroken for the first claim that a step, which has changed something, has
        broken.
        """
        for (claim, index, _), values in zip(self._claims, before, strict=True):
            if not getattr(self._system, claim.name)(*index, *values):
                raise StepClaimBroken(not_in_each(claim))
