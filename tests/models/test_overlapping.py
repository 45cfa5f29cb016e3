"""Gateways and snapshots under checkpoints that overlap, on every interleaving in small bounds."""

from __future__ import annotations

import pytest

from epochgate.fsm import Opaque, Row, machines
from epochgate.fsm.explore import Verdict, check
from epochgate.models import Gateway
from epochgate.models.overlapping import Overlapping

ENGINE = "numpy"
LATE = "give_up_in_flight, drop_held, forget_marks, rebind"


class OneSlot(Gateway):
    """Holds everything for the oldest checkpoint."""

    def hold(self, attempt: int, event: Opaque) -> None:
        self.held[0].push(event)


class Rash(Gateway):
    """Closes without waiting for what it holds for an older checkpoint."""

    def in_flight(self) -> int:
        return self.sent - self.confirmed


class Lingering(Gateway):
    """Gives up its sends while it is still marked for the attempt that they were for."""

    ROWS = tuple(
        Row(row.trigger, row.source, row.dest, row.when, LATE, row.because)
        if row.actions[:1] == ("forget_marks",)
        else row
        for row in Gateway.ROWS
    )


class WithOneSlot(Overlapping):
    gateway: dict[tuple[int, int], Gateway] = machines(OneSlot)


class WithRashGateway(Overlapping):
    gateway: dict[tuple[int, int], Gateway] = machines(Rash)


class WithLingeringGateway(Overlapping):
    gateway: dict[tuple[int, int], Gateway] = machines(Lingering)


def test_at_its_own_bounds_everything_that_can_happen_does() -> None:
    result = check(Overlapping(), engine=ENGINE)
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (3_989, 25_106)


def test_two_subtasks_see_each_checkpoint_alike() -> None:
    result = check(Overlapping(subtasks=2), engine=ENGINE)
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (254_750, 2_151_726)


@pytest.mark.parametrize(
    ("broken", "claim", "steps"),
    [
        (WithOneSlot, "I3", 7),
        (WithRashGateway, "I1", 7),
        (WithLingeringGateway, "gateway[0][0] refuses 'reopen'", 7),
    ],
)
def test_a_broken_gateway_is_found_by_its_shortest_trace(
    broken: type[Overlapping], claim: str, steps: int
) -> None:
    result = check(broken(), engine=ENGINE)
    assert result.counterexample is not None
    assert claim in result.counterexample.message
    assert len(result.counterexample.steps) == steps
