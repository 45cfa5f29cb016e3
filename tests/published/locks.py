"""Processes that exclude or await each other: specifications of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    each_step,
    implements,
)

OUT, WANTING, ASKING, WAITING, INSIDE, LEAVING = (
    "out",
    "wanting",
    "asking",
    "waiting",
    "inside",
    "leaving",
)
PAIR: dict[str, str] = {"process": "processes"}


class Locker(Environment):
    """A process that takes one lock."""

    INDEX = ("process",)
    STATES = (OUT, WANTING, INSIDE, LEAVING)
    INITIAL = OUT

    system: Lock

    want: Trigger
    lock: Trigger
    end: Trigger
    unlock: Trigger

    ROWS = (
        Row("want", OUT, WANTING, None, None, "it wants in"),
        Row("lock", WANTING, INSIDE, "is_free", None, "none is inside"),
        Row("end", INSIDE, LEAVING, None, None, "it has done its work"),
        Row("unlock", LEAVING, OUT, None, None, "the lock is free again"),
    )

    def is_free(self) -> bool:
        return all(
            self.system.locker[i].state != INSIDE and self.system.locker[i].state != LEAVING
            for i in range(self.system.processes)
        )


class Lock(ClosedSystem):
    """Lock: two processes and one lock."""

    INDEX_SETS: ClassVar[dict[str, str]] = PAIR
    CONSTANTS: ClassVar[dict[str, int]] = {"processes": 2}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("locker", "want"),
        Step("locker", "lock"),
        Step("locker", "end"),
        Step("locker", "unlock"),
    )

    processes: int
    locker: list[Locker] = machines(Locker)

    @always("one is inside at a time")
    def is_exclusive(self) -> bool:
        return all(
            i == j or self.locker[i].state != INSIDE or self.locker[j].state != INSIDE
            for i in range(self.processes)
            for j in range(self.processes)
        )


class History(Environment):
    """The turn of each process."""

    STATES, INITIAL = ("kept",), "kept"

    turn: int = Int("last")


class Contender(Environment):
    """A process of Peterson's algorithm."""

    INDEX = ("process",)
    STATES = (OUT, WANTING, ASKING, WAITING, INSIDE, LEAVING)
    INITIAL = OUT

    system: Peterson
    process: int

    is_up: bool = Bool()

    want: Trigger
    ask: Trigger
    give: Trigger
    enter: Trigger
    end: Trigger
    leave: Trigger

    ROWS = (
        Row("want", OUT, WANTING, None, None, "it wants in"),
        Row("ask", WANTING, ASKING, None, "raise_flag", "it says so"),
        Row("give", ASKING, WAITING, None, "give_turn", "it lets the other go first"),
        Row("enter", WAITING, INSIDE, "may_enter", None, "the other is out, or it is its turn"),
        Row("end", INSIDE, LEAVING, None, None, "it has done its work"),
        Row("leave", LEAVING, OUT, None, "lower_flag", "it says so"),
    )

    def may_enter(self) -> bool:
        return not self.system.contender[1 - self.process].is_up or (
            self.system.history.turn == self.process
        )

    def raise_flag(self) -> None:
        self.is_up = True

    def give_turn(self) -> None:
        self.system.history.turn = 1 - self.process

    def lower_flag(self) -> None:
        self.is_up = False


class Peterson(ClosedSystem):
    """Peterson: two processes, two flags and a turn."""

    INDEX_SETS: ClassVar[dict[str, str]] = PAIR
    CONSTANTS: ClassVar[dict[str, int]] = {"processes": 2, "last": 1}
    STEPS = (
        Step("contender", "want"),
        Step("contender", "ask"),
        Step("contender", "give"),
        Step("contender", "enter"),
        Step("contender", "end"),
        Step("contender", "leave"),
    )

    processes: int
    contender: list[Contender] = machines(Contender)
    history: History = machines(History)

    @always("one is inside at a time")
    def is_exclusive(self) -> bool:
        return all(
            i == j or self.contender[i].state != INSIDE or self.contender[j].state != INSIDE
            for i in range(self.processes)
            for j in range(self.processes)
        )

    @implements("it does what two processes with a lock do", Lock)
    def as_lock(self, specification: Lock) -> None:
        for mine, theirs in zip(self.contender, specification.locker, strict=True):
            theirs.state = WANTING if mine.state in (ASKING, WAITING) else mine.state


