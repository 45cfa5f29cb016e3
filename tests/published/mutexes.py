"""A barrier that is used again, and Lamport's mutual exclusion: of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Bool, Channel, Fifo, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always

THERE = "there"
PLACES = tuple(f"a{number}" for number in range(13))


class Walker(Environment):
    """Goes through two gates, again and again; the last to come opens each for all."""

    INDEX = ("process",)
    STATES, INITIAL = PLACES, "a0"

    system: Barriers

    go: Trigger

    ROWS = (
        Row("go", "a0", "a1", None, None, "it does its work"),
        Row("go", "a1", "a2", "is_free", "lock", "it takes the lock"),
        Row("go", "a2", "a3", None, "come", "it is counted"),
        Row("go", "a3", "a4", "are_all_in", None, "it is the last"),
        Row("go", "a3", "a5", "not are_all_in", None, "others are missing"),
        Row("go", "a4", "a5", None, "open_first", "it opens the first gate"),
        Row("go", "a5", "a6", None, "unlock", "it gives back the lock"),
        Row("go", "a6", "a7", "is_first_open", "pass_first", "it goes through"),
        Row("go", "a7", "a8", "is_free", "lock", "it takes the lock"),
        Row("go", "a8", "a9", None, "leave", "it is counted out"),
        Row("go", "a9", "a10", "are_all_out", None, "it is the last"),
        Row("go", "a9", "a11", "not are_all_out", None, "others are missing"),
        Row("go", "a10", "a11", None, "open_second", "it opens the second gate"),
        Row("go", "a11", "a12", None, "unlock", "it gives back the lock"),
        Row("go", "a12", "a0", "is_second_open", "pass_second", "it goes through"),
    )

    def is_free(self) -> bool:
        return not self.system.hall.is_locked

    def are_all_in(self) -> bool:
        return self.system.hall.inside == self.system.processes

    def are_all_out(self) -> bool:
        return self.system.hall.inside == 0

    def is_first_open(self) -> bool:
        return self.system.hall.first > 0

    def is_second_open(self) -> bool:
        return self.system.hall.second > 0

    def lock(self) -> None:
        self.system.hall.is_locked = True

    def unlock(self) -> None:
        self.system.hall.is_locked = False

    def come(self) -> None:
        self.system.hall.inside += 1

    def leave(self) -> None:
        self.system.hall.inside -= 1

    def open_first(self) -> None:
        self.system.hall.first += self.system.processes

    def open_second(self) -> None:
        self.system.hall.second += self.system.processes

    def pass_first(self) -> None:
        self.system.hall.first -= 1

    def pass_second(self) -> None:
        self.system.hall.second -= 1

    def is_in_lock(self) -> bool:
        return (
            self.state == "a2"
            or self.state == "a3"
            or self.state == "a4"
            or self.state == "a5"
            or self.state == "a8"
            or self.state == "a9"
            or self.state == "a10"
            or self.state == "a11"
        )


class Hall(Environment):
    """The lock, the two gates, and how many are inside."""

    STATES, INITIAL = (THERE,), THERE

    is_locked: bool = Bool()
    first: int = Int("processes")
    second: int = Int("processes")
    inside: int = Int("processes")


class Barriers(ClosedSystem):
    """Barriers: six processes, and a barrier of two gates."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"process": "processes"}
    CONSTANTS: ClassVar[dict[str, int]] = {"processes": 6}
    STEPS = (Step("walker", "go"),)

    processes: int
    walker: list[Walker] = machines(Walker)
    hall: Hall = machines(Hall)

    @always("one has the lock at a time")
    def is_exclusive(self) -> bool:
        return all(
            i == j or not self.walker[i].is_in_lock() or not self.walker[j].is_in_lock()
            for i in range(self.processes)
            for j in range(self.processes)
        )

    @always("who is inside a lock has locked it")
    def is_locked(self) -> bool:
        return self.hall.is_locked or all(
            not self.walker[i].is_in_lock() for i in range(self.processes)
        )


ACKNOWLEDGED, RELEASED = 0, 1


