"""A variant that must fail, with what a check says of it."""

from __future__ import annotations

from dataclasses import dataclass

from epochgate.fsm.closed import ClosedSystem


@dataclass(frozen=True)
class Broken:
    """A system that fails: `says` is part of the message, `steps` the length of a shortest
    counterexample, `via` some of its steps in their order, as `machine.trigger`.
    """

    system: type[ClosedSystem]
    says: str
    steps: int
    via: str