class Remembering(Environment):
    """A process that takes one lock, and then stands for two steps of another algorithm."""

    INDEX = ("process",)
    STATES = (OUT, WANTING, ASKING, WAITING, INSIDE, LEAVING)
    INITIAL = OUT

    system: LockHistory
    process: int

    want: Trigger
    lock: Trigger
    give: Trigger
    enter: Trigger
    end: Trigger
    unlock: Trigger

    ROWS = (
        Row("want", OUT, WANTING, "is_quiet", None, "it wants in"),
        Row("lock", WANTING, ASKING, "is_free", None, "none is inside"),
        Row("give", ASKING, WAITING, None, "note", "it is the other's turn"),
        Row("enter", WAITING, INSIDE, None, None, "it has stood for the other algorithm"),
        Row("end", INSIDE, LEAVING, "is_quiet", None, "it has done its work"),
        Row("unlock", LEAVING, OUT, "is_quiet", None, "the lock is free again"),
    )

    def is_quiet(self) -> bool:
        return all(
            self.system.locker[i].state != ASKING and self.system.locker[i].state != WAITING
            for i in range(self.system.processes)
        )

    def is_free(self) -> bool:
        return all(
            self.system.locker[i].state == OUT or self.system.locker[i].state == WANTING
            for i in range(self.system.processes)
        )

    def note(self) -> None:
        self.system.history.turn = 1 - self.process


class LockHistory(ClosedSystem):
    """LockHS: the lock with a variable of history and steps that change nothing but that."""

    INDEX_SETS: ClassVar[dict[str, str]] = PAIR
    CONSTANTS: ClassVar[dict[str, int]] = {"processes": 2, "last": 1}
    STEPS = (
        Step("locker", "want"),
        Step("locker", "lock"),
        Step("locker", "give"),
        Step("locker", "enter"),
        Step("locker", "end"),
        Step("locker", "unlock"),
    )

    processes: int
    locker: list[Remembering] = machines(Remembering)
    history: History = machines(History)

    @always("who has stood for the second step has left the turn to the other")
    def is_given(self) -> bool:
        return all(
            (self.locker[i].state != WAITING and self.locker[i].state != INSIDE)
            or self.history.turn == 1 - i
            for i in range(self.processes)
        )

    @implements("it does what two processes with a lock do", Lock)
    def as_lock(self, specification: Lock) -> None:
        for mine, theirs in zip(self.locker, specification.locker, strict=True):
            theirs.state = INSIDE if mine.state in (ASKING, WAITING) else mine.state


class LockAsPeterson(LockHistory):
    """LockHS once more: what it remembers is what Peterson's algorithm does."""

    @implements("it does what Peterson's algorithm does", Peterson)
    def as_peterson(self, specification: Peterson) -> None:
        specification.history.turn = self.history.turn
        for mine, theirs in zip(self.locker, specification.contender, strict=True):
            theirs.state = mine.state
            theirs.is_up = mine.state not in (OUT, WANTING)


class Runner(Environment):
    """Arrives at the barrier, and waits there."""

    INDEX = ("process",)
    STATES = (OUT, WAITING)
    INITIAL = OUT

    arrive: Trigger
    go_on: Trigger

    ROWS = (
        Row("arrive", OUT, WAITING, None, None, "it is there"),
        Row("go_on", WAITING, OUT, None, None, "all are there"),
    )


class Gate(Environment):
    """Opens once all have arrived."""

    STATES, INITIAL = ("closed",), "closed"

    system: Barrier

    open: Trigger

    ROWS = (Row("open", "closed", STAY, "is_complete", "let_go", "all are there"),)

    def is_complete(self) -> bool:
        return all(self.system.runner[i].state == WAITING for i in range(self.system.processes))

    def let_go(self) -> None:
        for i in range(self.system.processes):
            self.system.runner[i].go_on()


class Barrier(ClosedSystem):
    """Barrier: six processes meet."""

    INDEX_SETS: ClassVar[dict[str, str]] = PAIR
    CONSTANTS: ClassVar[dict[str, int]] = {"processes": 6}
    STEPS = (Step("runner", "arrive"), Step("gate", "open"))

    processes: int
    runner: list[Runner] = machines(Runner)
    gate: Gate = machines(Gate)

    def is_waiting(self, process: int) -> bool:
        return self.runner[process].state == WAITING

    def is_missing(self, process: int) -> bool:
        return any(self.runner[i].state == OUT for i in range(self.processes))

    @each_step("who waits goes on only once all are there", each="process")
    def is_held(self, process: int, is_waiting: bool, is_missing: bool) -> bool:
        return not is_waiting or not is_missing or self.is_waiting(process)


