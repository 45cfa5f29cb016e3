"""Small things: specifications of the TLA+ examples, and examples of Stateright."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    eventually,
    sometimes,
    weakly_fair,
)

THERE = "there"


class Choice(Environment):
    """The choice: nothing, or one number."""

    STATES, INITIAL = (THERE,), THERE

    chosen: int = Int("number")


class Value(Environment):
    """One value that may be chosen."""

    INDEX = ("value",)
    STATES, INITIAL = (THERE,), THERE

    system: Consensus
    value: int

    choose: Trigger

    ROWS = (Row("choose", THERE, STAY, "is_open", "note", "none is chosen"),)

    def is_open(self) -> bool:
        return self.system.choice.chosen == 0

    def note(self) -> None:
        self.system.choice.chosen = self.value + 1


class Consensus(ClosedSystem):
    """Consensus: one of three values is chosen, once."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"value": "number"}
    CONSTANTS: ClassVar[dict[str, int]] = {"number": 3}
    STEPS = (Step("value", "choose", is_fair=False),)
    FAIRNESS = (weakly_fair(ANY),)

    value: list[Value] = machines(Value)
    choice: Choice = machines(Choice)

    @eventually("a value is chosen")
    def is_chosen(self) -> bool:
        return self.choice.chosen > 0


class Side(Environment):
    """Producer or consumer of a handshake; the producer is the first, and begins."""

    INDEX = ("side",)
    STATES, INITIAL = (THERE,), THERE

    system: Handshake
    side: int

    is_up: bool = Bool()

    turn: Trigger

    ROWS = (Row("turn", THERE, STAY, "is_due", "flip", "it is its turn"),)

    def is_due(self) -> bool:
        return (self.system.side[0].is_up == self.system.side[1].is_up) == (self.side == 0)

    def flip(self) -> None:
        self.is_up = not self.is_up


class Handshake(ClosedSystem):
    """TwoPhase: the handshake of two phases."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"side": "sides"}
    CONSTANTS: ClassVar[dict[str, int]] = {"sides": 2}
    STEPS = (Step("side", "turn"),)

    side: list[Side] = machines(Side)


PHANTOM, VALID, REDEEMED, CANCELLED = "phantom", "valid", "redeemed", "cancelled"


class Voucher(Environment):
    """Is issued, handed on, and redeemed or cancelled."""

    INDEX = ("voucher",)
    STATES, INITIAL = (PHANTOM, VALID, REDEEMED, CANCELLED), PHANTOM
    TERMINAL = (REDEEMED, CANCELLED)

    issue: Trigger
    transfer: Trigger
    redeem: Trigger
    cancel: Trigger

    ROWS = (
        Row("issue", PHANTOM, VALID, None, None, "it is issued"),
        Row("transfer", VALID, STAY, None, None, "it has another holder"),
        Row("redeem", VALID, REDEEMED, None, None, "its holder has got something for it"),
        Row("cancel", VALID, CANCELLED, None, None, "it is worth nothing any more"),
    )


class Vouchers(ClosedSystem):
    """VoucherLifeCycle: three vouchers."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"voucher": "vouchers"}
    CONSTANTS: ClassVar[dict[str, int]] = {"vouchers": 3}
    STEPS = (
        Step("voucher", "issue"),
        Step("voucher", "transfer"),
        Step("voucher", "redeem"),
        Step("voucher", "cancel"),
    )

    voucher: list[Voucher] = machines(Voucher)


class Room(Environment):
    """The light, what the counter knows, and who has been there, as a set of bits."""

    STATES, INITIAL = (THERE,), THERE

    count: int = Int("most", 1)
    visited: int = Int("everyone")
    is_lit: bool = Bool()
    is_announced: bool = Bool()


class Prisoner(Environment):
    """Lights the light a number of times; the first one counts how often it was lit."""

    INDEX = ("prisoner",)
    STATES, INITIAL = (THERE,), THERE

    system: Prisoners
    prisoner: int

    signalled: int = Int("signals")

    visit: Trigger

    ROWS = (
        Row("visit", THERE, STAY, "is_counter", "look, visited", "the counter is in the room"),
        Row("visit", THERE, STAY, "not is_counter", "signal, visited", "another one is there"),
    )

    def is_counter(self) -> bool:
        return self.prisoner == 0

    def look(self) -> None:
        if self.system.room.is_lit:
            self.system.room.is_lit = False
            self.system.room.count += 1
        self.system.room.is_announced = self.system.room.count >= self.system.enough

    def signal(self) -> None:
        if not self.system.room.is_lit and self.signalled < self.system.signals:
            self.system.room.is_lit = True
            self.signalled += 1

    def visited(self) -> None:
        self.system.room.visited = self.system.room.visited | 1 << self.prisoner


