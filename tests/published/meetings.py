"""Nodes that meet, elect one of them, or build a tree: specifications of the TLA+ examples."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Array, Bool, Int, Row, Trigger, machines
from epochgate.fsm.closed import (
    ClosedSystem,
    Environment,
    Step,
    always,
    eventually,
    initially,
    leads_to,
    terminal,
    weakly_fair,
)

THERE = "there"
FADED = 3


class Chameneos(Environment):
    """A creature of one of three colours, which changes it when it meets another."""

    INDEX = ("creature",)
    STATES, INITIAL = (THERE,), THERE

    system: Mall
    creature: int

    colour: int = Int(FADED, start=range(3))
    met: int = Int("meetings")

    arrive: Trigger
    fade: Trigger
    meet: Trigger

    ROWS = (
        Row("arrive", THERE, STAY, "is_alive and is_empty and may_meet", "wait", "it waits"),
        Row("fade", THERE, STAY, "is_alive and is_empty and not may_meet", "end", "it is over"),
        Row("meet", THERE, STAY, "is_alive and is_other", "change", "another is there"),
    )

    def is_alive(self) -> bool:
        return self.colour != FADED

    def is_empty(self) -> bool:
        return self.system.place.waiting == 0

    def may_meet(self) -> bool:
        return self.system.place.met < self.system.meetings

    def is_other(self) -> bool:
        return self.system.place.waiting != 0 and self.system.place.waiting != self.creature + 1

    def wait(self) -> None:
        self.system.place.waiting = self.creature + 1

    def end(self) -> None:
        self.colour = FADED

    def change(self) -> None:
        other = self.system.place.waiting - 1
        theirs = self.system.creature[other].colour
        new = self.colour if self.colour == theirs else 3 - self.colour - theirs
        self.colour = new
        self.system.creature[other].colour = new
        self.met += 1
        self.system.creature[other].met += 1
        self.system.place.waiting = 0
        self.system.place.met += 1


class Place(Environment):
    """The process that waits, and how many meetings there were."""

    STATES, INITIAL = (THERE,), THERE

    waiting: int = Int("creatures")
    met: int = Int("meetings")


class Mall(ClosedSystem):
    """Chameneos: four creatures, and four meetings."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"creature": "creatures"}
    CONSTANTS: ClassVar[dict[str, int]] = {"creatures": 4, "meetings": 4}
    STEPS = (Step("creature", "arrive"), Step("creature", "fade"), Step("creature", "meet"))

    meetings: int
    creature: list[Chameneos] = machines(Chameneos)
    place: Place = machines(Place)

    @always("each meeting is one of two creatures")
    def is_sum(self) -> bool:
        return self.place.met < self.meetings or (
            self.creature[0].met
            + self.creature[1].met
            + self.creature[2].met
            + self.creature[3].met
            == 2 * self.meetings
        )


LOST, CANDIDATE, WON = 0, 1, 2


class Elector(Environment):
    """A node of the ring, and the names that are under way to it, as bits."""

    INDEX = ("node",)
    STATES, INITIAL = ("new", "begun"), "new"
    TERMINAL = ("begun",)

    system: Election
    node: int

    begins: bool = Bool(start=ANY)
    standing: int = Int(WON, start=(LOST, CANDIDATE))
    names: int = Int("all_names")

    begin: Trigger

    ROWS = (Row("begin", "new", "begun", None, "say", "it says its name, if it wants to"),)

    def say(self) -> None:
        if self.begins:
            self.pass_on(self.node)

    def pass_on(self, name: int) -> None:
        after = (self.node + 1) % self.system.nodes
        self.system.elector[after].names = self.system.elector[after].names | 1 << (name & 3)


class Name(Environment):
    """A name that arrives at a node."""

    INDEX = ("node", "name")
    STATES, INITIAL = (THERE,), THERE

    system: Election
    node: int
    name: int

    arrive: Trigger

    ROWS = (Row("arrive", THERE, STAY, "is_here", "take", "it is the node's turn"),)

    def is_here(self) -> bool:
        return (
            self.system.elector[self.node].state == "begun"
            and self.system.elector[self.node].names >> self.name & 1 == 1
        )

    def take(self) -> None:
        self.system.elector[self.node].names -= 1 << self.name
        if self.system.elector[self.node].standing == LOST:
            self.system.elector[self.node].pass_on(self.name)
        elif self.name < self.node:
            self.system.elector[self.node].standing = LOST
            self.system.elector[self.node].pass_on(self.name)
        elif self.name == self.node:
            self.system.elector[self.node].standing = WON


