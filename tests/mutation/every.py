"""All mutants, of every kind, by machine and by name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tests.mutation.bodies import body_mutants_of
from tests.mutation.body_kinds import more_body_mutants_of
from tests.mutation.homes import HOMES
from tests.mutation.lies import KIND, lies_of
from tests.mutation.mutants import MACHINES, AnyMutant, Mutant, mutants_of
from tests.mutation.row_kinds import KINDS as ROW_KINDS, kind_of as kind_of_row, more_mutants_of

BODY_KINDS = {
    "deleted": "statement deleted",
    "statements swapped": "statements swapped",
    "comparison": "comparison turned",
    "logic": "logic turned",
    "negation": "condition negated",
    "arithmetic": "arithmetic turned",
    "constant": "constant flipped",
    "constant by one": "constant by one",
    "other field": "other field",
    "other argument": "other argument",
    "sibling effect": "sibling effect",
    KIND: "argument told wrong",
}
"""The kind of a broken body, as `bodies`, `body_kinds` and `lies` name it -> as it is told."""
KINDS = (*ROW_KINDS.values(), *BODY_KINDS.values())


def kind_of(mutant: AnyMutant) -> str:
    """One of KINDS."""
    return kind_of_row(mutant) if isinstance(mutant, Mutant) else BODY_KINDS[mutant.kind]


@cache
def every_of(machine: str) -> tuple[AnyMutant, ...]:
    """Those of one machine, in the order of kinds."""
    rows = mutants_of(machine) if machine in MACHINES else ()
    bodies = body_mutants_of(machine)
    made: list[AnyMutant] = [*rows, *more_mutants_of(machine)]
    made += [*bodies, *more_body_mutants_of(machine), *lies_of(machine)]
    return tuple(sorted(made, key=lambda mutant: KINDS.index(kind_of(mutant))))


def named(names: Iterable[str]) -> dict[str, AnyMutant]:
    """The mutants of these names. KeyError for a name that none has."""
    wanted = list(names)
    found: dict[str, AnyMutant] = {}
    for machine in HOMES:
        if any(name.startswith((f"{machine}:", f"{machine}.")) for name in wanted):
            found |= {mutant.name: mutant for mutant in every_of(machine)}
    return {name: found[name] for name in wanted}
