"""A closed system around the decisions for batches: two runs of a batch see one value.

Spark plans a batch by an entry of its offset log and ends it by one of its commit log; a driver
that starts runs the batch that is planned and not committed again. Drivers die between any two
steps. One that was taken for dead goes on beside its successor, and stops where the logs tell it.
A user updates the control at any moment. Requests to write may take effect late, or be answered by
silence; the file of the newest version may be lost::

    driver 1    plan 2 | look | version 1 | suspended ...................... write 2 | confirm: late
    driver 2                    look | version 2 | write 2 | run | commit | 3 ...

`BatchDecision` is the machine that runs in production. That a creation is conditional, and that a
listing shows what was created before, are properties of the store, and one step each here.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes, terminal
from epochgate.models.closed.surroundings.decision_store import (
    Client,
)
from epochgate.models.closed.surroundings.steering import (
    RUNNING,
    Decider,
    Driver,
    Query,
)
from epochgate.models.closed.surroundings.steering_users import Asker, User


class SteeredQuery(ClosedSystem):
    """Two drivers of one query, its logs, the store of a control, and its user."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"driver": "drivers"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "drivers": 2,
        "batches": 3,
        "versions": 1,
        "tasks": 1,
        "retained": 1,
        "entry_retries": 1,
        "R": 2,
        "F": 2,
    }
    DERIVED: ClassVar[dict[str, str]] = {"slots": "batches + 1"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("user", "update", is_fair=False),
        Step("user", "lose", is_fair=False),
        Step("driver", "start", is_fair=False),
        Step("driver", "plan", is_fair=False),
        Step("driver", "work"),
        Step("driver", "commit"),
        Step("driver", "die", is_fair=False),
        Step("client", "answer"),
        Step("client", "arrive"),
        Step("client", "lose", is_fair=False),
        Step("client", "deny", is_fair=False),
        Step("client", "hang", is_fair=False),
        Step("asker", "ask", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"batch_decision.store": "client"}

    drivers: int
    batches: int
    slots: int
    versions: int
    tasks: int
    retained: int
    entry_retries: int
    R: int
    F: int

    batch_decision: list[Decider] = machines(Decider)
    query: Query = machines(Query)
    driver: list[Driver] = machines(Driver)
    client: list[Client] = machines(Client)
    user: User = machines(User)
    asker: Asker = machines(Asker)

    @always("the decision of the newest batch is kept once a task has seen it", when="has_run")
    def keeps_what_may_be_replayed(self) -> bool:
        return self.query.is_there[self.query.planned]

    def has_run(self) -> bool:
        return self.query.is_seen[self.query.planned]

    @always(
        "older decisions than are kept are gone, but for those that came late", when="has_removed"
    )
    def forgets(self) -> bool:
        return all(
            not self.query.is_there[b]
            or self.query.is_stray[b]
            or b + self.retained > self.query.planned
            for b in range(self.slots)
        )

    def has_removed(self) -> bool:
        return self.has_run() and not self.query.has_kept

    @sometimes("a batch that was decided runs again in another driver")
    def runs_again(self) -> bool:
        return self.query.replays > 0

    @sometimes("a driver that was suspended decides for a batch that is forgotten")
    def decides_late(self) -> bool:
        return any(self.query.is_stray[b] for b in range(self.slots))

    @sometimes("two drivers decide for one batch at once")
    def decides_twice(self) -> bool:
        return self.query.clashes > 0

    @leads_to("a batch that a driver runs ends", then="rests")
    def runs(self) -> bool:
        return not self.rests()

    def rests(self) -> bool:
        return all(
            self.driver[d].state != RUNNING and self.client[d].asked == 0
            for d in range(self.drivers)
        )

    @terminal("no driver is in the midst of a batch")
    def is_at_rest(self) -> bool:
        return self.rests()
