"""Bad input is refused with its place and with advice, before anything is explored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from epochgate.errors import InvariantBroken
from epochgate.fsm import (
    STAY,
    Channel,
    DeclarationError,
    Fifo,
    Int,
    Machine,
    Port,
    Row,
    machines,
    output,
)
from epochgate.fsm.checker import check
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.engines import kernels, store_kernels
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always, eventually
from epochgate.models.closed.planning import PlannedQuery
from tests.checker.small_systems import Counter

ON = "on"


class Tally(Machine):
    """Counts without a bound that the system knows."""

    STATES = (ON,)
    INITIAL = ON

    system: Any

    count: int = Int("nowhere")

    ROWS = (Row("tick", ON, STAY, None, "add", "time passes"),)

    def add(self) -> None:
        self.count += 1


class Long(Machine):
    """A channel that no word holds."""

    STATES = (ON,)
    INITIAL = ON

    system: Any

    lane: Fifo[int] = Channel("bound", "room")

    ROWS = (Row("tick", ON, STAY, None, "add", "time passes"),)

    def add(self) -> None:
        self.lane.push(1)


class Divider(Machine):
    """Divides by what may be nothing."""

    STATES = (ON,)
    INITIAL = ON

    system: Any

    count: int = Int("bound")

    ROWS = (Row("tick", ON, STAY, None, "divide", "time passes"),)

    def divide(self) -> None:
        self.count = 1 // self.count


def closed(machine: type[Machine], **members: Any) -> type[ClosedSystem]:
    base: dict[str, Any] = {
        "CONSTANTS": {"bound": 5, "room": 40},
        "STEPS": (Step("one", "tick"),),
        "one": machines(machine),
        **members,
    }
    return type("Closed", (ClosedSystem,), base)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (Tally, r"one\.count is bounded by 'nowhere'.*cannot be checked"),
        (Long, r"one\.lane: 40 items of 3 bits do not fit into 63 bits"),
    ],
)
def test_what_has_no_finite_form_is_refused(machine: type[Machine], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        check(closed(machine))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"STEPS": (Step("two", "tick"),)}, "a step names the machine 'two'"),
        ({"STEPS": (Step("one", "tock"),)}, "has no trigger 'tock'"),
        ({"WIRING": {"one.bell": "one"}}, "is no port of a machine"),
        ({"UNTAKEN": {"one.tock": "why"}}, "is no trigger or row of a machine"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(members: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        closed(Divider, **members)


class Caller(Machine):
    """Its trigger has an argument, so it cannot be taken as a step."""

    STATES = (ON,)
    INITIAL = ON
    FIELDS: ClassVar[dict[str, Any]] = {}

    system: Any

    ROWS = (Row("tick", ON, STAY, None, "hear", "a speaker speaks"),)

    def hear(self, number: int) -> None:
        pass


def test_a_step_without_its_arguments_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"one\.tick takes number, but a step gets no"):
        closed(Caller)


class Bell(Port):
    """The words of a ringer."""

    def ring(self, times: int) -> None:
        """So often."""


class Ringer(Divider):
    """Rings."""

    bell: Bell = output(Bell)

    def divide(self) -> None:
        self.bell.ring(1)


class Deaf(Environment):
    """Has no handler."""

    STATES = (ON,)
    INITIAL = ON


class Hasty(Deaf):
    """Its handler takes nothing."""

    def ring(self) -> None:
        pass


class Curious(Deaf):
    """Its handler takes more than there is."""

    ROWS = (Row("ring", ON, STAY, None, "hear", "it rings"),)

    def hear(self, times: int, loudly: bool) -> None:
        pass


class Sloppy(Deaf):
    """Its handler is outside the subset."""

    def ring(self, times: int) -> None:
        sum(range(times))


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (Deaf, r"Deaf handles one\.bell\.ring\(times\), but has no trigger or method 'ring'"),
        (Hasty, r"Hasty handles one\.bell\.ring\(times\) by a method that takes nothing"),
        (Curious, r"Curious handles .* by a trigger that takes times, loudly"),
        (Sloppy, r"test_bad_input\.py:\d+: Sloppy\.ring: a call of `sum` is outside"),
        (Divider, r"let Divider be a subclass of Environment"),
    ],
)
def test_a_handler_that_cannot_take_a_message_is_refused(
    handler: type[Machine], message: str
) -> None:
    with pytest.raises(DeclarationError, match=message):
        closed(Ringer, WIRING={"one.bell": "other"}, other=machines(handler))


class Indexed(Ringer):
    """One for each place."""

    INDEX = ("place",)


class Patient(Deaf):
    """Its handler takes what there is, and keeps it to itself."""

    rung: int = Int("bound")

    def ring(self, times: int) -> None:
        self.rung = times


def test_a_wire_from_an_indexed_machine_to_one_without_that_index_is_refused() -> None:
    told = r"WIRING leads 'one\.bell', a port of each place, to 'other', which has INDEX \(\): give"
    with pytest.raises(DeclarationError, match=told):
        closed(
            Indexed,
            CONSTANTS={"bound": 5, "room": 40, "places": 2},
            INDEX_SETS={"place": "places"},
            WIRING={"one.bell": "other"},
            other=machines(Patient),
        )


class Neighbour(Deaf):
    """Speaks of a machine by a name of its own."""

    PEERS: ClassVar[dict[str, str]] = {"rings": "one"}


@pytest.mark.parametrize(
    ("name", "machine", "message"),
    [
        ("two", Ringer, r"PEERS of Neighbour lead 'rings' to 'one', which is no machine"),
        ("one", Indexed, r"lead 'rings' to 'one', which has INDEX \('place',\): name one that has"),
    ],
)
def test_a_peer_that_is_not_there_for_each_instance_is_refused(
    name: str, machine: type[Machine], message: str
) -> None:
    with pytest.raises(DeclarationError, match=message):
        type(
            "Street",
            (ClosedSystem,),
            {
                "__module__": __name__,
                "CONSTANTS": {"bound": 5, "room": 40, "places": 2},
                "INDEX_SETS": {"place": "places"},
                name: machines(machine),
                "other": machines(Neighbour),
            },
        )


def test_a_peer_is_the_instance_that_has_the_same_index() -> None:
    query = PlannedQuery()
    assert query.client[1].served is query.batch_plan[1]
    assert query.client[1].entries is query.stream


def test_a_field_that_nothing_reads_is_noted_unless_that_is_excused() -> None:
    wired = {"WIRING": {"one.bell": "other"}, "other": machines(Patient)}
    notes = check(closed(Ringer, **wired)).notes
    assert notes == [
        "nothing reads one.count: remove it, or say in UNREAD why it stays",
        "nothing reads other.rung: remove it, or say in UNREAD why it stays",
    ]
    excused = {"UNREAD": {"one.count": "a base has it", "other.rung": "so has this one"}}
    assert check(closed(Ringer, **wired, **excused)).notes == []


def test_a_port_without_a_handler_is_refused_when_the_system_is_checked() -> None:
    with pytest.raises(DeclarationError, match=r"the port 'bell' has no handler: add 'one\.bell'"):
        check(closed(Ringer))


def claiming(name: str, claim: Callable[..., bool]) -> type[ClosedSystem]:
    constants = {"end": 1, "room": 1}
    return closed(Counter, CONSTANTS=constants, **{name: always("something holds")(claim)})


def test_a_claim_is_held_to_the_subset_as_machines_are() -> None:
    def is_short(self: Any) -> bool:
        return len(str(self.one.count)) < 2

    with pytest.raises(DeclarationError, match=r"Closed\.is_short: a call of `str` is outside"):
        check(claiming("is_short", is_short))


def test_a_method_makes_one_claim() -> None:
    with pytest.raises(DeclarationError, match="is_early makes two claims, 'it ends' and 'it is"):

        class Twice(ClosedSystem):
            @always("it is early")
            @eventually("it ends")
            def is_early(self) -> bool:
                return True


@pytest.mark.parametrize("rule", ["bound + nothing", "__import__('os')", "bound ** 2", "[1]"])
def test_a_derived_constant_is_arithmetic_and_nothing_else(rule: str) -> None:
    system = closed(Divider, DERIVED={"extra": rule})
    with pytest.raises(DeclarationError, match="is no arithmetic of constants"):
        Lowering(system()).program()


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [("claim", 3), ("alike", 3), ("lowest", 1), ("expand", 6), ("inspect", 3), ("is_final", 3)],
)
def test_a_kernel_that_is_called_as_python_names_itself_and_the_engine_to_take(
    kernel: str, arguments: int
) -> None:
    module = store_kernels if hasattr(store_kernels, kernel) else kernels
    with pytest.raises(InvariantBroken, match=rf"kernels\.{kernel} was called.*engine 'python'"):
        getattr(module, kernel)(*[0] * arguments)
