"""Interchangeable instances: they may be exchanged in any state without changing what can happen.

An index set qualifies when its members are only ever used to get at machines and fields: never
compared, computed with, stored or sent, and never written as a number. That is decided on the text
of all methods. Loops over the members may still do things whose order matters; so in addition
states along random walks are permuted, and what can happen there is compared. That second part
finds most such loops, not all: where a loop's order matters in rare states only, do without
symmetry.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from epochgate.errors import UsageError
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.engines.initial import initial_states
from epochgate.fsm.checker.engines.search import Words
from epochgate.fsm.checker.random_numbers import below, following, scrambled
from epochgate.fsm.choosing import start_conditions
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.fields import ArrayField
from epochgate.fsm.machine import Machine
from epochgate.fsm.source import definition

WALKS, WALK_STEPS_MAX = 20, 40
STORING = frozenset({"push", "take", "remove", "add", "discard"})
"""The methods of channels and sets that get a number."""


class NotSymmetric(UsageError):
    """Instances that were to be interchangeable are not."""


def symmetric_set(system: ClosedSystem, wanted: bool | str) -> str | None:
    """The index set to use: the named one, or the largest that qualifies; None without symmetry."""
    if wanted is False:
        return None
    sizes = {name: system.constants[over] for name, over in system.INDEX_SETS.items()}
    if isinstance(wanted, str):
        if wanted not in sizes:
            raise NotSymmetric(
                f"{type(system).__name__} has no index set {wanted!r}; it has {', '.join(sizes)}"
            )
        _Uses(system, wanted).check()
        return wanted
    reasons = []
    for name in sorted(sizes, key=lambda n: -sizes[n]):
        try:
            _Uses(system, name).check()
        except NotSymmetric as reason:
            reasons.append(reason)
        else:
            return name
    raise reasons[0] if reasons else NotSymmetric(f"{type(system).__name__} has no index sets")


class _Uses:
    """The uses of one index set's members in all methods of a system."""

    def __init__(self, system: ClosedSystem, name: str) -> None:
        self._system, self._name, self._over = system, name, system.INDEX_SETS[name]
        self._members: dict[tuple[type, str], set[str]] = {}
        """The parameters of a method that are given members of the index set."""
        for claim in system.properties():
            if claim.each == name:
                for method in filter(None, (claim.name, claim.then, *system.measured(claim))):
                    self._members.setdefault((type(system), method), set()).add(name)
        self._methods = [
            (owner, method)
            for owner in (*system.MACHINES.values(), type(system))
            for method in self._written(owner)
        ]

    def _written(self, owner: type) -> Iterator[Callable[..., Any]]:
        if issubclass(owner, Machine):
            started = {n for r in owner.ROWS for n in (*r.conditions, *r.unless, *r.actions)}
        else:
            claims = self._system.properties()
            started = {n for p in claims for n in (p.name, p.then) if n}
            started |= {n for p in claims for n in self._system.measured(p)}
            started |= {*start_conditions(type(self._system))}
        seen: set[str] = set()
        frontier = sorted(started)
        while frontier:
            name = frontier.pop()
            method: Any = getattr(owner, name, None)
            if name in seen or not hasattr(method, "__code__") or hasattr(method, "is_trigger"):
                continue
            seen.add(name)
            yield method
            frontier += [
                n.attr for n in ast.walk(definition(method)) if isinstance(n, ast.Attribute)
            ]
        # What other machines call by a path is reached by name.
        called = {
            n.attr
            for other in self._system.MACHINES.values()
            for m in vars(other).values()
            if hasattr(m, "__code__") and not hasattr(m, "is_trigger") and m.__name__[:2] != "__"
            for n in ast.walk(definition(m))
            if isinstance(n, ast.Attribute)
        }
        for name in sorted(called - seen):
            method = getattr(owner, name, None)
            is_plain = hasattr(method, "__code__") and not hasattr(method, "is_trigger")
            if is_plain and owner in self._system.MACHINES.values():
                seen.add(name)
                yield method

    def _give_chosen(self) -> None:
        """The arguments that steps choose among the members are members."""
        for step in self._system.STEPS:
            machine = self._system.MACHINES[step.machine]
            rows = [row for row in machine.ROWS if row.trigger == step.trigger]
            callbacks = {n for r in rows for n in (*r.conditions, *r.unless, *r.actions)}
            for position, over in enumerate(step.over):
                for name in callbacks if over == self._over else ():
                    taken = definition(getattr(machine, name)).args.args[1:]
                    if position < len(taken):
                        self.parameters(machine, name).add(taken[position].arg)

    def check(self) -> None:
        """Raise NotSymmetric for the first use that tells members apart."""
        self._give_chosen()
        before = -1
        while (now := sum(map(len, self._members.values()))) != before:
            before = now
            for owner, method in self._methods:
                _Method(self, owner, method, is_strict=False).check()
        for owner, method in self._methods:
            _Method(self, owner, method, is_strict=True).check()

    def parameters(self, owner: type, name: str) -> set[str]:
        return self._members.setdefault((owner, name), set())

    def give(self, owner: type, callee: ast.Attribute, position: int) -> None:
        """A method or trigger gets a member as an argument."""
        name = callee.attr
        for machine in self._called(owner, callee.value):
            names = [name]
            if name in machine.triggers():
                rows = [row for row in machine.ROWS if row.trigger == name]
                names = [n for r in rows for n in (*r.conditions, *r.unless, *r.actions)]
            for each in names:
                method: Any = getattr(machine, each, None)
                if hasattr(method, "__code__") and not hasattr(method, "is_trigger"):
                    taken = definition(method).args.args[1:]
                    if position < len(taken):
                        self.parameters(machine, each).add(taken[position].arg)

    def _called(self, owner: type, path: ast.expr) -> list[type[Machine]]:
        """The machines that a path may lead to: one where that is plain, or else all."""
        machines = self._system.MACHINES
        names = {machine: name for name, machine in machines.items()}
        if isinstance(path, ast.Name) and path.id == "self" and owner in names:
            return [machines[names[owner]]]
        if isinstance(path, ast.Subscript):
            path = path.value
        if isinstance(path, ast.Attribute):
            if path.attr in machines:
                return [machines[path.attr]]
            if owner in names and path.attr in machines[names[owner]].PEERS:
                return [machines[machines[names[owner]].PEERS[path.attr]]]
            wired = self._system.WIRING.get(f"{names.get(owner)}.{path.attr}")
            if wired is not None:
                return [machines[wired]]
        return [*machines.values()]

    def positions(self, node: ast.expr) -> list[bool] | None:
        """Of what is subscripted: for each index, whether it is a member; None if unknown."""
        if not isinstance(node, ast.Attribute):
            return None
        machine = self._system.MACHINES.get(node.attr)
        if machine is not None:
            return [index == self._name for index in machine.INDEX]
        for machine in self._system.MACHINES.values():
            spec = machine.FIELDS.get(node.attr)
            if isinstance(spec, ArrayField):
                return [spec.over == self._over]
        return None

    def is_range(self, node: ast.expr) -> bool:
        """Return whether a loop goes over the whole index set."""
        return (
            isinstance(node, ast.Call)
            and len(node.args) == 1
            and isinstance(node.args[0], ast.Attribute)
            and node.args[0].attr == self._over
        )

    def is_index(self, owner: type, node: ast.expr) -> bool:
        """Return whether this is the position of an instance, and no machine of the same name."""
        if not isinstance(node, ast.Attribute) or node.attr != self._name:
            return False
        is_of_system = isinstance(node.value, ast.Attribute) and node.value.attr == "system"
        return not is_of_system and owner is not type(self._system)

    def refusal(self, method: Callable[..., Any], node: ast.AST, text: str) -> NotSymmetric:
        code = method.__code__
        return NotSymmetric(
            f"{code.co_filename}:{getattr(node, 'lineno', code.co_firstlineno)}: "
            f"{method.__qualname__}: `{ast.unparse(node)}` {text}, so the instances of "
            f"{self._name!r} are not interchangeable; check without symmetry"
        )


