"""A crossing whose fields hold numbers that are constants of this module."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import ANY, STAY, Array, Channel, Fifo, Int, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always

RED, AMBER, GREEN = range(3)
ASK, GIVE_WAY = 4, 5


class Signals(Environment):
    """Two lights, and what drivers ask of them."""

    STATES, INITIAL = ("on",), "on"

    system: Crossing

    colour: list[int] = Array(Int(3, names="RED, AMBER, GREEN"), "lights")
    last: int = Int(GREEN, start=ANY, names="RED, GREEN")
    asked: Fifo[int] = Channel("codes", 2, names="ASK, GIVE_WAY")

    ask: Trigger
    turn: Trigger

    ROWS = (
        Row("ask", "on", STAY, "has_room", "note", "a driver asks"),
        Row("turn", "on", STAY, "is_asked", "change", "the lights turn"),
    )

    def has_room(self) -> bool:
        return self.asked.empty()

    def is_asked(self) -> bool:
        return not self.asked.empty()

    def note(self) -> None:
        self.asked.push(ASK)

    def change(self) -> None:
        self.asked.clear()
        if self.colour[0] == AMBER:
            self.colour[1] = 3
            self.last = GREEN
        self.colour[0] = AMBER


class Crossing(ClosedSystem):
    """Breaks its claim in four steps."""

    CONSTANTS: ClassVar[dict[str, int]] = {"lights": 2, "codes": 6}
    STEPS = (Step("signals", "ask"), Step("signals", "turn"))

    lights: int
    codes: int

    signals: Signals = machines(Signals)

    @always("the second light has a colour")
    def is_known(self) -> bool:
        return self.signals.colour[1] <= GREEN