class Claimant(Environment):
    """A process with a clock, what it knows of the others' requests, and the channels to them: an
    acknowledgement is 0, a release 1, a request one more than its clock.
    """

    INDEX = ("process",)
    STATES, INITIAL = (THERE,), THERE

    system: Lamport
    process: int

    clock: int = Int("clock_max", 1)
    requests: list[int] = Array(Int("clock_max"), "processes")
    answers: int = Int("all_answers")
    wires: list[Fifo[int]] = Array(Channel("message", "room"), "processes")
    is_inside: bool = Bool()

    request: Trigger
    enter: Trigger
    leave: Trigger

    ROWS = (
        Row("request", THERE, STAY, "is_idle", "ask", "it wants in"),
        Row("enter", THERE, STAY, "is_first", "go_in", "it is the first, and all have answered"),
        Row("leave", THERE, STAY, "is_in", "go_out", "it has done"),
    )

    def is_idle(self) -> bool:
        return self.requests[self.process] == 0

    def is_first(self) -> bool:
        return self.answers == self.system.all_answers and all(
            q == self.process
            or self.requests[q] == 0
            or self.requests[self.process] < self.requests[q]
            or (self.requests[self.process] == self.requests[q] and self.process < q)
            for q in range(self.system.processes)
        )

    def is_in(self) -> bool:
        return self.is_inside

    def ask(self) -> None:
        self.requests[self.process] = self.clock
        self.answers = 1 << self.process
        for q in range(self.system.processes):
            if q != self.process:
                self.wires[q].push(self.clock + 1)

    def go_in(self) -> None:
        self.is_inside = True

    def go_out(self) -> None:
        self.is_inside = False
        self.requests[self.process] = 0
        self.answers = 0
        for q in range(self.system.processes):
            if q != self.process:
                self.wires[q].push(RELEASED)


class Post(Environment):
    """The posts that arrive at a process from another; nothing where a clock would go too far."""

    INDEX = ("process", "sender")
    STATES, INITIAL = (THERE,), THERE

    system: Lamport
    process: int
    sender: int

    request: Trigger
    answer: Trigger
    release: Trigger

    ROWS = (
        Row("request", THERE, STAY, "is_request and is_early", "note", "a request arrives"),
        Row("request", THERE, STAY, "is_request and not is_early", None, "the clock is at its end"),
        Row("answer", THERE, STAY, "is_answer", "count", "an acknowledgement arrives"),
        Row("release", THERE, STAY, "is_release", "forget", "a release arrives"),
    )

    def has_message(self) -> bool:
        return (
            self.process != self.sender
            and not self.system.claimant[self.sender].wires[self.process].empty()
        )

    def is_request(self) -> bool:
        return self.has_message() and (
            self.system.claimant[self.sender].wires[self.process].head() > RELEASED
        )

    def is_answer(self) -> bool:
        return self.has_message() and (
            self.system.claimant[self.sender].wires[self.process].head() == ACKNOWLEDGED
        )

    def is_release(self) -> bool:
        return self.has_message() and (
            self.system.claimant[self.sender].wires[self.process].head() == RELEASED
        )

    def is_early(self) -> bool:
        return (
            self.system.claimant[self.process].clock < self.system.clock_max
            and self.system.claimant[self.sender].wires[self.process].head()
            <= self.system.clock_max
        )

    def note(self) -> None:
        clock = self.system.claimant[self.sender].wires[self.process].pop() - 1
        self.system.claimant[self.process].requests[self.sender] = clock
        if clock > self.system.claimant[self.process].clock:
            self.system.claimant[self.process].clock = clock + 1
        else:
            self.system.claimant[self.process].clock += 1
        self.system.claimant[self.process].wires[self.sender].push(ACKNOWLEDGED)

    def count(self) -> None:
        self.system.claimant[self.sender].wires[self.process].pop()
        self.system.claimant[self.process].answers = (
            self.system.claimant[self.process].answers | 1 << self.sender
        )

    def forget(self) -> None:
        self.system.claimant[self.sender].wires[self.process].pop()
        self.system.claimant[self.process].requests[self.sender] = 0


class Lamport(ClosedSystem):
    """LamportMutex: three processes, whose clocks go to six."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"process": "processes", "sender": "processes"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "processes": 3,
        "clock_max": 6,
        "room": 3,
        "all_answers": 7,
    }
    DERIVED: ClassVar[dict[str, str]] = {"message": "clock_max + 1"}
    STEPS = (
        Step("claimant", "request"),
        Step("claimant", "enter"),
        Step("claimant", "leave"),
        Step("post", "request"),
        Step("post", "answer"),
        Step("post", "release"),
    )

    processes: int
    clock_max: int
    all_answers: int
    claimant: list[Claimant] = machines(Claimant)
    post: dict[tuple[int, int], Post] = machines(Post)

    @always("one is inside at a time")
    def is_exclusive(self) -> bool:
        return all(
            i == j or not self.claimant[i].is_inside or not self.claimant[j].is_inside
            for i in range(self.processes)
            for j in range(self.processes)
        )
