"""Systems of processes that seldom meet, as in the collections of other checkers: what a
partial-order reduction is made for. `independent_promela` has the same ones for Spin.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Channel, Fifo, Int, Machine, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, sometimes, terminal

THINKING, HOLDING, EATING = "thinking", "holding", "eating"
OUT, COMING, WAITING, INSIDE = "out", "coming", "waiting", "inside"
ACTIVE, PASSIVE, LEADING = "active", "passive", "leading"
MAKING, READY, MOUNTING = "making", "ready", "mounting"


class Philosopher(Machine):
    """Takes the left fork, then the right one, eats, and puts both down."""

    INDEX = ("place",)
    STATES = (THINKING, HOLDING, EATING)
    INITIAL = THINKING

    system: Table
    place: int

    sit: Trigger
    eat: Trigger
    rise: Trigger

    ROWS = (
        Row("sit", THINKING, HOLDING, "is_left_free", None, "the left fork is there"),
        Row("eat", HOLDING, EATING, "is_right_free", None, "the right fork is there too"),
        Row("rise", EATING, THINKING, None, None, "both forks are put down"),
    )

    def is_left_free(self) -> bool:
        last = self.system.places - 1
        return self.system.philosopher[(self.place + last) % self.system.places].state != EATING

    def is_right_free(self) -> bool:
        return self.system.philosopher[(self.place + 1) % self.system.places].state == THINKING


class Table(ClosedSystem):
    """Philosophers around a table."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"place": "places"}
    CONSTANTS: ClassVar[dict[str, int]] = {"places": 5}
    STEPS = (Step("philosopher", "sit"), Step("philosopher", "eat"), Step("philosopher", "rise"))

    places: int

    philosopher: list[Philosopher] = machines(Philosopher)

    @sometimes("the first one eats")
    def is_fed(self) -> bool:
        return self.philosopher[0].state == EATING


class PoliteTable(Table):
    """All may hold one fork, and then none eats ever again."""

    @terminal("it never ends")
    def is_over(self) -> bool:
        return False


class Process(Environment):
    """One of several that go through Peterson's filter, level by level."""

    INDEX = ("process",)
    STATES = (OUT, COMING, WAITING, INSIDE)
    INITIAL = OUT

    system: Filter
    process: int

    level: int = Int("processes")

    come: Trigger
    give_way: Trigger
    ascend: Trigger
    enter: Trigger
    leave: Trigger

    ROWS = (
        Row("come", OUT, COMING, None, "rise", "it wants to be inside"),
        Row("give_way", COMING, WAITING, None, "be_last", "it is the last one at its level"),
        Row("ascend", WAITING, COMING, "may_go_on and not is_top", "rise", "nothing is in its way"),
        Row("enter", WAITING, INSIDE, "may_go_on and is_top", None, "the last level is passed"),
        Row("leave", INSIDE, OUT, None, "forget", "it goes"),
    )

    def is_top(self) -> bool:
        return self.level == self.system.processes - 1

    def may_go_on(self) -> bool:
        return self.system.board.last[self.level - 1] != self.process or all(
            other == self.process or self.system.process[other].level < self.level
            for other in range(self.system.processes)
        )

    def rise(self) -> None:
        self.level += 1

    def be_last(self) -> None:
        self.system.board.last[self.level - 1] = self.process

    def forget(self) -> None:
        self.level = 0


class Board(Environment):
    """The state that the processes share: who came last to each level."""

    STATES = ("there",)
    INITIAL = "there"

    last: list[int] = Array(Int("processes"), "levels")


