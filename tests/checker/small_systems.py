"""Small closed systems: locks, and one system for each thing that a check has to find."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY,
    Bool,
    Channel,
    Fifo,
    Int,
    Machine,
    Port,
    Row,
    Trigger,
    machines,
    output,
)
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    eventually,
    leads_to,
    sometimes,
    terminal,
)

IDLE, WANTING, INSIDE = "idle", "wanting", "inside"
ON, OFF = "on", "off"


class Visitor(Machine):
    """Wants to be inside, where one may be at a time."""

    INDEX = ("visitor",)
    STATES = (IDLE, WANTING, INSIDE)
    INITIAL = IDLE

    system: House
    visitor: int

    ask: Trigger
    enter: Trigger
    leave: Trigger

    ROWS = (
        Row("ask", IDLE, WANTING, None, None, "a visitor comes"),
        Row("enter", WANTING, INSIDE, "is_free", "lock", "no visitor is inside"),
        Row("leave", INSIDE, IDLE, None, "unlock", "the visit is over"),
    )

    def is_free(self) -> bool:
        return not self.system.door.is_locked

    def is_inside(self) -> bool:
        return self.state == INSIDE

    def lock(self) -> None:
        self.system.door.turn(True)

    def unlock(self) -> None:
        self.system.door.turn(False)


class Door(Machine):
    """Locked or not."""

    STATES = (ON,)
    INITIAL = ON

    system: House

    is_locked: bool = Bool()

    turn: Trigger

    ROWS = (Row("turn", ON, STAY, None, "set_lock", "a visitor turns the key"),)

    def set_lock(self, is_locked: bool) -> None:
        self.is_locked = is_locked


class House(ClosedSystem):
    """Some visitors and one door; states go round, so runs without end mean something."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"visitor": "visitors"}
    CONSTANTS: ClassVar[dict[str, int]] = {"visitors": 2}
    STEPS = (
        Step("visitor", "ask", is_fair=False),
        Step("visitor", "enter"),
        Step("visitor", "leave"),
    )

    visitors: int

    visitor: list[Visitor] = machines(Visitor)
    door: Door = machines(Door)

    @always("who is inside has locked the door", when="is_visited")
    def is_locked_when_visited(self) -> bool:
        return self.door.is_locked

    def is_visited(self) -> bool:
        return any(self.visitor[v].is_inside() for v in range(self.visitors))

    @sometimes("a visitor is inside")
    def a_visitor_is_inside(self) -> bool:
        return self.is_visited()


class PoliteHouse(House):
    """A house in which all who are inside leave."""

    @leads_to("a visit ends", then="is_empty")
    def is_occupied(self) -> bool:
        return self.door.is_locked

    def is_empty(self) -> bool:
        return not self.door.is_locked


class UnfairHouse(PoliteHouse):
    """A visitor may be overtaken for ever, because it is not always free when it is looked at."""

    @leads_to("the first visitor gets in", then="first_is_inside")
    def first_wants(self) -> bool:
        return self.visitor[0].state == WANTING

    def first_is_inside(self) -> bool:
        return self.visitor[0].state == INSIDE


class QuietHouse(House):
    """No visitor has to come."""

    @eventually("a visitor comes")
    def a_visitor_came(self) -> bool:
        return self.door.is_locked


class Counter(Machine):
    """Counts to its end and is then switched off."""

    STATES = (ON, OFF)
    INITIAL = ON
    TERMINAL = (OFF,)

    system: Counting

    count: int = Int("end")
    posted: Fifo[int] = Channel("end", "room")

    tick: Trigger
    stop: Trigger

    ROWS: ClassVar[tuple[Row, ...]] = (
        Row("tick", ON, STAY, "is_short", "add", "time passes"),
        Row("stop", ON, OFF, "not is_short", None, "it is done"),
    )

    def is_short(self) -> bool:
        return self.count < self.system.end

    def add(self) -> None:
        self.count += 1


class Counting(ClosedSystem):
    """One counter."""

    CONSTANTS: ClassVar[dict[str, int]] = {"end": 5, "room": 2}
    STEPS: ClassVar[tuple[Step, ...]] = (Step("counter", "tick"), Step("counter", "stop"))

    end: int
    room: int

    counter: Counter = machines(Counter)

    @eventually("it stops")
    def has_stopped(self) -> bool:
        return self.counter.state == OFF


class Greedy(Counter):
    """Goes on counting beyond its end."""

    ROWS = (
        Row("tick", ON, STAY, None, "add", "time passes"),
        Row("stop", ON, OFF, "not is_short", None, "it is done"),
    )


class OutOfRange(Counting):
    """The field leaves its range."""

    counter: Greedy = machines(Greedy)


