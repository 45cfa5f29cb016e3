"""The plain-Python target: one generated module of functions over a list of words.

It needs the standard library only. All text in it comes from the intermediate form; names of the
user's program never reach it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from epochgate.fsm.checker.compiler.ir import (
    QUEUES,
    Assign,
    Call,
    Choose,
    Close,
    Cover,
    Expr,
    Fail,
    If,
    Load,
    Local,
    Not,
    Op,
    Post,
    Program,
    Run,
    Select,
    Stmt,
    Store,
    fold,
)
from epochgate.fsm.choosing import WAYS_MAX, Choices, Tape, TooManyChoices, WayClosed

Words = tuple[int, ...]

RUN = """
triggers, effects, events = QUEUES = deque(), deque(), deque()
room = [0, 0, 0]
def post(number, function, *arguments):
    if not room[number]:
        raise StepFault(ENDLESS)
    room[number] -= 1
    QUEUES[number].append((function, arguments))
def run(t, first):
    if triggers or effects or events:  # what a fault has left behind
        triggers.clear()
        effects.clear()
        events.clear()
    room[0] = room[1] = room[2] = CALLS_MAX
    first(t)
    while queue := triggers or effects or events:
        function, arguments = queue.popleft()
        function(t, *arguments)
"""


class StepFault(Exception):
    """A step reached a fault; `number` is its place in the program's list."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def each_way(
    program: Program, tape: Tape, take: Callable[[], Words]
) -> Iterator[tuple[Choices, Words | StepFault]]:
    """Take a step in every way, with the choices of each, and the state after it or its fault."""
    tape.begin()
    for _ in range(WAYS_MAX):
        try:
            after = take()
            yield tuple(tape.positions), after
        except StepFault as fault:
            yield tuple(tape.positions), fault
        except WayClosed:
            pass
        except TooManyChoices:
            break
        if not tape.advance():
            return
    yield (), StepFault(program.crowded)


def until_fault(
    ways: Iterable[tuple[Choices, Words | StepFault]],
) -> Iterator[tuple[Choices, Words]]:
    """Return the ways up to the first one that fails, whose fault is raised."""
    for choices, after in ways:
        if isinstance(after, StepFault):
            raise after
        yield choices, after


