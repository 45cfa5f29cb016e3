"""The machines that run, explored on every interleaving in small bounds, and broken on purpose."""

from __future__ import annotations

import pytest

from epochgate.fsm import Row, machines
from epochgate.fsm.explore import Verdict, check
from epochgate.models import Checkpoint, CoordinatorSnapshot, Gateway
from epochgate.models.closed_job import ClosedJob, EndingJob


class OpenGateway(Gateway):
    """Passes events on although it is closed."""

    ROWS = tuple(
        Row("send", row.source, row.dest, row.when, "put_on_wire", row.because)
        if row.actions == ("hold",)
        else row
        for row in Gateway.ROWS
    )


class ForgetfulCheckpoint(Checkpoint):
    """Takes an acknowledgement for whichever checkpoint is under way."""

    def is_current(self, checkpoint: int) -> bool:
        return True


class HastySnapshot(CoordinatorSnapshot):
    """Does not wait for sends that are on their way."""

    def has_in_flight(self) -> bool:
        return False


class WithOpenGateway(ClosedJob):
    gateway: dict[tuple[int, int], Gateway] = machines(OpenGateway)


class WithForgetfulCheckpoint(ClosedJob):
    checkpoint: Checkpoint = machines(ForgetfulCheckpoint)


class WithHastySnapshot(ClosedJob):
    snapshot: dict[tuple[int, int], CoordinatorSnapshot] = machines(HastySnapshot)


@pytest.mark.parametrize(
    ("constants", "states", "transitions"),
    [
        ({"subtasks": 1}, 10_899, 25_067),
        ({"subtasks": 1, "coordinators": 2, "wanted": 1}, 24_113, 64_056),
        ({"subtasks": 2}, 729_607, 2_284_174),
    ],
)
def test_the_invariants_hold_on_every_interleaving(
    constants: dict[str, int], states: int, transitions: int
) -> None:
    result = check(ClosedJob(**constants))
    assert result.counterexample is None
    assert (result.states, result.transitions) == (states, transitions)


def test_at_its_own_bounds_everything_that_can_happen_does() -> None:
    assert check(ClosedJob()).verdict is Verdict.PASS


def test_a_job_ends_well_at_every_moment() -> None:
    result = check(EndingJob())
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (78_303, 188_184)


@pytest.mark.parametrize(
    ("broken", "constants", "claim", "steps"),
    [
        (WithOpenGateway, {"subtasks": 1, "coordinators": 2, "wanted": 1, "F": 0}, "I2", 14),
        (WithForgetfulCheckpoint, {"subtasks": 1}, "I1", 17),
        (WithHastySnapshot, {"subtasks": 1}, "refuses 'lose'", 9),
    ],
)
def test_a_broken_variant_is_found_by_its_shortest_trace(
    broken: type[ClosedJob], constants: dict[str, int], claim: str, steps: int
) -> None:
    result = check(broken(**constants))
    assert result.verdict is Verdict.FAIL
    assert result.counterexample is not None
    assert claim in result.counterexample.message
    assert len(result.counterexample.steps) == steps