class Prisoners(ClosedSystem):
    """Prisoner: all are free once one of them says, and rightly, that each has been in a room."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"prisoner": "prisoners"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "prisoners": 3,
        "signals": 1,
        "enough": 3,
        "most": 4,
        "everyone": 7,
    }
    STEPS = (Step("prisoner", "visit"),)

    prisoners: int
    signals: int
    enough: int
    everyone: int
    prisoner: list[Prisoner] = machines(Prisoner)
    room: Room = machines(Room)

    @always("what is announced is so")
    def is_right(self) -> bool:
        return not self.room.is_announced or self.room.visited == self.everyone

    @eventually("it is announced")
    def is_over(self) -> bool:
        return self.room.is_announced


class Solitary(Prisoners):
    """PrisonerSolo: one prisoner, who counts."""

    CONSTANTS: ClassVar[dict[str, int]] = {
        "prisoners": 1,
        "signals": 1,
        "enough": 1,
        "most": 2,
        "everyone": 1,
    }
    UNTAKEN: ClassVar[dict[str, str]] = {
        "prisoner.visit: another one is there": "there is no other one"
    }


class Equation(Environment):
    """Two numbers of a byte each, which are counted up and begin again at 0."""

    STATES, INITIAL = (THERE,), THERE

    x: int = Int(255)
    y: int = Int(255)

    count_x: Trigger
    count_y: Trigger

    ROWS = (
        Row("count_x", THERE, STAY, None, "add_x", "the first is counted up"),
        Row("count_y", THERE, STAY, None, "add_y", "the second is counted up"),
    )

    def add_x(self) -> None:
        self.x = (self.x + 1) & 255

    def add_y(self) -> None:
        self.y = (self.y + 1) & 255


class Unsolvable(ClosedSystem):
    """LinearEquation: 2 x + 4 y = 7 in bytes has no solution, so that all states are visited."""

    STEPS = (Step("equation", "count_x"), Step("equation", "count_y"))

    equation: Equation = machines(Equation)

    @always("the equation is not solved")
    def is_unsolved(self) -> bool:
        return (2 * self.equation.x + 4 * self.equation.y) & 255 != 7


class Thread(Environment):
    """Reads a number and writes it back, greater by one."""

    INDEX = ("thread",)
    STATES, INITIAL = ("reading", "writing", "done"), "reading"
    TERMINAL = ("done",)

    system: Increment

    seen: int = Int("threads")

    read: Trigger
    write: Trigger

    ROWS = (
        Row("read", "reading", "writing", None, "look", "it reads"),
        Row("write", "writing", "done", None, "put", "it writes what it has read, plus one"),
    )

    def look(self) -> None:
        self.seen = self.system.shared.number

    def put(self) -> None:
        self.system.shared.number = self.seen + 1


class Shared(Environment):
    """The number."""

    STATES, INITIAL = (THERE,), THERE

    number: int = Int("threads")


class Increment(ClosedSystem):
    """increment: threads that count in one number without a lock."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"thread": "threads"}
    CONSTANTS: ClassVar[dict[str, int]] = {"threads": 2}
    STEPS = (Step("thread", "read"), Step("thread", "write"))

    threads: int
    thread: list[Thread] = machines(Thread)
    shared: Shared = machines(Shared)


class CheckedIncrement(Increment):
    """increment, with the claim that is not so."""

    @always("the number is that of the threads that have written")
    def is_right(self) -> bool:
        return self.shared.number != 1 or any(
            self.thread[i].state != "done" for i in range(self.threads)
        )


class Process(Environment):
    """Is loaded, and then runs and pauses in turn."""

    INDEX = ("process",)
    STATES, INITIAL = ("loading", "running", "paused"), "loading"

    advance: Trigger

    ROWS = (
        Row("advance", ("loading", "paused"), "running", None, None, "it runs"),
        Row("advance", "running", "paused", None, None, "it pauses"),
    )


class Pausing(ClosedSystem):
    """Two processes that are loaded once."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"process": "processes"}
    CONSTANTS: ClassVar[dict[str, int]] = {"processes": 2}
    STEPS = (Step("process", "advance"),)

    processes: int
    process: list[Process] = machines(Process)

    @sometimes("a process pauses")
    def is_paused(self) -> bool:
        return any(self.process[i].state == "paused" for i in range(self.processes))