class Election(ClosedSystem):
    """ChangRoberts: of those that want to, the one of the lowest name is elected."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"node": "nodes", "name": "nodes"}
    CONSTANTS: ClassVar[dict[str, int]] = {"nodes": 3, "all_names": 7}
    STEPS = (Step("elector", "begin", is_fair=False), Step("name", "arrive", is_fair=False))
    FAIRNESS = (weakly_fair("elector.begin", "name.arrive", each="node"),)

    nodes: int
    elector: list[Elector] = machines(Elector)
    name: dict[tuple[int, int], Name] = machines(Name)

    @initially("who wants to be elected is a candidate")
    def is_first(self) -> bool:
        return all(
            self.elector[i].begins == (self.elector[i].standing == CANDIDATE)
            for i in range(self.nodes)
        )

    @always("who has won has the lowest name, and all others have lost")
    def is_right(self) -> bool:
        return all(
            self.elector[i].standing != WON
            or (
                self.elector[i].begins
                and (
                    i == j
                    or (self.elector[j].standing == LOST and (not self.elector[j].begins or j > i))
                )
            )
            for i in range(self.nodes)
            for j in range(self.nodes)
        )

    @leads_to("a candidate is elected", then="is_elected")
    def is_open(self) -> bool:
        return any(self.elector[i].standing == CANDIDATE for i in range(self.nodes))

    def is_elected(self) -> bool:
        return any(self.elector[i].standing == WON for i in range(self.nodes))


class Tree(Environment):
    """The knowledge of each of five nodes of its distance from the root, and of the way there."""

    STATES, INITIAL = (THERE,), THERE

    distance: list[int] = Array(Int("far"), "nodes", start=[0, 6, 6, 6, 6])
    mother: list[int] = Array(Int("last"), "nodes", start=[0, 1, 2, 3, 4])


class Way(Environment):
    """A node that takes a neighbour for its mother, and a distance."""

    INDEX = ("node", "other", "length")
    STATES, INITIAL = (THERE,), THERE

    system: Spanning
    node: int
    other: int
    length: int

    take: Trigger

    ROWS = (Row("take", THERE, STAY, "is_edge and is_nearer", "note", "it is nearer this way"),)

    def is_edge(self) -> bool:
        return self.node != self.other and -2 <= self.node - self.other <= 2

    def is_nearer(self) -> bool:
        return (
            self.system.tree.distance[self.other] < self.length
            and self.length < self.system.tree.distance[self.node]
        )

    def note(self) -> None:
        self.system.tree.distance[self.node] = self.length
        self.system.tree.mother[self.node] = self.other


class Spanning(ClosedSystem):
    """SpanTree: five nodes in a strip, each of which has an edge to the next two."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"node": "nodes", "other": "nodes", "length": "far"}
    CONSTANTS: ClassVar[dict[str, int]] = {"nodes": 5, "far": 6}
    DERIVED: ClassVar[dict[str, str]] = {"last": "nodes - 1"}
    STEPS = (Step("way", "take", is_fair=False),)
    FAIRNESS = (weakly_fair(ANY),)

    nodes: int
    tree: Tree = machines(Tree)
    way: dict[tuple[int, int, int], Way] = machines(Way)

    @terminal("it ends where the tree is found")
    def is_end(self) -> bool:
        return self.is_found()

    @eventually("the tree is found")
    def is_found(self) -> bool:
        return (
            self.tree.distance[0] == 0
            and self.tree.distance[1] == 1
            and self.tree.distance[2] == 1
            and self.tree.distance[3] == 2
            and self.tree.distance[4] == 2
            and all(
                self.tree.distance[i] == self.tree.distance[self.tree.mother[i]] + 1
                for i in range(1, self.nodes)
            )
        )


class Inmate(Environment):
    """A prisoner beside the counter: moves the first switch up, twice at most."""

    INDEX = ("inmate",)
    STATES, INITIAL = (THERE,), THERE

    system: Prison

    moved: int = Int(2)

    visit: Trigger

    ROWS = (Row("visit", THERE, STAY, None, "move", "a prisoner is in the room"),)

    def move(self) -> None:
        if not self.system.switches.is_up and self.moved < 2:
            self.system.switches.is_up = True
            self.moved += 1
        else:
            self.system.switches.is_other_up = not self.system.switches.is_other_up


class Switches(Environment):
    """Two switches, and the counter, who moves the first one down and counts."""

    STATES, INITIAL = (THERE,), THERE

    is_up: bool = Bool(start=ANY)
    is_other_up: bool = Bool(start=ANY)
    count: int = Int("most")

    visit: Trigger

    ROWS = (Row("visit", THERE, STAY, None, "look", "the counter is in the room"),)

    def look(self) -> None:
        if self.is_up:
            self.is_up = False
            self.count += 1
        else:
            self.is_other_up = not self.is_other_up


class Prison(ClosedSystem):
    """Prisoners: four of them, and two switches."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"inmate": "inmates"}
    CONSTANTS: ClassVar[dict[str, int]] = {"inmates": 3}
    DERIVED: ClassVar[dict[str, str]] = {"most": "2 * inmates + 1"}
    STEPS = (Step("switches", "visit"), Step("inmate", "visit"))

    inmates: int
    switches: Switches = machines(Switches)
    inmate: list[Inmate] = machines(Inmate)

    @always("once the counter knows, each was in the room")
    def is_right(self) -> bool:
        return self.switches.count != 2 * self.inmates or all(
            self.inmate[i].moved > 0 for i in range(self.inmates)
        )

    @eventually("the counter knows")
    def is_known(self) -> bool:
        return self.switches.count == 2 * self.inmates
