"""Claims for each member of an index set."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from epochgate.fsm import DeclarationError, Row, machines
from epochgate.fsm.checker import Verdict, check, simulate
from epochgate.fsm.checker.checking import CannotCheck
from epochgate.fsm.checker.engines.choice import ENGINES
from epochgate.fsm.checker.report import report
from epochgate.fsm.checker.schedule import ClaimBroken
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, leads_to, sometimes
from tests.checker.test_regression import the_test_in, written

IDLE, ASKING, SERVED = "idle", "asking", "served"


class Worker(Environment):
    """Asks, and is served; the last one only while no other asks."""

    INDEX = ("worker",)
    STATES, INITIAL = (IDLE, ASKING, SERVED), IDLE

    system: Office
    worker: int

    ROWS = (
        Row("ask", IDLE, ASKING, None, None, "it needs something"),
        Row("serve", ASKING, SERVED, "is_next", None, "it gets it"),
        Row("rest", SERVED, IDLE, None, None, "it is done"),
    )

    def is_next(self) -> bool:
        return self.worker < self.system.workers - 1 or self.system.is_quiet()


class Office(ClosedSystem):
    """Wrong for the last worker alone."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"worker": "workers"}
    CONSTANTS: ClassVar[dict[str, int]] = {"workers": 3}
    STEPS = tuple(Step("worker", trigger) for trigger in ("ask", "serve", "rest"))

    workers: int

    worker: list[Worker] = machines(Worker)

    def is_quiet(self) -> bool:
        return all(self.worker[w].state != ASKING for w in range(self.workers - 1))

    @sometimes("it is served", each="worker")
    def is_served(self, worker: int) -> bool:
        return self.worker[worker].state == SERVED

    @always("who is served asks no more", when="is_served", each="worker")
    def has_stopped(self, worker: int) -> bool:
        return self.worker[worker].state != ASKING

    @leads_to("who asks is served", then="is_served", each="worker")
    def asks(self, worker: int) -> bool:
        return self.worker[worker].state == ASKING


@pytest.mark.parametrize("engine", ENGINES)
def test_each_member_has_a_verdict_of_its_own(engine: str, tmp_path: Path) -> None:
    result = check(Office, engine=engine)
    verdicts = {p.name: p.verdict for p in result.properties}
    assert verdicts["asks[0]"] is Verdict.PASS
    assert verdicts["asks[1]"] is Verdict.PASS
    assert verdicts["asks[2]"] is Verdict.FAIL
    assert [verdicts[f"{name}[2]"] for name in ("is_served", "has_stopped")] == [Verdict.PASS] * 2
    assert "FAIL    leads_to   who asks is served (worker 2)" in report("it", result)
    found = result.counterexample
    assert found is not None
    assert found.property == "asks[2]"
    with pytest.raises(ClaimBroken, match=r"who asks is served \(worker 2\)"):
        the_test_in(written(Office, result, tmp_path), tmp_path)()


def test_walks_see_each_member() -> None:
    found = [simulate(Office, steps=3_000, engine=engine) for engine in ENGINES[:2]]
    assert found[0].properties == found[1].properties
    assert found[0].properties[2].verdict is Verdict.PASS


class Misled(Office):
    """Claims of one member what no other keeps either."""

    @always("the first one never asks", each="worker")
    def is_idle(self, worker: int) -> bool:
        return self.worker[worker].state != ASKING or worker > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_claim_is_broken_for_one_member(engine: str) -> None:
    found = check(Misled, engine=engine).counterexample
    assert found is not None
    assert (found.property, found.message) == (
        "is_idle[0]",
        "not always: the first one never asks (worker 0)",
    )


def test_what_cannot_be_claimed_for_each_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"for each 'clerk': that is one of the index sets"):

        class Unknown(Office):
            @always("x", each="clerk")
            def is_so(self, clerk: int) -> bool:
                return clerk >= 0

    with pytest.raises(DeclarationError, match="the first parameter is named for it"):

        class Unnamed(Office):
            @always("x", when="is_quiet", each="worker")
            def is_so(self, worker: int) -> bool:
                return worker >= 0

    with pytest.raises(DeclarationError, match=r"takes worker; to claim it for each member"):

        class Lonely(Office):
            @always("x")
            def is_so(self, worker: int) -> bool:
                return worker >= 0

    class Small(ClosedSystem):
        INDEX_SETS: ClassVar[dict[str, str]] = {"worker": "workers"}
        CONSTANTS: ClassVar[dict[str, int]] = {"workers": 3}
        STEPS = Office.STEPS
        worker: list[Worker] = machines(Worker)

        def is_quiet(self) -> bool:
            return True

        @sometimes("it is served", each="worker")
        def is_served(self, worker: int) -> bool:
            return self.worker[worker].state == SERVED

    with pytest.raises(CannotCheck, match="symmetry exchanges these"):
        check(Small, symmetry=True)
