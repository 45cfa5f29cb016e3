"""A closed system around a coordinator that chooses what batches run with: once for each.

To the drivers, logs and store of `steering` comes a coordinator in each driver. It chooses one way
or the other, and fails, at any moment; its state travels with each decision::

    driver 1    decide 1: a | run | commit | plan 2 | choose: b | write 2, suspended .... | taken
    driver 2                                  restore 1 | choose: c | write 2 | run | commit

`BatchDecision` is the machine that runs in production.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import Step, always, sometimes
from epochgate.models.closed.steering import SteeredQuery
from epochgate.models.closed.surroundings.choosing import (
    ChoosingDriver,
    ChosenDecisions,
    CoordinatorClient,
)


class ChosenQuery(SteeredQuery):
    """Two drivers of one query with a coordinator each, its logs, the store, and its user."""

    CONSTANTS: ClassVar[dict[str, int]] = {**SteeredQuery.CONSTANTS, "versions": 0}
    UNTAKEN: ClassVar[dict[str, str]] = {
        "batch_decision.newest: a lost file takes no update back": "there is no update to lose",
        "user.lose": "there is no update to lose",
        "user.update": "the choice changes what a batch runs with; `steering` has updates",
        "asker.ask": "there is no update to ask for",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        *SteeredQuery.STEPS,
        Step("client", "waver", is_fair=False),
    )

    query: ChosenDecisions = machines(ChosenDecisions)
    driver: list[ChoosingDriver] = machines(ChoosingDriver)  # type: ignore[assignment]  # a Driver too
    client: list[CoordinatorClient] = machines(CoordinatorClient)  # type: ignore[assignment]  # a Client too

    @always("the decision of a batch holds what its tasks have seen", when="has_run")
    def holds_what_was_seen(self) -> bool:
        return self.query.choice[self.query.planned] == self.query.seen_choice[self.query.planned]

    @sometimes("of two drivers each chooses for the same batch, and differently")
    def chooses_differently(self) -> bool:
        return any(
            self.client[d].late > 0
            and self.query.is_seen[self.client[d].late]
            and self.client[d].late_choice != self.query.seen_choice[self.client[d].late]
            for d in range(self.drivers)
        )
