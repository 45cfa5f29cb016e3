"""The properties find each fault that was found once, when it is planted again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from tests.spark.values.planted import FAULTS, Fault

EXAMPLES_MAX = 3000


def first_failure(fault: Fault, folder: Callable[[], Path], most: int) -> tuple[int, Exception]:
    """The number of the first table for which the property does not hold, and how; of `most` and
    one more if it holds for all.
    """
    tried = 0

    @seed(0)
    @settings(
        max_examples=most,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(data=st.data())
    def holds(data: st.DataObject) -> None:
        nonlocal tried
        tried += 1
        fault.found_by(fault.target, folder, data)

    try:
        holds()
    except Exception as error:  # noqa: BLE001 - whatever shows the fault
        return tried, error
    return most + 1, AssertionError("nothing was found")


@pytest.mark.mutants
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_that_is_planted_is_found(fault: Fault, folder: Callable[[], Path]) -> None:
    with fault.planted():
        at, _ = first_failure(fault, folder, EXAMPLES_MAX)
    assert at <= EXAMPLES_MAX, "the fault was not found"
    without, error = first_failure(fault, folder, at)
    assert without > at, f"there is a failure without the fault: {error}"