class _Method(ast.NodeVisitor):
    """One method: every use of a member outside its places is refused."""

    def __init__(
        self, uses: _Uses, owner: type, method: Callable[..., Any], is_strict: bool
    ) -> None:
        self._uses, self._owner = uses, owner
        self._method, self._is_strict = method, is_strict
        self._tree = definition(method)
        self._locals = set(uses.parameters(owner, method.__name__))

    def check(self) -> None:
        for statement in self._tree.body:
            self.visit(statement)

    def _is_member(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self._locals
        if _is_choice(node) and self._uses.is_range(_loop_of(node.args[0])):
            return True
        return isinstance(node, ast.expr) and self._uses.is_index(self._owner, node)

    def visit(self, node: ast.AST) -> Any:
        if self._is_member(node) and self._is_strict:
            raise self._uses.refusal(
                self._method, node, "is compared, computed with, stored or sent"
            )
        return super().visit(node)

    def _loop(self, target: ast.expr, iterated: ast.expr) -> None:
        if self._uses.is_range(iterated) and isinstance(target, ast.Name):
            self._locals.add(target.id)
        else:
            self.visit(iterated)
            if isinstance(target, ast.Name):
                self._locals.discard(target.id)

    def visit_For(self, node: ast.For) -> None:
        self._loop(node.target, node.iter)
        for statement in node.body:
            self.visit(statement)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        for part in node.generators:
            self._loop(part.target, part.iter)
            for condition in part.ifs:
                self.visit(condition)
        self.visit(node.elt)

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name) and self._is_member(node.value):
            self._locals.add(target.id)
            return
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        positions = self._uses.positions(node.value) or [False] * len(parts)
        for part, is_member_place in zip(parts, positions, strict=False):
            if is_member_place and self._is_member(part):
                continue
            if is_member_place and self._is_strict:
                raise self._uses.refusal(self._method, node, "names an instance by a number")
            self.visit(part)
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if _is_choice(node) and isinstance(node.args[0], ast.GeneratorExp):
            (part,) = node.args[0].generators
            self._loop(part.target, part.iter)
            for condition in part.ifs:
                self.visit(condition)
            return
        is_channel = isinstance(node.func, ast.Attribute) and node.func.attr in STORING
        for position, argument in enumerate(node.args):
            if (
                self._is_member(argument)
                and not is_channel
                and isinstance(node.func, ast.Attribute)
            ):
                self._uses.give(self._owner, node.func, position)
            else:
                self.visit(argument)
        self.visit(node.func)


