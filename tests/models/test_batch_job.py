"""Snapshots without checkpoints, on every interleaving within bounds, and what breaks them."""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.system import machines
from epochgate.models.batch_snapshot import BatchSnapshot
from epochgate.models.closed.batch import BatchJob

ENGINE = "python"
"""The space is searched before machine code would be made; `test_machine_code_deep` shows that
machine code comes to the same.
"""


class Hasty(BatchSnapshot):
    """Hands over what counts events that are still on their way."""

    def has_in_flight(self, number: int, in_flight: int) -> bool:
        return False


class WithHasty(BatchJob):
    batch_snapshot: list[BatchSnapshot] = machines(Hasty)


class Gullible(BatchSnapshot):
    """Takes every answer for one to its last question."""

    def is_current(self, number: int) -> bool:
        return True


class WithGullible(BatchJob):
    batch_snapshot: list[BatchSnapshot] = machines(Gullible)


def test_what_is_handed_over_was_handled_on_every_interleaving() -> None:
    result = check(BatchJob(), engine=ENGINE)
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (6582, 27448)


@pytest.mark.parametrize(
    ("broken", "claim"),
    [
        (WithHasty, "counts what the subtask has handled"),
        (WithGullible, "hear_late has to change nothing"),
    ],
)
def test_a_broken_variant_is_found(broken: type[BatchJob], claim: str) -> None:
    result = check(broken(), engine=ENGINE)
    assert result.verdict is Verdict.FAIL
    assert result.counterexample is not None
    assert claim in result.counterexample.message