class Filter(ClosedSystem):
    """Peterson's mutual exclusion of several processes."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"process": "processes"}
    CONSTANTS: ClassVar[dict[str, int]] = {"processes": 3, "levels": 2}
    DERIVED: ClassVar[dict[str, str]] = {"levels": "processes - 1"}
    STEPS = tuple(
        Step("process", name) for name in ("come", "give_way", "ascend", "enter", "leave")
    )

    processes: int

    process: list[Process] = machines(Process)
    board: Board = machines(Board)

    @always("one process at most is inside")
    def is_exclusive(self) -> bool:
        return all(
            one == other or self.process[one].state != INSIDE or self.process[other].state != INSIDE
            for one in range(self.processes)
            for other in range(self.processes)
        )


class Member(Environment):
    """Passes numbers around a ring; one that gets its own back leads."""

    INDEX = ("member",)
    STATES = ("silent", ACTIVE, PASSIVE, LEADING)
    INITIAL, TERMINAL = "silent", (PASSIVE, LEADING)

    system: Ring
    member: int

    inbox: Fifo[int] = Channel("members", "members")

    speak: Trigger
    hear: Trigger

    ROWS = (
        Row("speak", "silent", ACTIVE, "has_room", "announce", "it wants to lead"),
        Row(
            "hear",
            ACTIVE,
            PASSIVE,
            "has_mail and has_room and is_larger",
            "pass_on",
            "another one will lead",
        ),
        Row(
            "hear", ACTIVE, STAY, "has_mail and not is_larger and not is_own", "drop", "it will not"
        ),
        Row("hear", ACTIVE, LEADING, "has_mail and not is_larger and is_own", "drop", "it has won"),
        Row("hear", PASSIVE, STAY, "has_mail and has_room", "pass_on", "it only hands on"),
    )

    def has_mail(self) -> bool:
        return not self.inbox.empty()

    def has_room(self) -> bool:
        following = (self.member + 1) % self.system.members
        return self.system.member[following].inbox.size() < self.system.members

    def is_larger(self) -> bool:
        return self.inbox.head() > self.member

    def is_own(self) -> bool:
        return self.inbox.head() == self.member

    def announce(self) -> None:
        self.system.member[(self.member + 1) % self.system.members].inbox.push(self.member)

    def pass_on(self) -> None:
        following = (self.member + 1) % self.system.members
        self.system.member[following].inbox.push(self.inbox.pop())

    def drop(self) -> None:
        self.inbox.pop()


class Ring(ClosedSystem):
    """The election of Chang and Roberts: the largest number leads."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"member": "members"}
    CONSTANTS: ClassVar[dict[str, int]] = {"members": 4}
    STEPS = (Step("member", "speak"), Step("member", "hear"))

    members: int

    member: list[Member] = machines(Member)

    @always("only the largest leads")
    def is_largest(self) -> bool:
        return all(self.member[i].state != LEADING for i in range(self.members - 1))

    @terminal("it ends with a leader")
    def is_over(self) -> bool:
        return self.member[self.members - 1].state == LEADING


class Runner(Machine):
    """Counts for itself."""

    INDEX = ("runner",)
    STATES = ("running",)
    INITIAL = "running"

    system: Track
    runner: int

    done: int = Int("laps")

    run: Trigger

    ROWS = (Row("run", "running", STAY, "may_run", "count", "another lap"),)

    def may_run(self) -> bool:
        return self.done < self.system.laps

    def count(self) -> None:
        self.done += 1


class Track(ClosedSystem):
    """Runners that have nothing to do with each other."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"runner": "runners"}
    CONSTANTS: ClassVar[dict[str, int]] = {"runners": 5, "laps": 4}
    STEPS = (Step("runner", "run"),)

    runners: int
    laps: int

    runner: list[Runner] = machines(Runner)

    @always("the first runner keeps to its laps")
    def is_within(self) -> bool:
        return self.runner[0].done <= self.laps

    @terminal("all have run all laps")
    def is_over(self) -> bool:
        return all(self.runner[i].done == self.laps for i in range(self.runners))


class Worker(Machine):
    """Makes parts for itself, and then needs the bench that all of them share."""

    INDEX = ("worker",)
    STATES = (MAKING, READY, MOUNTING)
    INITIAL = MAKING

    system: Workshop
    worker: int

    made: int = Int("parts")

    make: Trigger
    finish: Trigger
    take: Trigger
    leave: Trigger

    ROWS = (
        Row("make", MAKING, STAY, "not is_enough", "add", "one part more"),
        Row("finish", MAKING, READY, "is_enough", "hand_in", "the parts are made"),
        Row("take", READY, MOUNTING, "is_bench_free", None, "the bench is free"),
        Row("leave", MOUNTING, MAKING, None, None, "they are mounted"),
    )

    def is_enough(self) -> bool:
        return self.made == self.system.parts

    def is_bench_free(self) -> bool:
        return all(self.system.worker[i].state != MOUNTING for i in range(self.system.workers))

    def add(self) -> None:
        self.made += 1

    def hand_in(self) -> None:
        self.made = 0


class Workshop(ClosedSystem):
    """Workers with much to do for themselves, and one bench."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"worker": "workers"}
    CONSTANTS: ClassVar[dict[str, int]] = {"workers": 4, "parts": 3}
    STEPS = tuple(Step("worker", name) for name in ("make", "finish", "take", "leave"))

    workers: int
    parts: int

    worker: list[Worker] = machines(Worker)
