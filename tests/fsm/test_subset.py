"""Guards and actions stay within what can be compiled, or the class is refused with the way to
write it.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from epochgate.fsm import DeclarationError
from epochgate.fsm.subset import Interaction, check_system
from epochgate.models import (
    MACHINES,
    RUNNING,
    Attempt,
    Checkpoint,
    Gateway,
    Job,
    JobLifecycle,
)

MODULE = """
from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import (
    STAY, Array, Bool, Channel, Fifo, Int, Machine, Opaque, Port, Row, System, Trigger, machines,
    output,
)

OPEN, SHUT = "open", "shut"
LANE = 0
TABLE = [1, 2]


class BellPort(Port):
    def ring(self, times: int, loudly: bool) -> None: ...
    def deliver(self, parcel: Opaque) -> None: ...


class Door(Machine):
    INDEX = ("wall",)
    STATES = (OPEN, SHUT)
    INITIAL = OPEN

    system: House
    wall: int
    bell: BellPort = output(BellPort)

    count: int = Int("people")
    is_free: bool = Bool()
    seats: list[int] = Array(Int("people"), "walls")
    parcels: Fifo[Opaque] = Channel("parcel", "parcels")
    numbers: Fifo[int] = Channel("people", "parcels")
    piles: list[Fifo[Opaque]] = Array(Channel("parcel", "parcels"), "walls")

    push: Trigger
    pull: Trigger

    ROWS = (
        Row("push", OPEN, SHUT, "may_push", "act", "a visitor leans on it"),
        Row("push", OPEN, STAY, "not may_push", None, "it is held"),
        Row("pull", SHUT, OPEN, None, None, "a visitor comes"),
    )

    def may_push(self, number: int) -> bool:
        return {guard}

    def act(self, number: int, parcel: Opaque) -> None:
{action}

    def helper(self, number: int) -> int:
        return number + 1

    def change(self) -> None:
        self.count += 1

    def again(self) -> None:
        self.again()

    def unannotated(self, number):
        return number

    def with_default(self, number: int = 1) -> int:
        return number

    @staticmethod
    def decorated(number: int) -> int:
        return number


class Lamp(Machine):
    STATES = (OPEN,)
    INITIAL = OPEN
    system: House
    level: int = Int("levels")
    turn: Trigger
    ROWS = (Row("turn", OPEN, STAY, None, "set", "it is dark"),)

    def set(self, level: int, is_slow: bool) -> None:
        self.level = level

    def is_on(self) -> bool:
        return self.level > 0

    def switch(self) -> bool:
        self.level = 1
        return True


class House(System):
    INDEX_SETS: ClassVar[dict[str, str]] = {{"wall": "walls"}}
    CONSTANTS: ClassVar[dict[str, int]] = {{"walls": 2}}

    walls: int
    door: list[Door] = machines(Door)
    lamp: Lamp = machines(Lamp)
