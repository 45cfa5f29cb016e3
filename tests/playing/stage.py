"""The stage on which a closed system and the shells of its machines take the same steps.

After each step the machines are compared, field by field; what the back ends really hold is held
against what the surroundings say of it; and what is possible next has to be the same on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from epochgate.fsm.checker.schedule import MachineStage
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.machine import Machine
from epochgate.runtime.testing.playing import Diverged


@dataclass(frozen=True)
class Act:
    """A step of the closed system as the shells take it: the callables take the world and the index
    of the instance. `is_there` looks in the shells and back ends alone; `else_` says what it means
    that there is nothing.
    """

    do: Any
    is_there: Any
    else_: str
    is_apart: Any = None
    """Where the model does something else than the shells, for a reason that the table tells: walks
    do not take the step there.
    """


class Shown(Protocol):
    """A machine that runs, and what it holds."""

    def values(self) -> dict[str, Any]:
        """State and fields, as the closed system has them."""


class World(Protocol):
    """The shells of a closed system over back ends that do as a schedule tells them."""

    acts: Mapping[str, Act]
    """For each step, as `client.lose`, what it is."""

    def machines(self) -> Iterable[tuple[str, tuple[int, ...], Shown]]:
        """The machines that run in the shells, each with its name and index in the system."""

    def facts(self) -> Iterable[tuple[str, Any, Any]]:
        """List what is said of the outside: name, value in the model, and what really is."""

    def close(self) -> None:
        """End what is under way."""


class GatedStage:
    """Plays on the machines of `system`, and on the shells of `world`."""

    def __init__(self, system: ClosedSystem, world: World) -> None:
        self.machines, self.world = MachineStage(system), world
        self._system = system
        self._acts = {
            name: (world.acts[f"{step.machine}.{step.trigger}"], machine.index)
            for name, (step, machine) in zip(
                self.machines.steps, system.step_instances(), strict=True
            )
        }

    @property
    def steps(self) -> dict[str, bool]:
        """All steps, and whether each is fair."""
        return self.machines.steps

    def possible(self) -> list[str]:
        """Return what is possible in the model and in the shells. Raises Diverged where they
        differ.
        """
        expected = self.machines.possible()
        for step, (act, index) in self._acts.items():
            is_there = bool(act.is_there(self.world, *index))
            if is_there and step not in expected:
                raise Diverged(f"{step} is possible in the shells, and not in the model")
            if step in expected and not is_there:
                raise Diverged(
                    f"{step} is possible in the model, and in the shells not: {act.else_}"
                )
        return [step for step in expected if not self._is_apart(step)]

    def _is_apart(self, step: str) -> bool:
        act, index = self._acts[step]
        return act.is_apart is not None and bool(act.is_apart(self.world, *index))

    def take(self, step: str) -> None:
        """Take a step on both sides. Raises ClaimBroken, and Diverged where they differ then."""
        self.machines.take(step)
        act, index = self._acts[step]
        act.do(self.world, *index)
        for different in self.differences():
            raise Diverged(f"after {step}: {different}")

    def differences(self) -> Iterator[str]:
        """Return what is not the same on both sides."""
        for name, index, real in self.world.machines():
            model = self._machine(name, index).values()
            for field, value in real.values().items():
                if model[field] != value:
                    place = name + "".join(f"[{i}]" for i in index)
                    yield f"{place}.{field} is {model[field]!r} in the model, and really {value!r}"
        for what, told, really in self.world.facts():
            if told != really:
                yield f"{what} is {told!r} in the model, and really {really!r}"

    def _machine(self, name: str, index: tuple[int, ...]) -> Machine:
        return next(each for each in self._system.instances(name) if each.index == index)
