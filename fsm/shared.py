"""Variables that all machines of a closed system share: fields in the class body of the system.

They lie in a machine of the environment without rows, named SHARED, so that they are packed, told
and made symmetric as the fields of any other. Only a closed system has them: what runs has no
memory that all machines write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.fields import FIELD_KINDS
from epochgate.fsm.subset.names import SHARED

if TYPE_CHECKING:
    from epochgate.fsm.closed import ClosedSystem
    from epochgate.fsm.machine import Machine


def declare(system: type[ClosedSystem], base: type[Machine]) -> None:
    """Move the fields of a system's class body to a machine of their own, a subclass of `base`.

    Raises DeclarationError for a name that means something else.
    """
    fields = {name: value for name, value in vars(system).items() if isinstance(value, FIELD_KINDS)}
    if not fields:
        return
    before = system.MACHINES.get(SHARED)
    if before is not None and not before.IS_SHARED:
        raise DeclarationError(
            f"{system.__module__}.{system.__name__}: the machine {SHARED!r} has the name of the "
            f"one that holds {', '.join(fields)}; give it another name"
        )
    if taken := [name for name in fields if name in (*system.CONSTANTS, *system.MACHINES, SHARED)]:
        raise DeclarationError(
            f"{system.__module__}.{system.__name__}.{taken[0]}: the name is taken; choose another"
        )
    annotations = vars(system).get("__annotations__", {})
    body = {
        "__module__": system.__module__,
        "__doc__": f"What the machines of {system.__name__} share.",
        "__annotations__": {name: annotations.get(name) for name in fields},
        "STATES": (SHARED,),
        "INITIAL": SHARED,
        "IS_SHARED": True,
        **fields,
    }
    machine = type(f"{system.__name__}Shared", (before or base,), body)
    system.MACHINES = {**system.MACHINES, SHARED: machine}
    for name in fields:
        setattr(system, name, _forwarded(name))


def _forwarded(name: str) -> Any:
    """An attribute of the system that is the field of its shared machine."""

    def read(system: Any) -> Any:
        return getattr(system.shared, name)

    def write(system: Any, value: Any) -> None:
        setattr(system.shared, name, value)

    return property(read, write)