class PythonTarget:
    """Successors and properties of packed states, in plain Python."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._names = {f: f"f{n}" for n, f in enumerate(program.functions)}
        self.source = self._module()
        self.covered: set[int] = set()
        self._tape = Tape()
        names: dict[str, Any] = {
            "StepFault": StepFault,
            "covered": self.covered,
            "deque": deque,
            "CALLS_MAX": program.calls_max,
            "ENDLESS": program.endless,
            "WayClosed": WayClosed,
            "choose": self._tape.choose,
        }
        # exec is safe here: `_module` wrote the text from a checked tree, with numbered names only;
        # no text of a user is in it.
        exec(compile(self.source, "<compiled system>", "exec"), names)  # noqa: S102  # see above
        self._enabled: Callable[[Words], list[int]] = names["enabled"]
        self._steps: list[Callable[[list[int]], None]] = names["STEPS"]
        self._properties: dict[str, Callable[[list[int]], int]] = names["PROPERTIES"]
        self._functions = names

    def enabled(self, state: Words) -> list[int]:
        """The numbers of the steps that are possible; raises StepFault if a guard fails."""
        return self._enabled(state)

    def take(self, state: Words, number: int) -> Words:
        """The state after one step; raises StepFault if it is a violation."""
        words = list(state)
        self._steps[number](words)
        return tuple(words)

    def chosen(self, number: int) -> Choices:
        """Return what the step of this number has chosen in the way that it was taken last."""
        return tuple(self._tape.positions) if self.program.steps[number].ways else ()

    def ways(self, state: Words, number: int) -> Iterator[tuple[Choices, Words]]:
        """Return what may be chosen in a step that is possible, and the state after it; raises
        StepFault as the first way does that is a violation.
        """
        if not self.program.steps[number].ways:
            yield (), self.take(state, number)
            return
        yield from until_fault(self._all_ways(state, number))

    def _all_ways(self, state: Words, number: int) -> Iterator[tuple[Choices, Words | StepFault]]:
        return each_way(self.program, self._tape, lambda: self.take(state, number))

    def outcomes(
        self, state: Words, *steps: int
    ) -> Iterator[tuple[int, Choices | None, Words | StepFault]]:
        """Return every way to take these steps, or all, in a state: the step, what was chosen (None
        if a guard fails), and the state after it or its fault. One that fails hinders no other.
        """
        for number in steps or range(len(self.program.steps)):
            enabled = self._functions[self._names[self.program.steps[number].enabled]]
            try:
                is_possible = enabled(list(state))
            except StepFault as fault:
                yield number, None, fault
                continue
            for choices, after in self._all_ways(state, number) if is_possible else ():
                yield number, choices, after

    def holds(self, name: str, state: Words) -> bool:
        """Return whether a property's method holds in a state; raises StepFault if it fails."""
        return bool(self._properties[name](list(state)))

    def value(self, function: str, state: Words) -> int:
        """The result of a function without parameters that changes nothing."""
        return int(self._functions[self._names[function]](state))

    def _module(self) -> str:
        lines = RUN.splitlines()
        for function in self.program.functions.values():
            head = ", ".join(("t", *(_local(p) for p in function.parameters)))
            lines.append(f"def {self._names[function.name]}({head}):")
            self._leave = "return" if function.result is None else "return v_result"
            body = self._block(function.body, 1)
            if function.result is not None:
                body = ["    v_result = 0", *body, f"    return {self._expr(function.result)}"]
            lines += body or ["    pass"]
        lines.append("def enabled(t):")
        lines.append("    found = []")
        for number, step in enumerate(self.program.steps):
            guard = self.program.functions[step.enabled]
            # Most guards are one expression; it is tested in place.
            test = f"{self._names[step.enabled]}(t)"
            if not guard.body and guard.result is not None:
                test = self._expr(guard.result)
            lines.append(f"    if {test}: found.append({number})")
        lines.append("    return found")
        steps = ", ".join(self._names[s.function] for s in self.program.steps)
        lines.append(f"STEPS = [{steps}]")
        asked = {**self.program.properties, **{f: f for f in self.program.start_conditions}}
        pairs = ", ".join(f"{n!r}: {self._names[f]}" for n, f in asked.items())
        lines.append(f"PROPERTIES = {{{pairs}}}")
        return "\n".join(lines)

    def _block(self, block: tuple[Stmt, ...], depth: int) -> list[str]:
        pad = "    " * depth
        lines: list[str] = []
        for stmt in block:
            if isinstance(stmt, If):
                lines.append(f"{pad}if {self._expr(stmt.condition)}:")
                lines += self._block(stmt.then, depth + 1) or [f"{pad}    pass"]
                if stmt.otherwise:
                    lines.append(f"{pad}else:")
                    lines += self._block(stmt.otherwise, depth + 1)
            else:
                lines.append(pad + self._line(stmt))
        return lines

    def _line(self, stmt: Stmt) -> str:
        if isinstance(stmt, Assign):
            return f"{_local(stmt.local)} = {self._expr(stmt.value)}"
        if isinstance(stmt, Store):
            return self._store(stmt)
        if isinstance(stmt, Call):
            args = ", ".join(("t", *map(self._expr, stmt.arguments)))
            target = "" if stmt.local is None else f"{_local(stmt.local)} = "
            return f"{target}{self._names[stmt.function]}({args})"
        if isinstance(stmt, Post):
            number = QUEUES.index(stmt.queue)
            posted = [str(number), self._names[stmt.function], *map(self._expr, stmt.arguments)]
            return f"post({', '.join(posted)})"
        if isinstance(stmt, Run):
            return f"run(t, {self._names[stmt.function]})"
        if isinstance(stmt, Fail):
            return f"raise StepFault({stmt.fault})"
        if isinstance(stmt, Cover):
            return f"covered.add({self._expr(fold('+', stmt.row, stmt.state))})"
        if isinstance(stmt, Choose):
            return f"{_local(stmt.local)} = choose({self._expr(stmt.count)})"
        return "raise WayClosed" if isinstance(stmt, Close) else self._leave

    def _store(self, stmt: Store) -> str:
        cell = self.program.cells[stmt.cell]
        if cell.bits == 0:
            return "pass"
        keep = ~(((1 << cell.bits) - 1) << cell.shift) & ((1 << 63) - 1)
        value = self._expr(stmt.value)
        return f"t[{cell.word}] = t[{cell.word}] & {keep} | ({value}) << {cell.shift}"

    def _expr(self, expr: Expr) -> str:
        if isinstance(expr, int):
            return str(expr)
        if isinstance(expr, Local):
            return _local(expr.name)
        if isinstance(expr, Load):
            cell = self.program.cells[expr.cell]
            if cell.bits == 0:
                return "0"
            return f"(t[{cell.word}] >> {cell.shift} & {(1 << cell.bits) - 1})"
        if isinstance(expr, Not):
            return f"(not {self._expr(expr.operand)})"
        if isinstance(expr, Select):
            chosen, otherwise = self._expr(expr.chosen), self._expr(expr.otherwise)
            return f"({chosen} if {self._expr(expr.condition)} else {otherwise})"
        assert isinstance(expr, Op)
        return f"({self._expr(expr.left)} {expr.operator} {self._expr(expr.right)})"


def _local(name: str) -> str:
    return f"v_{name}"
