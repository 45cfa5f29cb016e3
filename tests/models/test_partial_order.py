"""Every system, and every variant that must fail, has the same verdict under a partial-order
reduction as without one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.checking import WITHOUT_ORDER
from epochgate.fsm.closed import ClosedSystem, Property
from epochgate.models.closed.catalogue import SYSTEMS
from epochgate.models.studies.broken.catalogue import BROKEN
from epochgate.models.studies.catalogue import CASES, STUDIES
from tests.checker.test_partial_order import told

STATES_MAX = 200_000
"""Larger spaces are not compared."""
QUICK = ("pipelining.taken_late", "placing.silent_host_trusted", "setting.forgotten")


def every() -> Iterator[tuple[str, type[ClosedSystem]]]:
    """All systems by name; those of the quick part first."""
    for name in QUICK:
        yield name, BROKEN[name].system
    for catalogue in (SYSTEMS, STUDIES, CASES):
        yield from catalogue.items()
    yield from ((name, found.system) for name, found in BROKEN.items() if name not in QUICK)


def without_promises(system: type[ClosedSystem]) -> type[ClosedSystem]:
    """The same without the claims about whole runs, for which a reduction is refused."""
    kept = tuple(found for found in system.properties() if found.kind in WITHOUT_ORDER)

    class Kept(system):  # type: ignore[misc,valid-type]  # a class that is computed
        @classmethod
        def properties(cls) -> tuple[Property, ...]:
            return kept

    return Kept


@pytest.mark.parametrize(
    ("name", "system"),
    [
        pytest.param(name, system, marks=[] if name in QUICK else [pytest.mark.extended], id=name)
        for name, system in every()
    ],
)
def test_the_verdict_is_the_same(name: str, system: type[ClosedSystem]) -> None:
    kept = without_promises(system)
    full = check(kept, max_states=STATES_MAX)
    reduced = check(kept, max_states=STATES_MAX, partial_order=True)
    verdicts = {full.verdict, reduced.verdict}
    if Verdict.BOUNDED in verdicts:
        # A violation may be near one end of a large space, and not be met in the other order.
        return
    assert told(full) == told(reduced)
