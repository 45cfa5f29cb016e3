"""Small systems made at random: two machines and a channel between them, with a few claims."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

from epochgate.fsm.closed import ClosedSystem

HEAD = """
from __future__ import annotations
from typing import ClassVar
from epochgate.fsm import STAY, Bool, Channel, Fifo, Ignore, Int, Port, Row, Trigger, machines
from epochgate.fsm import output
from epochgate.fsm import Machine
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always

class ToOther(Port):
    def tell(self, value: int) -> None: ...
"""
GUARDS = {
    "is_low": "self.x < {k}",
    "is_even": "self.x % 2 == 0",
    "is_set": "self.flag",
    "is_down": "self.y // 2 < 0",
}
ACTIONS = {
    "climb": "self.x += {k}",
    "reset": "self.x = 0",
    "flip": "self.flag = not self.flag",
    "sink": "self.y = self.y - 1",
    "rise": "self.y = {k} - self.x",
    "send": "self.other.tell(self.x)",
    "send_both": "self.other.tell({k})\n        self.other.tell(self.x)",
    "twice": "self.again()",
    "guard": "assert self.x != {k} or self.flag, 'a number without its flag'",
}
CLAIMS = (
    "self.one.x <= {k}",
    "self.one.x != {k} or self.one.flag",
    "self.one.state == 'left' or self.one.y >= 0",
    "self.wire.items.size() < 2 or self.one.flag",
    "self.wire.items.empty() or self.wire.items.head() <= {k}",
    "self.one.x + self.wire.items.size() <= {k}",
    "self.one.y * self.one.x <= {k} or not self.one.flag",
    "self.one.x % 2 == self.one.y % 2",
)


def random_system(seed: int, folder: Path) -> type[ClosedSystem]:
    """Write a module with a random system, and import the system."""
    draw, name = random.Random(seed), f"random_system_{seed}"
    path = folder / f"{name}.py"
    path.write_text(_text(draw), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found: type[ClosedSystem] = module.RandomSystem
    return found


def _text(draw: random.Random) -> str:
    def filled(text: str) -> str:
        return text.format(k=draw.randint(0, 4))

    def actions() -> str:
        return repr(", ".join(draw.sample([*ACTIONS], draw.randint(1, 2))))

    rows = []
    for trigger in ("go", "work", "again"):
        for state in ("left", "right"):
            guard, dest = draw.choice([*GUARDS]), draw.choice(("'left'", "'right'", "STAY"))
            after = actions().replace("twice", "flip") if trigger == "again" else actions()
            rows.append(f"Row({trigger!r}, {state!r}, {dest}, {guard!r}, {after}, 'at random')")
            if trigger == "again" or draw.random() < 0.5:
                rows.append(f"Ignore({trigger!r}, {state!r}, 'not {guard}', 'at random')")
    for state, other in (("left", "right"), ("right", "left")):
        rows.append(f"Row('turn', {state!r}, {other!r}, None, {actions()}, 'at random')")
    methods = [f"    def {n}(self) -> bool:\n        return {filled(t)}" for n, t in GUARDS.items()]
    methods += [f"    def {n}(self) -> None:\n        {filled(t)}" for n, t in ACTIONS.items()]
    claims = [
        f"    @always('claim {n}')\n    def claim_{n}(self) -> bool:\n        return {filled(text)}"
        for n, text in enumerate(CLAIMS)
    ]
    return "\n".join(
        (
            HEAD,
            "class One(Machine):",
            "    STATES, INITIAL = ('left', 'right'), 'left'",
            "    x: int = Int('most')",
            "    y: int = Int('most', low=-2)",
            "    flag: bool = Bool()",
            "    other: ToOther = output(ToOther)",
            *(f"    {trigger}: Trigger" for trigger in ("go", "work", "again", "turn")),
            f"    ROWS: ClassVar = ({', '.join(rows)},)",
            *methods,
            "class Wire(Environment):",
            "    STATES, INITIAL = ('up',), 'up'",
            "    items: Fifo[int] = Channel('most', 'room')",
            "    bring: Trigger",
            "    ROWS: ClassVar = (Row('bring', 'up', STAY, 'has_item', 'take', 'it arrives'),)",
            "    def has_item(self) -> bool:",
            "        return not self.items.empty()",
            "    def take(self) -> None:",
            "        if self.items.pop() > 1:",
            "            self.system.one.again()",
            "    def tell(self, value: int) -> None:",
            "        self.items.push(value)",
            "class RandomSystem(ClosedSystem):",
            "    CONSTANTS: ClassVar = {'most': 4, 'room': 2}",
            "    WIRING: ClassVar = {'one.other': 'wire'}",
            "    STEPS: ClassVar = (Step('one', 'go'), Step('one', 'work'), Step('one', 'turn'),",
            "        Step('wire', 'bring'))",
            "    one: One = machines(One)",
            "    wire: Wire = machines(Wire)",
            *claims,
        )
    )
