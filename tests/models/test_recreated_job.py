"""Coordinators recreated at every reset, on every interleaving, and what breaks that."""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.system import machines
from epochgate.models.closed.recreation import RecreatedJob
from epochgate.models.recreation import DEFERRED, Recreation

ENGINE = "python"
"""The space is searched before machine code would be made; `test_machine_code_deep` shows that
machine code comes to the same.
"""


class Mixing(Recreation):
    """Keeps what was deferred for a coordinator that is never made."""

    def skip_one(self) -> None:
        self.generation += 1

    def drop_deferred(self) -> None:
        if self.state != DEFERRED:
            for call in self.deferred.take_all():
                self.inner.drop(call)


class WithMixing(RecreatedJob):
    recreation: Recreation = machines(Mixing)


class Hasty(Recreation):
    """Takes the end of any close for the one that it waits for."""

    def is_awaited(self, generation: int) -> bool:
        return True


class WithHasty(RecreatedJob):
    recreation: Recreation = machines(Hasty)


def test_every_coordinator_hears_its_own_calls_on_every_interleaving() -> None:
    result = check(RecreatedJob(), engine=ENGINE)
    assert result.verdict is Verdict.PASS
    assert (result.states, result.transitions) == (79_097, 341_158)


@pytest.mark.parametrize(
    ("broken", "claim"),
    [
        (WithMixing, "by the coordinator that it was meant for"),
        (WithHasty, "a close that is awaited fails the job, and once"),
    ],
)
def test_a_broken_variant_is_found(broken: type[RecreatedJob], claim: str) -> None:
    result = check(broken(), engine=ENGINE)
    assert result.verdict is Verdict.FAIL
    assert result.counterexample is not None
    assert claim in result.counterexample.message
