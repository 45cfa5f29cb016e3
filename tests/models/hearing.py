"""The arguments of the messages of machines that the surroundings of closed systems look at.

A value is looked at where a guard, a claim, a condition or an assertion depends on it, however
often it was handed on before that: through parameters, fields, channels, triggers and messages. A
field that nothing looks at is the end of a value. `python -m tests.models.hearing` prints the
table, one line for each message.

The flow is that of whole fields and methods, so a value counts as looked at where one that shares
its field is: what is named here as unheard is unheard, and what is not named may be unheard still.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from epochgate.fsm import Machine
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.subset import tree
from epochgate.fsm.subset.names import OneMachine
from epochgate.models.closed.catalogue import SYSTEMS

Method = tuple[type[Machine] | None, str]
"""A method of a machine, or of the system."""
Key = tuple[str, str, str]
"""A machine that runs, a port and a message."""
Place = tuple[object, ...]
"""A local, a field, the result of a method or an argument of a message, in one system."""
LOOKED_AT: Place = ("looked at",)
DATA = ("at", "place", "callee")
"""The parts of a node that lead to no value."""
RUNS = re.compile(r"epochgate\.models\.\w+")
"""The modules of the machines that run."""


@dataclass(frozen=True)
class Message:
    """One message of one port of a machine that runs, and which of its arguments are heard."""

    machine: str
    port: str
    name: str
    parameters: tuple[str, ...]
    unheard: tuple[str, ...]
    """The parameters that no closed system looks at."""
    is_nothing: bool
    """Every handler is empty."""

    @property
    def key(self) -> str:
        """For instance `QueryBatch.target.apply`."""
        return f"{self.machine}.{self.port}.{self.name}"


class Flow:
    """The flow of values in one closed system."""

    def __init__(self, system: type[ClosedSystem]) -> None:
        self.system = system
        self._from: dict[Place, set[Place]] = {}
        """A place -> those whose values reach it."""
        self._walked: set[Method] = set()
        for machine in system.MACHINES.values():
            for row in machine.ROWS:
                for name in row.actions:
                    self._walk(machine, name)
                for name, _ in row.literals:
                    self._look({self._walk(machine, name)})
        for claim in system.properties():
            for name in filter(None, (claim.name, claim.then)):
                self._look({self._walk(None, name)})
        for machine, port, name, handler in handlers(system):
            count = len(machine.PORTS[port].port.messages()[name])
            given: list[set[Place]] = [{("message", machine, port, name, i)} for i in range(count)]
            if name in handler.triggers():
                self._fire(handler, name, given)
            else:
                self._hand(handler, name, given)

    def heard(self) -> set[Place]:
        """Every place whose value is looked at."""
        found, frontier = {LOOKED_AT}, [LOOKED_AT]
        while frontier:
            new = self._from.get(frontier.pop(), set()) - found
            found |= new
            frontier += new
        return found

    def _go(self, sources: Iterable[Place], to: Place) -> None:
        self._from.setdefault(to, set()).update(sources)

    def _look(self, sources: Iterable[Place]) -> None:
        self._go(sources, LOOKED_AT)

    def _walk(self, machine: type[Machine] | None, name: str) -> Place:
        """Follow the values through a method, and return the place of its result."""
        if (machine, name) not in self._walked:
            self._walked.add((machine, name))
            self._block(self.system.SUBSET.tree(machine, name).body, (machine, name))
        return "result", machine, name

    def _hand(self, machine: type[Machine] | None, name: str, given: list[set[Place]]) -> Place:
        """Call a method with arguments from these places."""
        result = self._walk(machine, name)
        parameters = self.system.SUBSET.tree(machine, name).parameters
        for parameter, sources in zip(parameters, given, strict=False):
            self._go(sources, ("local", machine, name, parameter))
        return result

    def _fire(self, machine: type[Machine], trigger: str, given: list[set[Place]]) -> None:
        for row in machine.ROWS:
            if row.trigger == trigger:
                for name in (*row.actions, *(name for name, _ in row.literals)):
                    self._hand(machine, name, given)

    def _block(
        self,
        statements: tuple[tree.Statement, ...],
        method: Method,
    ) -> None:
        for statement in statements:
            match statement:
                case tree.Assign(target=target, value=value):
                    self._store(target, self._of(value, method), method)
                case tree.Update(target=target, value=value):
                    self._store(target, self._of(value, method), method)
                case tree.If(condition=condition, then=then, otherwise=otherwise):
                    self._look(self._of(condition, method))
                    self._block(then, method)
                    self._block(otherwise, method)
                case tree.ForRange(body=body):
                    self._block(body, method)
                case tree.ForItems(name=name, channel=channel, body=body):
                    self._go(self._of(channel, method), ("local", *method, name))
                    self._block(body, method)
                case tree.Assert(condition=condition):
                    self._look(self._of(condition, method))
                case tree.Return(value=value) if value is not None:
                    self._go(self._of(value, method), ("result", *method))
                case tree.Do(call=call):
                    self._of(call, method)

    def _store(
        self,
        path: tree.Path,
        sources: set[Place],
        method: Method,
    ) -> None:
        """Let values reach what a path leads to; which item of an array it is depends on its
        index, and which machine on the index of that.
        """
        match path:
            case tree.LocalName(name=name):
                self._go(sources, ("local", *method, name))
            case tree.Item(array=array, index=index):
                self._store(array, sources.union(*(self._of(i, method) for i in index)), method)
            case tree.FieldOf(machine=machine, name=name):
                where = self._of(machine, method)
                self._go(sources | where, ("field", _machine(machine), name))

    def _of(self, part: object, method: Method) -> set[Place]:
        """The places that the value of an expression comes from."""
        match part:
            case tree.LocalName(name=name):
                return {("local", *method, name)}
            case tree.FieldOf(machine=machine, name=name):
                return {("field", _machine(machine), name)} | self._of(machine, method)
            case tree.Call():
                return self._called(part, method)
            case tree.Drain(into=into, source=source):
                self._store(into, self._of(source, method), method)
                return set()
            case tree.Node():
                parts = (
                    getattr(part, name) for name in part.__dataclass_fields__ if name not in DATA
                )
                return set[Place]().union(*(self._of(each, method) for each in parts))
            case tuple():
                return set[Place]().union(*(self._of(each, method) for each in part))
            case _:
                return set()

    def _called(self, call: tree.Call, method: Method) -> set[Place]:
        given = [self._of(argument, method) for argument in call.arguments]
        owner, callee = call.owner, call.callee
        match callee.sort:
            case "method":
                self._look(self._of(owner, method))  # an index decides which machine it is
                return {self._hand(callee.machine, callee.name, given)}
            case "trigger":
                assert callee.machine is not None
                self._look(self._of(owner, method))
                self._fire(callee.machine, callee.name, given)
            case "message":
                assert isinstance(owner, tree.PortOf)
                for number, sources in enumerate(given):
                    sender = _machine(owner.machine)
                    self._go(sources, ("message", sender, owner.name, callee.name, number))
            case "change" | "look" if callee.name in ("pop", "head"):
                return self._of(owner, method)
            case "change" if callee.name == "push":
                self._store(owner, set[Place]().union(*given), method)
        return set()


def _machine(path: tree.Path) -> type[Machine]:
    assert isinstance(path.place, OneMachine)
    return path.place.machine


def handlers(
    system: type[ClosedSystem],
) -> Iterator[tuple[type[Machine], str, str, type[Machine]]]:
    """Each message of each wired port: the machine, the port, the message, and who handles it."""
    for wire, target in system.WIRING.items():
        name, _, port = wire.partition(".")
        machine = system.MACHINES[name]
        for message in machine.PORTS[port].port.messages():
            yield machine, port, message, system.MACHINES[target]


def running(machine: type[Machine], port: str, message: str) -> str:
    """The name of the machine that runs and sends this message, of a variant that stands in a
    closed system or runs elsewhere: the same methods send it.
    """
    kinds = [kind for kind in machine.__mro__ if RUNS.fullmatch(kind.__module__)] or [machine]
    sending = _sending(kinds[0], port, message)
    same = [
        kind
        for kind in kinds
        if issubclass(kind, Machine)
        and port in kind.PORTS
        and all(getattr(kind, n, None) is getattr(kinds[0], n) for n in sending)
    ]
    return same[-1].__name__


def _sending(machine: type[Machine], port: str, message: str) -> frozenset[str]:
    """The methods of a machine that send a message."""
    methods = inspect.getmembers(machine, inspect.isfunction)
    call = f".{port}.{message}("
    return frozenset(
        name
        for name, method in methods
        if not method.__module__.startswith("epochgate.fsm.") and call in inspect.getsource(method)
    )


def messages(systems: Iterable[type[ClosedSystem]]) -> list[Message]:
    """Each message of the machines of these systems, with its arguments that are unheard."""
    parameters: dict[Key, tuple[str, ...]] = {}
    heard: dict[Key, set[int]] = {}
    used: set[Key] = set()
    for system in systems:
        looked_at = Flow(system).heard()
        for machine, port, name, handler in handlers(system):
            key = running(machine, port, name), port, name
            names = parameters[key] = machine.PORTS[port].port.messages()[name]
            numbers = range(len(names))
            heard.setdefault(key, set()).update(
                i for i in numbers if ("message", machine, port, name, i) in looked_at
            )
            if name in handler.triggers() or system.SUBSET.tree(handler, name).body:
                used.add(key)
    return [
        Message(
            *key,
            names,
            tuple(name for i, name in enumerate(names) if i not in heard[key]),
            key not in used,
        )
        for key, names in sorted(parameters.items())
    ]


def table(found: Iterable[Message]) -> Iterator[str]:
    """A line for each message, and the sums."""
    found = [*found]
    for message in found:
        shown = ", ".join(f"[{n}]" if n in message.unheard else n for n in message.parameters)
        yield f"{message.key}({shown})" + ("  nothing happens" if message.is_nothing else "")
    arguments = sum(len(message.parameters) for message in found)
    unheard = sum(len(message.unheard) for message in found)
    nothing = sum(message.is_nothing for message in found)
    yield f"{len(found)} messages, {nothing} of them nothing happens at in any system"
    yield f"{arguments} arguments, {unheard} of them [in brackets] nothing looks at"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in table(messages(SYSTEMS.values())))