class Writer(Environment):
    """Writes its own variable, and reads its neighbour's."""

    INDEX = ("process",)
    STATES = (OUT, ASKING, "done")
    INITIAL = OUT
    TERMINAL = ("done",)

    system: Neighbours
    process: int

    has_written: bool = Bool()
    has_seen: bool = Bool()

    write: Trigger
    read: Trigger

    ROWS = (
        Row("write", OUT, ASKING, None, "put", "it writes"),
        Row("read", ASKING, "done", None, "look", "it reads what its neighbour has written"),
    )

    def put(self) -> None:
        self.has_written = True

    def look(self) -> None:
        left = (self.process + self.system.processes - 1) % self.system.processes
        self.has_seen = self.system.writer[left].has_written


class End(Environment):
    """Goes round where all has ended, as TLC lets a program do."""

    STATES, INITIAL = ("watching",), "watching"

    system: Neighbours

    stutter: Trigger

    ROWS = (Row("stutter", "watching", STAY, "is_over", None, "all has ended"),)

    def is_over(self) -> bool:
        return all(self.system.writer[i].state == "done" for i in range(self.system.processes))


class Neighbours(ClosedSystem):
    """Simple: the last to write sees that its neighbour has written."""

    INDEX_SETS: ClassVar[dict[str, str]] = PAIR
    CONSTANTS: ClassVar[dict[str, int]] = {"processes": 5}
    STEPS = (Step("writer", "write"), Step("writer", "read"), Step("end", "stutter"))

    processes: int
    writer: list[Writer] = machines(Writer)
    end: End = machines(End)

    @always("once all have read, one has seen a write")
    def is_seen(self) -> bool:
        return any(self.writer[i].state != "done" for i in range(self.processes)) or any(
            self.writer[i].has_seen for i in range(self.processes)
        )


class SlowWriter(Environment):
    """Writes its own variable, which takes two steps, and reads its neighbour's."""

    INDEX = ("process",)
    STATES = (OUT, WANTING, ASKING, "done")
    INITIAL = OUT
    TERMINAL = ("done",)

    system: RegularNeighbours
    process: int

    has_seen: bool = Bool()

    begin: Trigger
    write: Trigger
    read_old: Trigger
    read_new: Trigger

    ROWS = (
        Row("begin", OUT, WANTING, None, None, "who reads now may see the old value or the new"),
        Row("write", WANTING, ASKING, None, None, "it is written"),
        Row("read_old", ASKING, "done", "may_see_old", None, "its neighbour has not written"),
        Row("read_new", ASKING, "done", "may_see_new", "look", "its neighbour has begun to"),
    )

    def left(self) -> int:
        return (self.process + self.system.processes - 1) % self.system.processes

    def may_see_old(self) -> bool:
        left = self.left()
        return self.system.writer[left].state == OUT or self.system.writer[left].state == WANTING

    def may_see_new(self) -> bool:
        return self.system.writer[self.left()].state != OUT

    def look(self) -> None:
        self.has_seen = True


class RegularEnd(Environment):
    """Goes round where all has ended, as TLC lets a program do."""

    STATES, INITIAL = ("watching",), "watching"

    system: RegularNeighbours

    stutter: Trigger

    ROWS = (Row("stutter", "watching", STAY, "is_over", None, "all has ended"),)

    def is_over(self) -> bool:
        return all(self.system.writer[i].state == "done" for i in range(self.system.processes))


class RegularNeighbours(ClosedSystem):
    """SimpleRegular: the same over registers that may still give the old value while written."""

    INDEX_SETS: ClassVar[dict[str, str]] = PAIR
    CONSTANTS: ClassVar[dict[str, int]] = {"processes": 8}
    STEPS = (
        Step("writer", "begin"),
        Step("writer", "write"),
        Step("writer", "read_old"),
        Step("writer", "read_new"),
        Step("end", "stutter"),
    )

    processes: int
    writer: list[SlowWriter] = machines(SlowWriter)
    end: RegularEnd = machines(RegularEnd)

    @always("once all have read, one has seen a write")
    def is_seen(self) -> bool:
        return any(self.writer[i].state != "done" for i in range(self.processes)) or any(
            self.writer[i].has_seen for i in range(self.processes)
        )
