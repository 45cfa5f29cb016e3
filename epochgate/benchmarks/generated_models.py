"""Models of many rows, or of few, as machines and as Promela.

Both texts of a model are written from the same numbers, and have the same states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

HEAD: Final = """\
from epochgate.fsm import Int, Machine, Row, Trigger, machines
from epochgate.fsm.closed import ClosedSystem, Step
"""
STATES, LEAPS = 822, (1, 2, 3)
GUARDED, PLACES, LEVELS = 50, 8, 3


def table() -> tuple[str, str]:
    """One machine of `STATES` states, each with a row for each of `LEAPS`."""
    ours = f"""
class Dial(Machine):
    STATES, INITIAL = tuple(f"s{{n}}" for n in range({STATES})), "s0"
    {"; ".join(f"leap_{by}: Trigger" for by in LEAPS)}
    ROWS = tuple(
        Row(f"leap_{{by}}", f"s{{n}}", f"s{{(n * by + 1) % {STATES}}}", None, None, "it leaps")
        for by in {LEAPS} for n in range({STATES})
    )

class Model(ClosedSystem):
    STEPS = ({", ".join(f'Step("dial", "leap_{by}")' for by in LEAPS)})
    dial: Dial = machines(Dial)
"""
    leaps = "\n".join(
        f":: d_step {{ s == {n} -> s = {(n * by + 1) % STATES} }}"
        for by in LEAPS
        for n in range(STATES)
    )
    return ours, f"short s = 0;\nactive proctype dial() {{ do\n{leaps}\nod }}\n"


def small() -> tuple[str, str]:
    """Three doors, each of which opens where the others were seen shut."""
    ours = """
class Door(Machine):
    INDEX, STATES, INITIAL = ("door",), ("shut", "looking", "open"), "shut"
    look: Trigger; enter: Trigger; leave: Trigger
    ROWS = (
        Row("look",  "shut",    "looking", "is_free", None, "the other doors were seen shut"),
        Row("enter", "looking", "open",    None,      None, "trusting what was seen"),
        Row("leave", "open",    "shut",    None,      None, "done"),
    )
    def is_free(self) -> bool:
        return all(self.system.door[i].state != "open" for i in range(self.system.doors))

class Model(ClosedSystem):
    INDEX_SETS, CONSTANTS = {"door": "doors"}, {"doors": 3}
    STEPS = (Step("door", "look"), Step("door", "enter"), Step("door", "leave"))
    door: list[Door] = machines(Door)
"""
    free = " && ".join(f"d[{n}] != 2" for n in range(3))
    moves = "\n".join(
        f":: d_step {{ d[{n}] == {state} && {free if state == 0 else 'true'}"
        f" -> d[{n}] = {(state + 1) % 3} }}"
        for n in range(3)
        for state in range(3)
    )
    return ours, f"byte d[3];\nactive proctype doors() {{ do\n{moves}\nod }}\n"


def guarded() -> tuple[str, str]:
    """`GUARDED` triggers with guards over all of `PLACES` instances: one of them is away from 0."""
    methods = "\n".join(
        f"""
    def others_rest_{n}(self) -> bool:
        return self.level == {n % (LEVELS + 1)} and all(
            self.system.place[i].level == 0 or i == self.place
            for i in range(self.system.places)
        )
    def go_{n}(self) -> None:
        self.level = {(n + 1) % (LEVELS + 1)}"""
        for n in range(GUARDED)
    )
    rows = ", ".join(
        f'Row("move_{n}", "{here}", "{there}", "others_rest_{n}", "go_{n}", "it moves")'
        for n in range(GUARDED)
        for here, there in (("even", "odd"), ("odd", "even"))
    )
    ours = f"""
class Place(Machine):
    INDEX, STATES, INITIAL = ("place",), ("even", "odd"), "even"
    level: int = Int({LEVELS})
    {"; ".join(f"move_{n}: Trigger" for n in range(GUARDED))}
    ROWS = (
        {rows}
    )
{methods}

class Model(ClosedSystem):
    INDEX_SETS, CONSTANTS = {{"place": "places"}}, {{"places": {PLACES}}}
    STEPS = ({", ".join(f'Step("place", "move_{n}")' for n in range(GUARDED))})
    place: list[Place] = machines(Place)
"""
    moves = "\n".join(
        f":: d_step {{ level[{i}] == {n % (LEVELS + 1)} && "
        f"{' && '.join(f'level[{j}] == 0' for j in range(PLACES) if j != i)}"
        f" -> level[{i}] = {(n + 1) % (LEVELS + 1)}; odd[{i}] = 1 - odd[{i}] }}"
        for i in range(PLACES)
        for n in range(GUARDED)
    )
    text = f"byte level[{PLACES}], odd[{PLACES}];\nactive proctype places() {{ do\n{moves}\nod }}\n"
    return ours, text


MODELS: Final[dict[str, Callable[[], tuple[str, str]]]] = {
    "three doors, 3 rows": small,
    f"one machine, {STATES * len(LEAPS):,} rows": table,
    f"{PLACES} instances, {2 * GUARDED} rows with guards over all": guarded,
}
