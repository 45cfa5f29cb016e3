"""A closed system around the plans of batches: each split is in one batch, and stays in it, to be
read there, or pruned.

A source finds its splits in one order, some of them at any moment, and a user changes the filter at
any moment. Two drivers of one query, either of which may have been taken for dead, ask for batches,
log them as Spark does, run and commit them; requests to write a plan may take effect late, or be
answered by silence::

    driver 1    ask 2 | found a b | chosen b | suspended ......... | write 2: taken | found: a' b'
    driver 2           ask 2 | chosen b c | write 2 | log 2 | run | commit

`BatchPlan` is the machine that runs in production.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes, terminal
from epochgate.models.closed.surroundings.plan_store import Client
from epochgate.models.closed.surroundings.planning import (
    ASKING,
    READING,
    RUNNING,
    TOLD,
    Driver,
    Planner,
    Stream,
)


class PlannedQuery(ClosedSystem):
    """Two drivers of one query, its logs, and the plans of its source."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"driver": "drivers"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "drivers": 2,
        "batches": 2,
        "S": 2,
        "versions": 1,
        "retained": 1,
        "entry_retries": 1,
        "R": 2,
        "F": 2,
    }
    DERIVED: ClassVar[dict[str, str]] = {"slots": "batches + 1"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("stream", "appear", is_fair=False),
        Step("stream", "update", is_fair=False),
        Step("driver", "start", is_fair=False),
        Step("driver", "ask", is_fair=False),
        Step("driver", "log"),
        Step("driver", "work"),
        Step("driver", "commit"),
        Step("driver", "die", is_fair=False),
        Step("client", "answer"),
        Step("client", "arrive"),
        Step("client", "lose", is_fair=False),
        Step("client", "deny", is_fair=False),
        Step("client", "hang", is_fair=False),
        Step("client", "erase", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"batch_plan.store": "client"}

    drivers: int
    batches: int
    slots: int
    S: int
    versions: int
    retained: int
    entry_retries: int
    R: int
    F: int

    batch_plan: list[Planner] = machines(Planner)
    stream: Stream = machines(Stream)
    driver: list[Driver] = machines(Driver)
    client: list[Client] = machines(Client)

    @always("what is logged and not committed can be read", when="has_logged")
    def keeps_what_may_run(self) -> bool:
        return self.stream.is_there[self.stream.logged]

    def has_logged(self) -> bool:
        return self.stream.logged > self.stream.committed

    @always("the batches that were run have each split once, in its order, read or pruned")
    def runs_each_split_once(self) -> bool:
        return all(
            b == 0
            or not self.stream.is_seen[b]
            or (b == 1 and self.stream.seen_first[b] == 0)
            or (
                self.stream.is_seen[b - 1]
                and self.stream.seen_first[b] == self.stream.seen_last[b - 1]
            )
            for b in range(self.slots)
        )

    @sometimes("a batch that was planned is run again")
    def runs_again(self) -> bool:
        return self.stream.replays > 0

    @sometimes("a batch is run again after the filter was changed")
    def runs_again_behind_a_change(self) -> bool:
        return self.stream.replays == 2

    @sometimes("all splits of a batch are pruned")
    def prunes_all(self) -> bool:
        return any(
            self.stream.is_seen[b]
            and not self.stream.is_matched(
                self.stream.seen_first[b], self.stream.seen_last[b], self.stream.seen_version[b]
            )
            for b in range(self.slots)
        )

    @sometimes("a driver that was suspended plans a batch that is forgotten")
    def plans_late(self) -> bool:
        return any(self.stream.is_stray[b] for b in range(self.slots))

    @sometimes("a plan that Spark never heard of is found by the next driver")
    def finds_unheard(self) -> bool:
        return self.stream.newest > self.stream.logged and any(
            self.driver[d].state == TOLD and not self.batch_plan[d].has_maker
            for d in range(self.drivers)
        )

    @leads_to("a batch that a driver asks for, or runs, ends", then="is_over")
    def is_busy(self) -> bool:
        return not self.is_over()

    def is_over(self) -> bool:
        return (
            self.driver[0].state != ASKING
            and self.driver[0].state != TOLD
            and self.driver[0].state != RUNNING
            and self.driver[0].state != READING
        )

    def rests(self) -> bool:
        return all(
            self.driver[d].state != ASKING
            and self.driver[d].state != TOLD
            and self.driver[d].state != RUNNING
            and self.driver[d].state != READING
            for d in range(self.drivers)
        )

    @terminal("no driver is in the midst of a batch")
    def is_at_rest(self) -> bool:
        return self.rests()
