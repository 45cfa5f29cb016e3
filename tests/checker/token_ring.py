"""EWD426 of the TLA+ examples: tokens in a ring, of which one is left whatever it begins with."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Int, Machine, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Step, eventually_always, weakly_fair


class Node(Machine):
    """Compares its number with that of the node before it."""

    INDEX, STATES, INITIAL, TERMINAL = ("at",), ("there",), "there", ("there",)

    system: TokenRing
    at: int

    number: int = Int("top", ANY)

    create: Trigger
    take: Trigger

    ROWS = (
        Row("create", "there", STAY, "has_token_first", "count", "the first one counts on"),
        Row("take", "there", STAY, "has_token_behind", "copy", "any other one copies"),
    )

    def has_token_first(self) -> bool:
        return self.at == 0 and self.number == self.system.node[self.system.last].number

    def has_token_behind(self) -> bool:
        return self.at > 0 and self.number != self.system.node[self.at - 1].number

    def count(self) -> None:
        self.number = (self.number + 1) % self.system.numbers

    def copy(self) -> None:
        self.number = self.system.node[self.at - 1].number


class TokenRing(ClosedSystem):
    """Begins with any numbers; `numbers` of them, for one node more at most."""

    INDEX_SETS: ClassVar[dict[str, str]] = {"at": "nodes"}
    CONSTANTS: ClassVar[dict[str, int]] = {"nodes": 6, "numbers": 6}
    DERIVED: ClassVar[dict[str, str]] = {
        "top": "numbers - 1",
        "last": "nodes - 1",
        "places": "nodes + 1",
    }
    STEPS = (Step("node", "create", is_fair=False), Step("node", "take", is_fair=False))
    FAIRNESS = (weakly_fair(ANY),)

    nodes: int
    numbers: int
    top: int
    last: int
    places: int

    node: list[Node] = machines(Node)

    @eventually_always("there is one token")
    def has_one_token(self) -> bool:
        return any(self.is_token_at(place) for place in range(self.places))

    def is_token_at(self, place: int) -> bool:
        return all(
            self.node[i].number
            == (
                self.node[0].number
                if i < place
                else (self.node[0].number + self.top) % self.numbers
            )
            for i in range(self.nodes)
        )
