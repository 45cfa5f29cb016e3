"""Shared resources that are asked for and handed over: specifications of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Bool, Channel, Fifo, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    infinitely_often,
    leads_to,
    strongly_fair,
    weakly_fair,
)

THERE = "there"


class Client(Environment):
    """The resources that a client asks for and has, as sets of bits."""

    INDEX = ("client",)
    STATES, INITIAL = (THERE,), THERE

    wanted: int = Int("all")
    held: int = Int("all")


class Demand(Environment):
    """The demands of a client on one set of resources."""

    INDEX = ("client", "subset")
    STATES, INITIAL = (THERE,), THERE

    system: Allocator
    client: int
    subset: int

    request: Trigger
    allocate: Trigger
    give_some: Trigger
    give_all: Trigger

    ROWS = (
        Row("request", THERE, STAY, "is_idle", "ask", "it wants these"),
        Row("allocate", THERE, STAY, "is_wanted and is_free", "take", "these are free"),
        Row("give_some", THERE, STAY, "is_held and not is_all", "release", "it needs these not"),
        Row("give_all", THERE, STAY, "is_held and is_all", "release", "it needs none any more"),
    )

    def bits(self) -> int:
        return self.subset + 1

    def is_idle(self) -> bool:
        return (
            self.system.person[self.client].wanted == 0
            and self.system.person[self.client].held == 0
        )

    def is_wanted(self) -> bool:
        return self.bits() & self.system.person[self.client].wanted == self.bits()

    def is_free(self) -> bool:
        return all(
            self.bits() & self.system.person[i].held == 0 for i in range(self.system.clients)
        )

    def is_held(self) -> bool:
        return self.bits() & self.system.person[self.client].held == self.bits()

    def is_all(self) -> bool:
        return self.system.person[self.client].held == self.bits()

    def ask(self) -> None:
        self.system.person[self.client].wanted = self.bits()

    def take(self) -> None:
        self.system.person[self.client].held += self.bits()
        self.system.person[self.client].wanted -= self.bits()

    def release(self) -> None:
        self.system.person[self.client].held -= self.bits()


class Allocator(ClosedSystem):
    """SimpleAllocator: clients ask for sets of resources, and get them piece by piece."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"client": "clients", "subset": "all"}
    CONSTANTS: ClassVar[dict[str, int]] = {"clients": 3, "all": 3}
    STEPS = (
        Step("demand", "request", is_fair=False),
        Step("demand", "allocate", is_fair=False),
        Step("demand", "give_some", is_fair=False),
        Step("demand", "give_all", is_fair=False),
    )
    FAIRNESS = (
        weakly_fair("demand.give_all", each="client"),
        strongly_fair("demand.allocate", each="client"),
    )

    clients: int
    person: list[Client] = machines(Client)
    demand: dict[tuple[int, int], Demand] = machines(Demand)

    @always("a resource has one client")
    def is_exclusive(self) -> bool:
        return all(
            i == j or self.person[i].held & self.person[j].held == 0
            for i in range(self.clients)
            for j in range(self.clients)
        )

    @infinitely_often("a client is satisfied again and again", each="client")
    def is_satisfied(self, client: int) -> bool:
        return self.person[client].wanted == 0

    @leads_to("a client that wants no more gives all back", then="has_nothing", each="client")
    def wants_nothing(self, client: int) -> bool:
        return self.person[client].wanted == 0

    def has_nothing(self, client: int) -> bool:
        return self.person[client].held == 0

    @leads_to("a client gets the first resource", then="has_first", each="client")
    def wants_first(self, client: int) -> bool:
        return self.person[client].wanted & 1 == 1

    def has_first(self, client: int) -> bool:
        return self.person[client].held & 1 == 1

    @leads_to("a client gets the second resource", then="has_second", each="client")
    def wants_second(self, client: int) -> bool:
        return self.person[client].wanted & 2 == 2

    def has_second(self, client: int) -> bool:
        return self.person[client].held & 2 == 2


