"""A declaration that cannot be meant is refused when its class is created, with a message that
helps.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

import pytest

from epochgate.fsm import (
    ANY,
    STAY,
    Array,
    Channel,
    DeclarationError,
    Ignore,
    Int,
    Machine,
    Port,
    Row,
    System,
    Trigger,
    machines,
    output,
)
from epochgate.fsm.closed import ClosedSystem, Environment, always, initially
from epochgate.fsm.faults import deferred, faults_of
from epochgate.fsm.system import INSTANCE_ATTRIBUTES
from tests.fsm.turnstile import Station, Turnstile, declared


class BellPort(Port):
    def ring(self) -> None: ...


def declare(*rows: Row, **attributes: Any) -> type[Machine]:
    """A machine of two states with a guard, two actions, a field and a port."""

    def is_free(self: Machine) -> bool:
        return True

    def is_paid(self: Machine, coin: int) -> bool:
        return True

    def count(self: Machine, coin: int) -> None: ...

    def greet(self: Machine, person: int) -> None: ...

    body = {
        "STATES": ("open", "shut"),
        "INITIAL": "open",
        "ROWS": (*rows, Row("leave", "shut", "open", None, None, "it goes on")),
        "is_free": is_free,
        "is_paid": is_paid,
        "count": count,
        "greet": greet,
        "held": Int("coins"),
        "bell": output(BellPort),
        **attributes,
    }
    return declared("Door", body)


class Place(Enum):
    OPEN = "open"
    SHUT = "shut"


PUSH = Row("push", "open", "shut", None, None, "a visitor leans on it")


def test_a_sound_declaration_is_accepted() -> None:
    door = declare(PUSH)
    assert door.triggers() == ("push", "leave")
    assert door.accepted("open") == ("push",)
    assert list(door.FIELDS) == ["held"]
    assert list(door.PORTS) == ["bell"]


@pytest.mark.parametrize(
    ("rows", "attributes", "message"),
    [
        ((PUSH,), {"STATES": ()}, "STATES must be distinct names"),
        ((PUSH,), {"STATES": ("open", "shut", "open")}, "STATES must be distinct names"),
        ((PUSH,), {"INITIAL": "ajar"}, "'ajar' is not among STATES"),
        ((PUSH,), {"TERMINAL": ("ajar",)}, "'ajar' is not among STATES"),
        ((PUSH,), {"TERMINAL": ("shut",)}, "'shut' is in TERMINAL, but a row leaves it"),
        ((Row("push", "ajar", "shut", None, None, "x"),), {}, "unknown source state 'ajar'"),
        ((Row("push", "open", "ajar", None, None, "x"),), {}, "unknown dest 'ajar'"),
        ((Row("push", (), "shut", None, None, "x"),), {}, "at least one source state"),
        ((Row("push", ("open", "open"), "shut", None, None, "x"),), {}, "each once"),
        ((Row("push", "open", "shut", None, None, "  "),), {}, "`because` is empty"),
        ((Row("push", "open", "shut", "is_fre", None, "x"),), {}, "no method is named 'is_fre'"),
        (
            (Row("push", "open", "shut", "is_free or is_paid", None, "x"),),
            {},
            "joined by 'and'",
        ),
        ((Row("push", "open", "shut", None, "cuont", "x"),), {}, "no method is named 'cuont'"),
        ((Row("push", "open", "shut", None, "", "x"),), {}, "no method is named ''"),
        ((Row("push", "open", "shut", None, "held", "x"),), {}, "no method is named 'held'"),
        (
            (Row("push", "open", "shut", "is_free and not is_free", None, "x"),),
            {},
            "['is_free'] is both demanded and excluded",
        ),
        ((PUSH, PUSH), {}, "two rows take 'push' in 'open' and could hold together"),
        (
            (
                Row("push", "open", "shut", "is_free", None, "x"),
                Row("push", ANY, STAY, "is_paid", None, "y"),
            ),
            {},
            "let them demand opposite values of one guard",
        ),
        ((Row("push", "open", STAY, None, None, "x"),), {}, "no row leads to ['shut']"),
        (
            (PUSH, Row("jam", "open", "stuck", None, None, "x")),
            {"STATES": ("open", "shut", "stuck")},
            "no row leads from 'stuck' to another state; list it in TERMINAL",
        ),
        (
            (Row("push", "open", "shut", None, "count, greet", "x"),),
            {},
            "'greet' takes ('person',), another takes ('coin',)",
        ),
        ((Row("trigger", "open", "shut", None, None, "x"),), {}, "cannot name a trigger"),
        ((Row("push it", "open", "shut", None, None, "x"),), {}, "cannot name a trigger"),
        ((Row("_push", "open", "shut", None, None, "x"),), {}, "cannot name a trigger"),
        ((Row("count", "open", "shut", None, None, "x"),), {}, "a trigger and something else"),
        ((Row("held", "open", "shut", None, None, "x"),), {}, "a trigger and something else"),
        ((Row("bell", "open", "shut", None, None, "x"),), {}, "a trigger and something else"),
        (
            (Row("values", "open", "shut", None, None, "x"),),
            {},
            "'values' is a trigger, and a name",
        ),
        ((Row("FAULT", "open", "shut", None, None, "x"),), {}, "'FAULT' is a trigger, and a name"),
        ((PUSH,), {"ROWS": Int(3)}, "'ROWS' is a field, and a name that every machine has"),
        ((PUSH,), {"STATES": lambda self: None}, "'STATES' is a method, and a name that every"),
        ((PUSH,), {"values": Int(3)}, "'values' is a field, and a name that every machine has"),
        ((PUSH,), {"state": Int(3)}, "'state' is a field, and a name that every machine has"),
        ((PUSH,), {"accepted": output(BellPort)}, "'accepted' is a port, and a name that every"),
        ((PUSH,), {"INDEX": ("index",)}, "'index' is an index set, and a name that every"),
        ((PUSH,), {"triggers": lambda self: None}, "'triggers' is a method, and a name that every"),
        ((PUSH,), {"__annotations__": {"pull": "Trigger"}}, "the trigger 'pull' has no row"),
        ((PUSH,), {"__annotations__": {"pull": "fsm.Trigger"}}, "the trigger 'pull' has no row"),
        ((PUSH,), {"__annotations__": {"pull": Trigger}}, "the trigger 'pull' has no row"),
        (
            (PUSH,),
            {"STATES": ("open", {"name": "shut", "children": ["a", "b"]})},
            "is no str; write each state as one name, a nested one such as 'moving_fast'",
        ),
        (
            (PUSH,),
            {"STATES": tuple(Place)},
            "<Place.OPEN: 'open'> is no str; write the text 'open' in place of the member of Place",
        ),
        (
            (Row("push", "open", Place.SHUT, None, None, "x"),),  # type: ignore[arg-type]  # refused
            {},
            "row 'push': its dest is <Place.SHUT: 'shut'>; write the text 'shut'",
        ),
        (
            (Row("push", "open", "shut", lambda: True, None, "x"),),  # type: ignore[arg-type]  # refused
            {},
            "write the name of a method of the class, which can be checked, compiled and drawn",
        ),
        (
            (Row("push", ["open"], "shut", None, None, "x"),),  # type: ignore[arg-type]  # refused
            {},
            "row 'push': its source is ['open']; write a tuple, ('open',)",
        ),
        (
            (Row("push", "open", "shut", None, (None,), "x"),),  # type: ignore[arg-type]  # refused
            {},
            "row 'push': its after is None; write a name",
        ),
        (
            (PUSH, ["pull", "open", "shut"]),
            {},
            "ROWS holds ['pull', 'open', 'shut']; write Row(...) or Ignore(...)",
        ),
        (
            (PUSH, Row("pull", "open", "=", None, None, "x")),
            {},
            "write the name of the source as dest, in a row for each source, or STAY",
        ),
    ],
)
def test_a_faulty_declaration_is_refused(
    rows: tuple[Row, ...], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        declare(*rows, **attributes)
    assert message in str(refused.value)
    assert "Door: " in str(refused.value)
    assert refused.value.exit_code == 2


def test_rows_that_demand_opposite_values_of_a_guard_exclude_each_other() -> None:
    declare(
        Row("push", "open", "shut", "is_free", None, "x"),
        Row("push", "open", STAY, "not is_free and is_paid", None, "y"),
        Ignore("push", "open", "not is_free and not is_paid", "z"),
    )


def test_callbacks_may_take_the_first_few_of_the_same_arguments() -> None:
    door = declare(Row("push", "open", "shut", "is_free and is_paid", "count", "x"))
    assert door.trigger_parameters("push") == ("coin",)
    assert door.trigger_parameters("leave") == ()


def test_a_base_without_rows_is_not_a_machine_yet_and_hands_its_fields_on() -> None:
    base = declare(PUSH)
    shared = declared("Shared", {"held": Int("coins")})
    assert shared.triggers() == ()
    body = {name: vars(base)[name] for name in ("STATES", "INITIAL", "ROWS")}
    derived = declared("Derived", body, shared)
    assert list(derived.FIELDS) == ["held"]


def test_a_subclass_runs_its_own_table_and_its_own_callbacks() -> None:
    def is_enough(self: Turnstile, coin: int) -> bool:
        return True

    body = {
        "STATES": ("locked", "unlocked"),
        "TERMINAL": (),
        "ROWS": tuple(row for row in Turnstile.ROWS if row.trigger != "hit"),
        "is_enough": is_enough,
    }
    free_turnstile = declared("Free", body, Turnstile)

    class FreeStation(Station):
        turnstile: list[Turnstile] = machines(free_turnstile)

    free = FreeStation().turnstile[0]
    free.pay(0)
    assert free.state == "unlocked"
    with pytest.raises(Exception, match="refuses 'hit'"):
        free.hit()


def test_a_subclass_may_add_rows_that_leave_an_inherited_terminal_state() -> None:
    mend = Row("mend", "broken", "locked", None, None, "a smith has tools")
    mended = declared("Mended", {"ROWS": (*Turnstile.ROWS, mend)}, Turnstile)
    assert mended.accepted("broken") == ("hit", "mend")


def system(**attributes: Any) -> type[System]:
    body = {"INDEX_SETS": {"gate": "gates"}, "CONSTANTS": {"gates": 1, "fare": 2}, **attributes}
    return type("Hall", (System,), body)


class Clerk(Machine):
    STATES = ("here",)
    INITIAL = "here"
    ROWS = (Row("ask", "here", STAY, None, None, "a visitor is curious"),)


class Ledger(Clerk):
    pages: list[list[int]] = Array(Array(Int("lines"), "sheets"), "gates")
    letters: list[Any] = Array(Channel("letter", "letters"), "gates")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"INDEX_SETS": {"gate": "doors"}}, "['doors'] are not in CONSTANTS"),
        ({"INDEX_SETS": {}, "turnstile": machines(Turnstile)}, "['gate'] are not in INDEX_SETS"),
        ({"gates": machines(Clerk)}, "the name is taken"),
        ({"values": machines(Clerk)}, "'values' is a machine, and a name that every system has"),
        ({"effects": machines(Clerk)}, "'effects' is a machine, and a name that every system has"),
        ({"CONSTANTS": {"observer": 1}, "INDEX_SETS": {}}, "the name is taken"),
        ({"ledger": machines(Ledger)}, "arrays [\"pages over 'gates'\"]"),
        ({"one": machines(Clerk), "other": machines(Clerk)}, "one class stands under two names"),
    ],
)
def test_a_faulty_system_is_refused(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        system(**attributes)
    assert message in str(refused.value)


def test_an_unknown_constant_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        DeclarationError, match=r"no constant \['fares'\]; it has \['fare', 'gates'\]"
    ):
        Station(fares=3)


def test_a_system_that_extends_another_keeps_its_machines() -> None:
    class Terminus(Station):
        CONSTANTS: ClassVar[dict[str, int]] = {**Station.CONSTANTS, "tracks": 3}

        clerk: Clerk = machines(Clerk)

    assert list(Terminus.MACHINES) == ["turnstile", "clerk"]
    assert Terminus(gates=2).values().keys() == {"turnstile[0]", "turnstile[1]", "clerk"}


def test_a_machine_without_a_system_says_how_to_get_one() -> None:
    with pytest.raises(TypeError, match=r"clerk: Clerk = machines\(Clerk\).*take `Shop\(\).clerk`"):
        Clerk()


def test_an_array_over_an_index_set_is_told_the_constant_with_its_size() -> None:
    class Porter(Machine):
        STATES = ("here",)
        INITIAL = "here"
        ROWS = (Row("ask", "here", STAY, None, None, "a visitor is curious"),)
        bags: list[int] = Array(Int("fare"), "gate")

    with pytest.raises(DeclarationError, match="for one item per 'gate', write 'gates'"):
        system(porter=machines(Porter))


def test_a_fault_is_told_with_the_place_of_the_row_or_of_the_class() -> None:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    with pytest.raises(DeclarationError) as refused:

        class Lamp(Machine):
            STATES = ("off", "on")
            INITIAL = "off"
            ROWS = (
                Row("turn", "off", "on", None, None, "it is dark"),
                Row("turn", "on", "dim", None, None, "it is bright"),
            )

    line = next(n for n, text in enumerate(lines, 1) if '"it is bright"' in text)
    assert str(refused.value).startswith(f"{__file__}:{line}: {__name__}.Lamp: row 'turn'")
    with pytest.raises(DeclarationError) as refused:

        class Torch(Machine):
            STATES = ("off", "on")
            INITIAL = "glowing"
            ROWS = (Row("turn", "off", "on", None, None, "it is dark"),)

    line = next(n for n, text in enumerate(lines, 1) if "class Torch" in text)
    assert str(refused.value).startswith(f"{__file__}:{line}: {__name__}.Torch: 'glowing'")


OF_ALL = sorted({n for n in dir(ClosedSystem) if n[:2] != "__"}.union(INSTANCE_ATTRIBUTES))


@pytest.mark.parametrize("name", OF_ALL)
def test_nothing_is_named_like_what_every_closed_system_has(name: str) -> None:
    def holds(self: Any) -> bool:
        return True

    claim, start = (
        always("it holds")(holds),
        initially("it begins so")(FunctionType(holds.__code__, {})),
    )
    for member, what in (
        (machines(Clerk), "a machine"),
        (Int(3), "a field"),
        (claim, "a method"),
        (start, "a method"),
    ):
        with pytest.raises(DeclarationError, match=f"Closed: '{name}' is {what}, and a name that"):
            type("Closed", (ClosedSystem,), {name: member})
    for constants in ({"CONSTANTS": {name: 1}}, {"DERIVED": {name: "1"}}):
        with pytest.raises(DeclarationError, match=f"{name}: the name is taken"):
            type("Closed", (ClosedSystem,), constants)


def test_a_peer_is_not_named_like_what_every_machine_has() -> None:
    with pytest.raises(DeclarationError, match="'state' is a peer, and a name that every machine"):
        type("Wire", (Environment,), {"PEERS": {"state": "clerk"}})


def test_a_class_that_is_kept_with_a_taken_name_tells_its_fault() -> None:
    with deferred() as refused:
        closed = type("Closed", (ClosedSystem,), {"DERIVED": machines(Clerk), "take": Int(3)})
        door = type("Door", (Machine,), {"STATES": Int(3)})
    assert refused == [closed, door]
    assert [text.partition(": ")[2] for text in faults_of(refused)] == [
        "'DERIVED' is a machine, and a name that every system has; choose another word",
        "'take' is a field, and a name that every system has; choose another word",
        "'STATES' is a field, and a name that every machine has; choose another word",
    ]
    with pytest.raises(DeclarationError, match="'DERIVED' is a machine"):
        closed()
