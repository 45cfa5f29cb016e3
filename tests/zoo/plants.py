"""The planting of a bug: in a machine that runs, whose broken rows or actions are then read by the
checker and executed by the runtime; or in the runtime around the machines, which no checker sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from epochgate.fsm import Machine, machines
from epochgate.fsm.closed import ClosedSystem
from tests.mutation.homes import HOMES, Home
from tests.mutation.planted import planted

Shell: TypeAlias = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Plant:
    """A broken machine: what `broken` has in its body takes the place of what the machine has that
    runs under this name.
    """

    machine: str
    broken: type[Machine]

    @property
    def home(self) -> Home:
        return HOMES[self.machine]

    def of(self, machine: type[Machine]) -> type[Machine]:
        """Break a machine, or one that adds rows to it."""
        body = {
            name: value for name, value in vars(self.broken).items() if _is_changed(name, value)
        }
        if "ROWS" in vars(self.broken):
            added = machine.ROWS[len(self.home.machine.ROWS) :]
            body["ROWS"] = (*self.broken.ROWS, *added)
        body["__module__"] = machine.__module__
        return type(f"Broken{machine.__name__}", (machine,), body)

    def in_system(self, system: type[ClosedSystem]) -> type[ClosedSystem]:
        """The closed system with the broken machine in it."""
        name = self.home.attribute
        body: dict[str, Any] = {
            "__module__": system.__module__,
            name: machines(self.of(system.MACHINES[name])),
            "UNTAKEN": {},
        }
        return type(f"Broken{system.__name__}", (system,), body)


def _is_changed(name: str, value: Any) -> bool:
    return callable(value) and not name.startswith("__")


@contextmanager
def in_the_runtime(how: Plant | Shell) -> Iterator[None]:
    """The production runtime has the bug meanwhile."""
    if isinstance(how, Plant):
        with planted(how):  # type: ignore[arg-type]  # it asks no more of a mutant
            yield
    else:
        with pytest.MonkeyPatch.context() as patch:
            how(patch)
            yield