class Actor(Environment):
    """Reads and writes; what it waits for stands in the queue as well."""

    INDEX = ("actor",)
    STATES, INITIAL = (THERE,), THERE

    system: ReadersWriters
    actor: int

    is_reading: bool = Bool()
    is_writing: bool = Bool()
    waits_to_read: bool = Bool()
    waits_to_write: bool = Bool()

    ask_read: Trigger
    ask_write: Trigger
    stop: Trigger

    ROWS = (
        Row("ask_read", THERE, STAY, "not is_in_read", "queue_read", "it wants to read"),
        Row("ask_write", THERE, STAY, "not is_in_write", "queue_write", "it wants to write"),
        Row("stop", THERE, STAY, "is_active", "end", "it has done"),
    )

    def is_in_read(self) -> bool:
        return self.waits_to_read

    def is_in_write(self) -> bool:
        return self.waits_to_write

    def is_active(self) -> bool:
        return self.is_reading or self.is_writing

    def queue_read(self) -> None:
        self.waits_to_read = True
        self.system.desk.queue.push(self.actor)

    def queue_write(self) -> None:
        self.waits_to_write = True
        self.system.desk.queue.push(self.system.actors + self.actor)

    def end(self) -> None:
        if self.is_reading:
            self.is_reading = False
        else:
            self.is_writing = False


class Desk(Environment):
    """Lets the first of the queue in: a reader beside readers, a writer alone."""

    STATES, INITIAL = (THERE,), THERE

    system: ReadersWriters

    queue: Fifo[int] = Channel("last", "places")

    admit: Trigger

    ROWS = (Row("admit", THERE, STAY, "is_next", "let_in", "it is the first, and may"),)

    def is_next(self) -> bool:
        return (
            not self.queue.empty()
            and all(not self.system.actor[i].is_writing for i in range(self.system.actors))
            and (
                self.queue.head() < self.system.actors
                or all(not self.system.actor[i].is_reading for i in range(self.system.actors))
            )
        )

    def let_in(self) -> None:
        first = self.queue.pop()
        if first < self.system.actors:
            self.system.actor[first].is_reading = True
            self.system.actor[first].waits_to_read = False
        else:
            self.system.actor[first - self.system.actors].is_writing = True
            self.system.actor[first - self.system.actors].waits_to_write = False


