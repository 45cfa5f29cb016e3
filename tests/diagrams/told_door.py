"""A closed system whose surroundings ring a bell in a handler of their own."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Int, Machine, Port, Row, Trigger, machines, output
from epochgate.fsm.closed import ClosedSystem, Environment, Step


class ToStreet(Port):
    """The sound in the street."""

    def rung(self, times: int) -> None: ...


class Bell(Machine):
    STATES, INITIAL = ("still",), "still"

    street: ToStreet = output(ToStreet)
    times: int = Int("most")
    system: ToldDoor

    ring: Trigger

    ROWS = (Row("ring", "still", STAY, "may_ring", "sound", "someone pulls it"),)

    def may_ring(self) -> bool:
        return self.times < self.system.most

    def sound(self) -> None:
        self.times += 1
        self.street.rung(self.times)


class Street(Environment):
    STATES, INITIAL = ("busy",), "busy"

    heard: int = Int("most")
    system: ToldDoor

    leave: Trigger

    ROWS = (Row("leave", "busy", STAY, "has_heard", "forget", "the street is empty again"),)

    def has_heard(self) -> bool:
        return self.heard > 0

    def forget(self) -> None:
        self.heard = 0

    def rung(self, times: int) -> None:
        self.heard = times
        if times == 1:
            self.system.bell.ring()


class ToldDoor(ClosedSystem):
    CONSTANTS: ClassVar[dict[str, int]] = {"most": 2}
    WIRING: ClassVar[dict[str, str]] = {"bell.street": "street"}
    STEPS = (Step("bell", "ring"), Step("street", "leave"))

    most: int

    bell: Bell = machines(Bell)
    street: Street = machines(Street)
