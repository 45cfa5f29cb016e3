"""Machines reach each other by triggers and effects alone; what they must not do is refused, with
what to write instead.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from epochgate.fsm import DeclarationError
from epochgate.fsm.closed import ClosedSystem

MODULE = """
from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Array, Channel, Fifo, Int, Machine, Port, Row, machines, output
from epochgate.fsm.closed import ClosedSystem, Environment, Step

ON = "on"


class Wire(Port):
    def word(self, number: int) -> None: ...


class Driver(Machine):
    INDEX = ("one",)
    STATES = (ON,)
    INITIAL = ON
    {driver_attribute}
    system: Office
    one: int
    count: int = Int("limit")
    words: list[Fifo[int]] = Array(Channel("limit", "limit"), "ones")
    wire: Wire = output(Wire)
    ROWS = (Row("tick", ON, STAY, None, "act", "time passes"),)

    def act(self) -> None:
{driver}

    def is_idle(self) -> bool:
        return self.count == 0

    def change(self) -> None:
        self.count = 1

    def start(self) -> None:
        self.tick()

    def tell(self) -> None:
        self.wire.word(1)

    def change_by_another(self) -> None:
        self.change()


class Clerk(Machine):
    STATES = (ON,)
    INITIAL = ON
    system: Office
    count: int = Int("limit")
    desk: Wire = output(Wire)
    ROWS = (Row("ask", ON, STAY, None, "act", "a client asks"),)

    def act(self) -> None:
        self.count = 1
        self.desk.word(1)


class World(Environment):
    INDEX = ("one",)
    STATES = (ON,)
    INITIAL = ON
    {world_attribute}
    system: Office
    one: int
    seen: int = Int("limit")
    ROWS = (Row("turn", ON, STAY, None, "spin", "a day passes"),)

    def spin(self) -> None:
{world}

    def word(self, number: int) -> None:
{handler}


class Sky(Environment):
    STATES = (ON,)
    INITIAL = ON
    system: Office
    clouds: int = Int("limit")
    ROWS = (Row("rain", ON, STAY, None, "fall", "it is wet"),)

    def fall(self) -> None:
        self.clouds = 0

    def gather(self) -> None:
        self.clouds = 1

    def word(self, number: int) -> None:
        self.clouds = number


class Office(ClosedSystem):
    INDEX_SETS: ClassVar[dict[str, str]] = {{"one": "ones"}}
    CONSTANTS: ClassVar[dict[str, int]] = {{"ones": 2, "limit": 3}}
    WIRING: ClassVar[dict[str, str]] = {{"driver.wire": "world", "clerk.desk": "sky"}}
    STEPS = (Step("driver", "tick"),)
    driver: list[Driver] = machines(Driver)
    clerk: Clerk = machines(Clerk)
    world: list[World] = machines(World)
    sky: Sky = machines(Sky)
"""

Declare = Callable[..., None]


@pytest.fixture
def declare(tmp_path: Path) -> Declare:
    """Declare the office with these bodies."""

    def run(attribute: str = "", **bodies: str) -> None:
        path = tmp_path / "office.py"
        made = {
            name: textwrap.indent(bodies.get(name, "pass"), " " * 8)
            for name in ("driver", "world", "handler")
        }
        given = {
            f"{name}_attribute": attribute if name in bodies else "" for name in ("driver", "world")
        }
        text = MODULE.format(**made, **given)
        path.write_text(text, encoding="utf-8")
        exec(compile(text, str(path), "exec"), {"__name__": "office"})  # noqa: S102  # our own text

    return run


@pytest.mark.parametrize(
    "action",
    [
        "self.count = self.system.clerk.count",
        "self.words[self.one].push(1)",
        "self.change_by_another()",
        "self.wire.word(self.count)",
        "self.system.clerk.ask()",
        "self.system.driver[self.count].tick()",
        "self.system.driver[1].start()",
        "if self.system.driver[1].is_idle() and self.system.sky.clouds == 0:\n    self.count = 0",
    ],
)
def test_a_machine_of_the_protocol_changes_itself_fires_triggers_and_reads(
    declare: Declare, action: str
) -> None:
    declare(driver=action)


@pytest.mark.parametrize(
    "action",
    [
        "self.seen = self.system.driver[0].count",
        "self.system.clerk.ask()",
        "self.system.sky.clouds += 1",
        "self.system.world[1].seen = 0",
        "self.system.sky.rain()",
        "self.system.sky.gather()",
    ],
)
@pytest.mark.parametrize("body", ["world", "handler"])
def test_a_machine_of_the_environment_writes_the_environment(
    declare: Declare, body: str, action: str
) -> None:
    declare(**{body: action})


OTHERS = [
    ("self.system.clerk.count = 1", "`self.system.clerk.count` belongs to Clerk, and {} must not"),
    ("self.system.clerk.count += 1", "fire a trigger of Clerk whose action does"),
    ("self.system.driver[1].count = 0", "`self.system.driver[1].count` belongs to Driver"),
    ("self.system.driver[0].words[1].push(1)", "belongs to Driver, and {} must not write it"),
    ("for word in self.system.driver[0].words[1].take_all():\n    pass", "belongs to Driver"),
    ("self.system.driver[1].change()", "`self.system.driver[1].change` changes Driver, and {}"),
    ("self.system.driver[1].change_by_another()", "changes Driver, and {} must not do that"),
    ("self.system.driver[1].tell()", "`self.system.driver[1].tell` changes Driver"),
    ("self.system.clerk.desk.word(1)", "`self.system.clerk.desk.word` leaves through a port of Cl"),
]


@pytest.mark.parametrize(("action", "message"), OTHERS)
@pytest.mark.parametrize(("body", "name"), [("driver", "Driver"), ("world", "World")])
def test_the_machines_of_the_protocol_are_written_by_themselves_alone(
    declare: Declare, body: str, name: str, action: str, message: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare(**{body: action})
    assert message.format(name) in str(refused.value)
    assert "office.py:" in str(refused.value)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("self.system.sky.clouds = 1", "belongs to Sky, and Driver must not write it"),
        ("self.system.sky.gather()", "changes Sky, and Driver must not do that"),
        (
            "self.system.sky.rain()",
            "Sky belongs to the environment, whose triggers Driver must not fire; send a message "
            "through a port of Driver, and let Sky handle it",
        ),
    ],
)
def test_a_machine_of_the_protocol_reaches_the_environment_by_effects_alone(
    declare: Declare, action: str, message: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare(driver=action)
    assert message in str(refused.value)


def test_a_handler_of_effects_is_held_to_it_as_well(declare: Declare) -> None:
    with pytest.raises(
        DeclarationError, match=r"World\.word: `self\.system\.clerk\.count` belongs"
    ):
        declare(handler="self.system.clerk.count = number")


def test_a_method_that_fires_a_trigger_of_the_protocol_is_called_by_the_protocol_alone(
    declare: Declare,
) -> None:
    with pytest.raises(DeclarationError, match=r"`self.system.driver\[1\].start` changes Driver"):
        declare(world="self.system.driver[1].start()")


def test_a_system_that_says_so_is_exempt(declare: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClosedSystem, "IS_SEPARATED", False)
    declare(driver="self.system.clerk.count = 1")


@pytest.mark.parametrize("body", ["driver", "world"])
def test_a_machine_that_says_so_may_write_others(declare: Declare, body: str) -> None:
    declare("WRITES_OTHERS = True", **{body: "self.system.clerk.count = 1"})