def _is_choice(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "one_of" and len(node.args) == 1


def _loop_of(options: ast.expr) -> ast.expr:
    """The range that a value is chosen from."""
    return options.generators[0].iter if isinstance(options, ast.GeneratorExp) else options


def verify(program: Program, name: str) -> None:
    """Permute states along random walks; NotSymmetric where something else can happen then."""
    comparison = _Comparison(program)
    x = scrambled(0)
    initial = initial_states(program, name)
    for walk in range(WALKS if program.blocks[0] > 1 else 0):
        state = initial[walk * len(initial) // WALKS]
        for _ in range(WALK_STEPS_MAX):
            try:
                if not comparison.agrees(state):
                    raise NotSymmetric(
                        f"the instances of {name!r} are not interchangeable: exchange two of them, "
                        f"and something else can happen; perhaps a loop over them does things "
                        f"whose order matters; check without symmetry"
                    )
                target = comparison.target
                after = [a for s in target.enabled(state) for _, a in target.ways(state, s)]
                if not after:
                    break
                x = following(x)
                state = after[below(x, len(after))]
            except StepFault:
                break


class _Comparison:
    """A comparison of what can happen in a state, and in the same state with two instances
    exchanged.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self.target = PythonTarget(program)

    def agrees(self, state: Words) -> bool:
        return all(
            self._possible(state, block) == self._possible(self._exchanged(state, block), None)
            for block in range(self._program.blocks[0] - 1)
        )

    def _exchanged(self, state: Words, block: int) -> Words:
        _, first, width = self._program.blocks
        one, other = first + block * width, first + (block + 1) * width
        words = list(state)
        words[one : one + width] = state[other : other + width]
        words[other : other + width] = state[one : one + width]
        return tuple(words)

    def _possible(self, state: Words, block: int | None) -> Counter[Any]:
        """Return what steps lead to, exchanged if a block is given, and which properties hold."""
        found: Counter[Any] = Counter()
        for step in self.target.enabled(state):
            try:
                for _, after in self.target.ways(state, step):
                    found[after if block is None else self._exchanged(after, block)] += 1
            except StepFault as fault:
                place = self._program.faults[fault.number]
                found[place.kind, place.line] += 1
        for method in self._program.properties:
            found[method] = int(self.target.holds(method, state))
        return found