class ReadersWriters(ClosedSystem):
    """ReadersWriters: three actors in one queue."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"actor": "actors"}
    CONSTANTS: ClassVar[dict[str, int]] = {"actors": 3}
    DERIVED: ClassVar[dict[str, str]] = {"last": "2 * actors - 1", "places": "2 * actors"}
    STEPS = (
        Step("actor", "ask_read"),
        Step("actor", "ask_write"),
        Step("desk", "admit"),
        Step("actor", "stop", is_fair=False),
    )
    FAIRNESS = (weakly_fair("actor.stop"),)

    actors: int
    actor: list[Actor] = machines(Actor)
    desk: Desk = machines(Desk)

    @always("who writes is alone")
    def is_safe(self) -> bool:
        return all(
            not self.actor[i].is_writing
            or (not self.actor[j].is_reading and (i == j or not self.actor[j].is_writing))
            for i in range(self.actors)
            for j in range(self.actors)
        )

    @infinitely_often("an actor reads again and again", each="actor")
    def is_reading(self, actor: int) -> bool:
        return self.actor[actor].is_reading

    @infinitely_often("an actor writes again and again", each="actor")
    def is_writing(self, actor: int) -> bool:
        return self.actor[actor].is_writing

    @infinitely_often("an actor does not read again and again", each="actor")
    def is_not_reading(self, actor: int) -> bool:
        return not self.actor[actor].is_reading

    @infinitely_often("an actor does not write again and again", each="actor")
    def is_not_writing(self, actor: int) -> bool:
        return not self.actor[actor].is_writing


class Car(Environment):
    """Goes round over the bridge; the first half of the cars from the right, the others against
    them.
    """

    INDEX = ("car",)
    STATES, INITIAL = (THERE,), THERE

    system: Bridge
    car: int

    gone: int = Int("last")

    move_outside: Trigger
    move_inside: Trigger
    enter_empty: Trigger
    enter_behind: Trigger

    ROWS = (
        Row("move_outside", THERE, STAY, "is_clear", "go", "it does not go onto the bridge"),
        Row("move_inside", THERE, STAY, "is_on and is_room", "go", "the place before it is free"),
        Row("enter_empty", THERE, STAY, "is_empty", "let_on", "none is on the bridge"),
        Row("enter_behind", THERE, STAY, "may_follow", "let_on", "it follows those on the bridge"),
    )

    def comes_from_left(self) -> bool:
        return self.car >= self.system.half

    def place(self) -> int:
        return self.gone if self.comes_from_left() else self.system.last - self.gone

    def ahead(self) -> int:
        following = (self.gone + 1) % (self.system.last + 1)
        return following if self.comes_from_left() else self.system.last - following

    def is_on(self) -> bool:
        return self.gone == 3 or self.gone == 4

    def is_clear(self) -> bool:
        return self.gone != 2 and self.gone != 3

    def is_room(self) -> bool:
        return all(self.system.car[i].place() != self.ahead() for i in range(2 * self.system.half))

    def is_empty(self) -> bool:
        return not self.system.line.waiting.empty() and all(
            not self.system.car[i].is_on() for i in range(2 * self.system.half)
        )

    def may_enter(self) -> bool:
        return (
            not self.is_on()
            and self.is_room()
            and all(
                not self.system.car[i].is_on()
                or self.system.car[i].comes_from_left() == self.comes_from_left()
                for i in range(2 * self.system.half)
            )
        )

    def may_follow(self) -> bool:
        return not self.system.line.waiting.empty() and (
            self.system.car[self.system.line.waiting.head()].may_enter()
        )

    def go(self) -> None:
        self.gone = (self.gone + 1) % (self.system.last + 1)
        if self.gone == 2:
            self.system.line.waiting.push(self.car)

    def let_on(self) -> None:
        first = self.system.line.waiting.pop()
        self.system.car[first].gone += 1


class Line(Environment):
    """The cars that wait before the bridge, on either side."""

    STATES, INITIAL = (THERE,), THERE

    waiting: Fifo[int] = Channel("last", "cars")


class Bridge(ClosedSystem):
    """SingleLaneBridge: two cars each way, eight places, two of them on the bridge."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"car": "cars"}
    CONSTANTS: ClassVar[dict[str, int]] = {"half": 2, "last": 7}
    DERIVED: ClassVar[dict[str, str]] = {"cars": "2 * half"}
    STEPS = (
        Step("car", "enter_empty", is_fair=False),
        Step("car", "enter_behind", is_fair=False),
        Step("car", "move_outside"),
        Step("car", "move_inside"),
    )
    FAIRNESS = (weakly_fair("car.enter_empty", "car.enter_behind"),)

    half: int
    last: int
    car: list[Car] = machines(Car)
    line: Line = machines(Line)

    @always("the cars on the bridge go one way, each in its place")
    def is_safe(self) -> bool:
        return all(
            i == j
            or not self.car[i].is_on()
            or not self.car[j].is_on()
            or (
                self.car[i].place() != self.car[j].place()
                and self.car[i].comes_from_left() == self.car[j].comes_from_left()
            )
            for i in range(2 * self.half)
            for j in range(2 * self.half)
        )

    @leads_to("a car leaves the bridge", then="is_off", each="car")
    def is_on(self, car: int) -> bool:
        return self.car[car].is_on()

    @leads_to("a car comes onto the bridge", then="is_on", each="car")
    def is_off(self, car: int) -> bool:
        return not self.car[car].is_on()
