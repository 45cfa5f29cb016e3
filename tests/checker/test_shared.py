"""Variables that machines share are fields of the closed system."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from epochgate.fsm import (
    ANY,
    STAY,
    Array,
    Bool,
    Channel,
    DeclarationError,
    Fifo,
    Int,
    Machine,
    Row,
    Trigger,
    machines,
)
from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.engines.choice import ENGINES
from epochgate.fsm.checker.schedule import ClaimBroken, play
from epochgate.fsm.closed import ClosedSystem, Step, always, sometimes
from epochgate.fsm.system import System

OUT, ASKING, WAITING, IN = "out", "asking", "waiting", "inside"


class Process(Machine):
    """One of two in Peterson's algorithm."""

    INDEX = ("process",)
    STATES, INITIAL = (OUT, ASKING, WAITING, IN), OUT

    system: Any
    process: int

    ask: Trigger
    yield_: Trigger
    enter: Trigger
    leave: Trigger

    ROWS = (
        Row("ask", OUT, ASKING, None, "set_flag", "it wants to be inside"),
        Row("yield_", ASKING, WAITING, None, "set_turn", "the other one goes first"),
        Row("enter", WAITING, IN, "may_enter", "note", "the other one is not interested"),
        Row("leave", IN, OUT, None, "clear_flag", "it has finished"),
    )

    def set_flag(self) -> None:
        self.system.wanting[self.process] = True

    def set_turn(self) -> None:
        self.system.turn = 1 - self.process

    def may_enter(self) -> bool:
        return not self.system.wanting[1 - self.process] or self.system.turn == self.process

    def note(self) -> None:
        self.system.visits.clear()
        self.system.visits.push(self.process)

    def clear_flag(self) -> None:
        self.system.wanting[self.process] = False


class Peterson(ClosedSystem):
    """Mutual exclusion of two by two flags and a turn."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"process": "processes"}
    CONSTANTS: ClassVar[dict[str, int]] = {"processes": 2}
    STEPS = tuple(Step("process", trigger) for trigger in ("ask", "yield_", "enter", "leave"))

    processes: int

    wanting: list[bool] = Array(Bool(), "processes")
    turn: int = Int(1, start=ANY)
    visits: Fifo[int] = Channel("processes", 1)
    process: list[Process] = machines(Process)

    @always("one is inside at a time")
    def is_exclusive(self) -> bool:
        return not (self.process[0].state == IN and self.process[1].state == IN)

    @sometimes("the second one has been inside last")
    def is_visited(self) -> bool:
        return not self.visits.empty() and self.visits.head() == 1


class Politeless(Process):
    """Wrong: keeps the turn to itself."""

    def set_turn(self) -> None:
        self.system.turn = self.process


class Broken(Peterson):
    """Made of these."""

    UNREAD: ClassVar[dict[str, str]] = {}
    process: list[Politeless] = machines(Politeless)  # type: ignore[assignment]  # a variant


def test_all_engines_share_alike() -> None:
    found = [check(Peterson, engine=engine) for engine in ENGINES]
    assert {r.verdict for r in found} == {Verdict.PASS}
    assert len({(r.states, r.transitions, r.depth) for r in found}) == 1


def test_a_counterexample_tells_what_is_shared() -> None:
    found = check(Broken).counterexample
    assert found is not None
    changed = [place for step in found.steps for place in step.changed]
    assert {"shared.turn", "shared.wanting"} <= {*changed}
    with pytest.raises(ClaimBroken, match="one is inside at a time"):
        play(Broken(), *[step.label for step in found.steps], begins=found.begins)


def test_a_shared_name_is_used_once() -> None:
    with pytest.raises(DeclarationError, match=r"Twice.processes: the name is taken"):

        class Twice(Peterson):
            processes: int = Int(2)

    class Named(ClosedSystem):
        INDEX_SETS: ClassVar[dict[str, str]] = {"process": "processes"}
        CONSTANTS: ClassVar[dict[str, int]] = {"processes": 2}
        process: list[Process] = machines(Process)
        wanting: list[bool] = Array(Bool(), "processes")
        turn: int = Int(1)
        visits: Fifo[int] = Channel("processes", 1)

    assert Named().turn == 0


def test_what_runs_shares_nothing() -> None:
    with pytest.raises(DeclarationError, match="has no machine or constant"):

        class Real(System):
            INDEX_SETS: ClassVar[dict[str, str]] = {"process": "processes"}
            CONSTANTS: ClassVar[dict[str, int]] = {"processes": 2}
            process: list[Process] = machines(Process)


def test_who_writes_the_field_of_another_is_told_how_to_share_it() -> None:
    class Reader(Machine):
        STATES, INITIAL = (OUT,), OUT
        system: Any
        seen: int = Int(1)
        ROWS = (Row("look", OUT, STAY, None, "note", "x"),)

        def note(self) -> None:
            self.seen = 1

    class Writer(Machine):
        STATES, INITIAL = (OUT,), OUT
        system: Any
        ROWS = (Row("write", OUT, STAY, None, "change", "x"),)

        def change(self) -> None:
            self.system.reader.seen = 1

    with pytest.raises(
        DeclarationError, match=r"class body of the closed system, and write `self\.system\.seen`"
    ):
        type("Pair", (ClosedSystem,), {"reader": machines(Reader), "writer": machines(Writer)})