"""

Declare = Callable[..., str]


@pytest.fixture
def declare(tmp_path: Path) -> Declare:
    """Run the module with a guard's expression and an action's body; returns where the action
    begins.
    """

    def run(action: str = "pass", guard: str = "True") -> str:
        path = tmp_path / "house.py"
        text = MODULE.format(guard=guard, action=textwrap.indent(textwrap.dedent(action), " " * 8))
        path.write_text(text, encoding="utf-8")
        line = text[: text.index("    def act")].count("\n") + 2
        namespace = {"__name__": "house"}
        exec(compile(text, str(path), "exec"), namespace)  # noqa: S102  # our own text
        return f"{path}:{line}"

    return run


ACCEPTED = [
    "x = number + 1 - 2 * 3 // 4 % 5 & 6 | 7 ^ 8 << 1 >> 1\nself.count = x",
    "self.count += -number",
    "self.count = number if self.is_free else 0",
    (
        "if 0 <= number < self.count and not self.is_free or self.state == SHUT:\n"
        "    self.count = 0\nelif number != 1:\n    self.is_free = True\nelse:\n    return"
    ),
    "for w in range(self.system.walls):\n    self.seats[w] = w",
    "for w in range(LANE, self.system.walls - 1 + 2 * 3):\n    self.count += w",
    "self.is_free = any(self.seats[w] > 0 for w in range(self.system.walls) if w != number)",
    "self.is_free = all(self.system.door[w].is_free for w in range(self.system.walls))",
    "for item in self.parcels.take_all():\n    self.bell.deliver(item)",
    "self.parcels.push(parcel)\nself.bell.deliver(self.parcels.head())\nself.bell.deliver(self.parcels.pop())",
    "self.piles[0].drain(self.parcels)\nself.piles[LANE].clear()",
    "self.numbers.push(number)\nself.count = self.numbers.pop() + self.numbers.size()",
    "assert self.count > 0\nassert self.parcels.empty(), 'nothing is left'",
    "self.bell.ring(self.helper(number), True)",
    "self.pull()",
    "self.system.lamp.turn(number, self.is_free)",
    "self.seats[self.wall] += self.system.lamp.level\nself.seats[number] = 2",
    "self.system.door[number].push(number, parcel)",
    "if self.system.lamp.is_on() and self.system.lamp.state == 'open':\n    pass",
    "kept = parcel\nself.bell.deliver(kept if self.is_free else self.parcels.pop())",
    "'''A text that explains.'''\nself.change()",
]


@pytest.mark.parametrize("action", ACCEPTED)
def test_the_subset_is_accepted(declare: Declare, action: str) -> None:
    declare(action)


REFUSED = [
    ("while number > 0:\n    pass", 0, "`while` is outside the checked subset; loop over `range"),
    ("try:\n    pass\nfinally:\n    pass", 0, "`try` is outside"),
    ("with open('x'):\n    pass", 0, "`with` is outside"),
    ("import os", 0, "`import` is outside the checked subset; do this outside the machine"),
    ("from os import path", 0, "`import` is outside"),
    ("raise ValueError", 0, "`raise` is outside"),
    ("del self.count", 0, "`del` is outside"),
    ("global LANE", 0, "`global` is outside"),
    ("def inner() -> None: ...", 0, "a function inside a method is outside"),
    ("class Inner: ...", 0, "a class inside a method is outside"),
    ("match number:\n    case 1:\n        pass", 0, "write `if` and `elif`"),
    ("for w in range(2):\n    break", 1, "`break` is outside"),
    ("for w in range(2):\n    continue", 1, "`continue` is outside"),
    ("for w in range(2):\n    pass\nelse:\n    pass", 0, "no `else`"),
    ("for a, b in range(2):\n    pass", 0, "one plain name"),
    ("for w in range(2):\n    w = 1", 1, "'w' is the variable of a loop; use another name"),
    ("w = 1\nfor w in range(2):\n    pass", 1, "'w' is a local already; use another name"),
    ("for number in range(2):\n    pass", 0, "'number' is a local already"),
    ("for w in range(number):\n    pass", 0, "`number` is no constant"),
    ("for w in range(self.count):\n    pass", 0, "`self.count` is no constant"),
    (
        "for w in range(self.system.lamp.level):\n    pass",
        0,
        "`self.system.lamp.level` is no constant",
    ),
    ("for w in range(0, 4, 2):\n    pass", 0, "a loop over `range(0, 4, 2)` is outside"),
    ("for w in self.seats:\n    pass", 0, "a loop over `self.seats` is outside"),
    ("for w in self.seats.take_all():\n    pass", 0, "`take_all()` is a method of channels"),
    ("x = lambda: 1", 0, "`lambda` is outside the checked subset; make it a method"),
    ("x = [w for w in range(2)]", 0, "a list comprehension is outside"),
    ("x = {w for w in range(2)}", 0, "a set comprehension is outside"),
    ("x = {w: w for w in range(2)}", 0, "a dict comprehension is outside"),
    ("x = (w for w in range(2))", 0, "a generator is outside"),
    ("x = [1]", 0, "a list is outside"),
    ("x = (1, 2)", 0, "a tuple is outside"),
    ("x = {}", 0, "a dict is outside"),
    ("x, y = 1, 2", 0, "a tuple is outside"),
    ("x = y = 1", 0, "one target"),
    ("x: int", 0, "begins with a value"),
    ("x = f'{number}'", 0, "an f-string is outside"),
    ("x = 1.5", 0, "the constant 1.5 is outside"),
    ("x = b''", 0, "the constant b'' is outside"),
    ("x = None", 0, "`None` is outside the checked subset; use a number"),
    ("x = number / 2", 0, "`/` is outside the checked subset; write `//`"),
    ("x = number ** 2", 0, "`**` is outside"),
    ("self.count /= 2", 0, "`/` is outside"),
    ("x = ~number", 0, "`~` is outside"),
    ("x = +number", 0, "a sign `+` is outside"),
    ("x = number is LANE", 0, "`is` is outside the checked subset; write `==`"),
    ("x = number in self.seats", 0, "is no channel, set or tuple of numbers to look into"),
    ("x = (y := 1)", 0, "`:=` is outside"),
    ("x = self.seats[0:1]", 0, "a slice is outside"),
    ("x = 'a' + 'b'", 0, "cannot be computed with"),
    ("x = len(self.seats)", 0, "an array has as many items as the constant"),
    ("x = max(number)", 0, "`max` takes two numbers or more"),
    ("x = sum(number, 1)", 0, "add in a loop over `range(...)`"),
    ("print(number)", 0, "a call of `print` is outside"),
    ("x = super().helper(1)", 0, "`super`"),
    ("self.helper(number=1)", 0, "arguments are given by position"),
    ("self.helper(*TABLE)", 0, "arguments are given by position"),
    ("any([True])", 0, "take one `... for x in range(...)`"),
    ("x = any(w for w in range(2))", 0, "`w` is an int where a bool is needed"),
    ("x = TABLE", 0, "the name 'TABLE' is neither a local nor a constant"),
    ("x = self", 0, "the name 'self' is neither"),
    ("x = unknown", 0, "a constant of the system (`self.system.unknown`)"),
    ("x += 1", 0, "the local 'x' has no value yet"),
    ("x = 1\nx = True", 1, "the local 'x' is an int, but here it gets a bool"),
    ("number", 0, "this expression does nothing"),
    ("return number", 0, "what is returned is nothing, but here it gets an int"),
    ("if number:\n    pass", 0, "`number` is an int where a bool is needed; write a comparison"),
    ("x = number and 1", 0, "where a bool is needed"),
    ("x = not number", 0, "where a bool is needed"),
    ("assert number", 0, "where a bool is needed"),
    ("assert True, f'{number}'", 0, "one plain string"),
    (
        "x = parcel + 1",
        0,
        "`parcel` is an opaque value, and cannot be computed with; only hand it on",
    ),
    ("x = parcel == number", 0, "compares an int with an opaque value"),
    ("if parcel:\n    pass", 0, "only hand it on"),
    ("self.count = parcel", 0, "the field is an int, but here it gets an opaque value"),
    ("self.count = self.parcels.pop()", 0, "annotated `name: Fifo[int] = Channel(...)`"),
    ("self.helper(parcel)", 0, "an argument of 'helper' is an int"),
    ("self.count = self.is_free", 0, "the field is an int, but here it gets a bool"),
    ("x = number < self.state", 0, "compares"),
    ("x = self.change()", 0, "gives nothing to go on with"),
    ("x = self.pull()", 0, "gives nothing to go on with"),
    ("self.state = SHUT", 0, "a state changes by a row alone"),
    ("self.wall = 1", 0, "cannot be assigned to"),
    ("self.parcels = parcel", 0, "cannot be assigned to"),
    (
        "self.cuont += 1",
        0,
        "Door has no field, port, trigger or method 'cuont'; it has bell, count",
    ),
    ("self.values()", 0, "no field, port, trigger or method 'values'"),
    ("self.parcels.append(1)", 0, "a channel has no method 'append'; it has push, pop"),
    ("self.parcels.drain(number)", 0, "`drain` empties one channel into another"),
    ("self.bell.rnig(1, True)", 0, "BellPort has no message 'rnig'; it has deliver, ring"),
    ("self.bell.ring(1)", 0, "the message 'ring' takes 2 arguments, but here it gets 1"),
    ("self.bell.ring(True, True)", 0, "an argument of 'ring' is an int, but here it gets a bool"),
    ("self.push(number)", 0, "the trigger 'push' takes 2 arguments, but here it gets 1"),
    ("self.helper()", 0, "the method 'helper' takes 1 arguments, but here it gets 0"),
    ("x = self.seats", 0, "`self.seats` is no value"),
    ("x = self.helper", 0, "`self.helper` is no value; call it"),
    ("x = self.count[0]", 0, "`self.count` is no array of that shape"),
    ("x = self.count.real", 0, "`self.count` has no 'real'"),
    ("self.count()", 0, "`self.count` cannot be called"),
    (
        "x = self.system.wals",
        0,
        "House has no machine or constant 'wals'; it has door, lamp, walls",
    ),
    ("self.system.lamp.trun(1, True)", 0, "Lamp has no field, port, trigger or method 'trun'"),
    ("self.system.lamp.turn(1)", 0, "the trigger 'turn' takes 2 arguments, but here it gets 1"),
    ("self.system.lamp.turn(True, True)", 0, "an argument of 'turn' is an int"),
    ("self.system.door[0, 1].pull()", 0, "is over wall, but here it gets 2"),
    ("self.system.door.pull()", 0, "has no 'pull'; is a subscript missing?"),
    ("x = self.system.constants", 0, "a constant is an attribute by its own name"),
    ("self.system.lamp[0].turn(1, True)", 0, "no array of that shape"),
    ("self.system.lamp.level = True", 0, "the field is an int, but here it gets a bool"),
    ("self.system.walls = 3", 0, "cannot be assigned to"),
    ("x = self.system.door[0].bell.ring(1, True)", 0, "gives nothing"),
]


@pytest.mark.parametrize(("action", "offset", "message"), REFUSED)
def test_what_is_outside_the_subset_is_refused_with_file_and_line(
    declare: Declare, action: str, offset: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare(action)
    text = str(refused.value)
    line = MODULE[: MODULE.index("    def act")].count("\n") + 2 + offset
    assert text.startswith(f"{tmp_path / 'house.py'}:{line}: Door.act: ")
    assert message in text


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("self.unannotated(number)", "Door.unannotated: annotate the parameter 'number'"),
        ("self.with_default(number)", "Door.with_default: parameters must be plain"),
        ("self.decorated(number)", "the method 'decorated' takes"),
        ("self.again()", "Door.again: it calls itself"),
    ],
)
def test_a_method_that_is_called_is_held_to_the_same(
    declare: Declare, action: str, message: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare(action)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        ("1", "what is returned is a bool, but here it gets an int"),
        ("self.pull()", "gives nothing to go on with"),
        ("self.parcels.pop()", "gets an opaque value"),
        ("self.numbers.pop() > 1", "it calls `self.numbers.pop`, although the guard 'may_push'"),
        (
            "self.system.lamp.switch()",
            "Lamp.switch: it assigns to `self.level`, although the guard",
        ),
    ],
)
def test_a_guard_looks_and_changes_nothing(declare: Declare, guard: str, message: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare(guard=guard)
    assert message in str(refused.value)


def test_a_guard_may_call_methods_that_only_look(declare: Declare) -> None:
    declare(guard="self.helper(number) > 1 and self.system.lamp.is_on()")


def test_a_class_without_source_is_refused_unless_it_says_unchecked() -> None:
    text = MODULE.format(guard="True", action="        pass")
    with pytest.raises(DeclarationError, match=r"cannot be read.*`unchecked=True`"):
        exec(compile(text, "<prompt>", "exec"), {"__name__": "prompt"})  # noqa: S102  our own text
    text = text.replace("(Machine)", "(Machine, unchecked=True)")
    exec(compile(text, "<prompt>", "exec"), {"__name__": "prompt"})  # noqa: S102  our own text


def test_a_machine_in_an_archive_is_checked_as_well(tmp_path: Path) -> None:
    text = MODULE.format(guard="True", action="        x = 1.5")
    with zipfile.ZipFile(tmp_path / "shipped.zip", "w") as archive:
        archive.writestr("house_in_archive.py", text)
    program = "import sys; sys.path.insert(0, sys.argv[1]); import house_in_archive"
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "shipped.zip")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "house_in_archive.py:50: Door.act: the constant 1.5 is outside" in ran.stderr


def test_all_machines_of_the_protocol_are_checked() -> None:
    assert all(machine.IS_CHECKED for machine in MACHINES.values())
    for system in RUNNING:
        check_system(system)


def test_what_the_methods_fire_is_known() -> None:
    fired = set(check_system(Job).interactions())
    assert Interaction(Checkpoint, "count_subtask", Gateway, "reopen") in fired
    assert Interaction(Attempt, "report_failed", JobLifecycle, "attempt_failed") in fired
    assert Interaction(JobLifecycle, "settle_down", JobLifecycle, "reconsider") in fired
    assert Interaction(Gateway, "turn_away", None, "turned_away") in fired


def test_importing_the_machines_with_all_checks_stays_quick() -> None:
    program = (
        "import time; begin = time.process_time(); import epochgate.models;"
        "print(time.process_time() - begin)"
    )
    times_s = [
        float(
            subprocess.run(
                [sys.executable, "-c", program],
                cwd=Path(__file__).parents[2],
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            ).stdout
        )
        for _ in range(3)
    ]
    assert min(times_s) < 0.5