class Posting(Counter):
    """Posts at every tick what is never fetched."""

    def add(self) -> None:
        self.count += 1
        self.posted.push(self.count)


class Overflowing(Counting):
    """The channel overflows."""

    counter: Posting = machines(Posting)


class Fetching(Counter):
    """Fetches what was never posted."""

    def add(self) -> None:
        self.count = self.posted.pop()


class Starved(Counting):
    """The channel is empty."""

    counter: Fetching = machines(Fetching)


class Abrupt(Counter):
    """Stops itself in the midst of counting, when it may not."""

    def add(self) -> None:
        self.count += 1
        if self.count == 2:
            self.stop()


class Refusing(Counting):
    """A trigger is refused."""

    counter: Abrupt = machines(Abrupt)


class Repeating(Counter):
    """May be told again what it was told before."""

    repeat: Trigger

    ROWS = (
        *Counter.ROWS,
        Row("repeat", (ON, OFF), STAY, None, "hear_again", "it comes a second time"),
    )

    def hear_again(self) -> None:
        if self.state == ON and self.count > 3:
            self.tick()


class Repeated(Counting):
    """A step changes something that must not."""

    STEPS = (*Counting.STEPS, Step("counter", "repeat", is_fair=False, is_stuttering=True))

    counter: Repeating = machines(Repeating)


class Restless(Counter):
    """Starts again whenever it has begun."""

    def add(self) -> None:
        if self.posted.empty():
            self.tick()


class Endless(Counting):
    """Triggers lead to each other without end."""

    counter: Restless = machines(Restless)


class Descending(Counter):
    """Counts down in one step: a trigger for each number."""

    descend: Trigger

    ROWS = (
        *Counter.ROWS,
        Row("descend", ON, STAY, None, "go_down", "one less"),
    )

    def add(self) -> None:
        self.count = self.system.end
        self.descend()

    def go_down(self) -> None:
        self.count -= 1
        if self.count > 0:
            self.descend()


class Descent(Counting):
    """As many triggers in one step as `end` says, of at most six."""

    CALLS_MAX = 6

    counter: Descending = machines(Descending)

    @eventually("it stops")
    def has_stopped(self) -> bool:
        return True


class Net(Port):
    """The net between two players."""

    def ball(self) -> None:
        """It flies over."""


class Server(Machine):
    """Returns every ball."""

    STATES = (ON,)
    INITIAL = ON

    system: Rally

    net: Net = output(Net)

    hit: Trigger

    ROWS = (Row("hit", ON, STAY, None, "strike", "a ball comes"),)

    def strike(self) -> None:
        self.net.ball()


class Wall(Environment):
    """Gives every ball back."""

    STATES = (ON,)
    INITIAL = ON

    system: Rally

    def ball(self) -> None:
        self.system.server.hit()


class Rally(ClosedSystem):
    """Effects and events lead to each other without end."""

    WIRING: ClassVar[dict[str, str]] = {"server.net": "wall"}
    STEPS = (Step("server", "hit"),)

    server: Server = machines(Server)
    wall: Wall = machines(Wall)


class Jammed(Counter):
    """Forgets to stop."""

    ROWS = (
        Row("tick", ON, STAY, "is_short", "add", "time passes"),
        Row("stop", ON, OFF, "is_overdue", None, "it is done"),
    )

    def is_overdue(self) -> bool:
        return self.count > 100


class Deadlocked(Counting):
    """No step is possible, although it has not stopped."""

    CONSTANTS: ClassVar[dict[str, int]] = {"end": 5, "room": 2}

    counter: Jammed = machines(Jammed)

    @terminal("it has stopped")
    def may_end(self) -> bool:
        return self.counter.state == OFF


class RaisingProperty(Counting):
    """A property fails itself."""

    @always("nothing, and it fails")
    def looks_too_far(self) -> bool:
        assert self.counter.count < 3, "the search looks no further than this"
        return True


class NeverThere(Counting):
    """A state that is hoped for cannot be reached."""

    @sometimes("it counts to a hundred")
    def reaches_a_hundred(self) -> bool:
        return self.counter.count == 100


class Unpremised(Counting):
    """A claim about what never happens."""

    @always("what never happens is harmless", when="is_at_a_hundred")
    def is_harmless(self) -> bool:
        return False

    def is_at_a_hundred(self) -> bool:
        return self.counter.count == 100


class FirstComes(House):
    """The visitors are not alike: the first one is looked at by its number."""

    @sometimes("the first is inside")
    def first_is_inside(self) -> bool:
        return self.visitor[0].is_inside()


class Favourite(Visitor):
    """Compares its own number."""

    def is_free(self) -> bool:
        return not self.system.door.is_locked and self.visitor > 0


class Favouring(House):
    """The visitors are not alike: one is told apart by its number."""

    visitor = machines(Favourite)
