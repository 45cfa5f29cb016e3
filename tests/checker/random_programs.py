"""Small programs in the intermediate form, made up by Hypothesis, and everything that can happen in
one, with and without partial-order reduction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from epochgate.fsm.checker.compiler.ir import (
    Assign,
    Call,
    Cell,
    Cover,
    Expr,
    Fail,
    Fault,
    Function,
    If,
    Load,
    Local,
    Not,
    Op,
    Post,
    Program,
    Run,
    StepCode,
    Stmt,
    Store,
    fold,
)
from epochgate.fsm.checker.compiler.layout import FifoCells
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.reduction.chooser import Chooser
from epochgate.fsm.claims import Property

Words = tuple[int, ...]
COVERS, FAULTS = 12, 6
CAPACITY = 2
CHANNEL = FifoCells("wire", "wire.length", "wire.items", 1, 1, CAPACITY)
LENGTH, ITEMS = Load("wire.length"), Load("wire.items")


def program_cells(spans: list[int]) -> dict[str, Cell]:
    """Cells of these spans, and a channel, in one word."""
    wanted = {f"m{n}.state": span for n, span in enumerate(spans)}
    wanted |= {"wire.length": CAPACITY, "wire.items": (1 << CAPACITY) - 1}
    cells, shift = {}, 0
    for name, span in wanted.items():
        cells[name] = Cell(name, span.bit_length(), span, shift=shift)
        shift += span.bit_length()
    return cells


@st.composite
def comparisons(draw: Any, cells: dict[str, Cell]) -> Expr:
    """A condition on one cell, or on two."""
    name = draw(st.sampled_from([n for n in cells if n != "wire.items"]))
    operator = draw(st.sampled_from(("==", "!=", "<", ">=")))
    other: Expr = draw(st.integers(0, cells[name].span))
    if draw(st.integers(0, 4)) == 0:
        other = Load(draw(st.sampled_from([n for n in cells if n != "wire.items"])))
    found: Expr = Op(operator, Load(name), other)
    return Not(found) if draw(st.booleans()) else found


@st.composite
def conditions(draw: Any, cells: dict[str, Cell]) -> Expr:
    """Some of them joined."""
    found: Expr = draw(comparisons(cells))
    for _ in range(draw(st.integers(0, 2))):
        found = Op(draw(st.sampled_from(("and", "and", "or"))), found, draw(comparisons(cells)))
    return found


@st.composite
def pushes(draw: Any, cells: dict[str, Cell]) -> list[Stmt]:
    """As the compiler writes it; what is pushed may be read from a cell."""
    name = draw(st.sampled_from([n for n, cell in cells.items() if cell.span == 1] or ["none"]))
    item = draw(st.sampled_from((0, 1, Load(name) if name in cells else 1)))
    return [
        If(fold("==", LENGTH, CAPACITY), (Fail(0),)),
        Store("wire.items", fold("|", ITEMS, fold("<<", item, LENGTH))),
        Store("wire.length", fold("+", LENGTH, 1)),
    ]


@st.composite
def pops(draw: Any, cells: dict[str, Cell]) -> list[Stmt]:
    """As the compiler writes it; the item may go into a cell."""
    name = draw(st.sampled_from([n for n in cells if not n.startswith("wire")]))
    is_kept = draw(st.booleans())
    return [
        If(fold("==", LENGTH, 0), (Fail(1),)),
        Assign("head", fold("&", ITEMS, 1)),
        Store("wire.items", fold(">>", ITEMS, 1)),
        Store("wire.length", fold("-", LENGTH, 1)),
        *([Store(name, Local("head"))] if is_kept else []),
    ]


@st.composite
def statements(draw: Any, cells: dict[str, Cell], deep: int = 1) -> list[Stmt]:
    """A few statements."""
    found: list[Stmt] = []
    names = [n for n in cells if not n.startswith("wire")]
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(("set", "set", "count", "copy", "push", "pop", "if", "fail")))
        name = draw(st.sampled_from(names))
        span = cells[name].span
        if kind == "set":
            found.append(Store(name, draw(st.integers(0, span))))
        elif kind == "count":
            found.append(Store(name, Op("%", Op("+", Load(name), 1), span + 1)))
        elif kind == "copy":
            found.append(Store(name, Op("%", Load(draw(st.sampled_from(names))), span + 1)))
        elif kind == "push":
            found += draw(pushes(cells))
        elif kind == "pop":
            found += draw(pops(cells))
        elif kind == "if" and deep:
            then, otherwise = (draw(statements(cells, 0)) for _ in range(2))
            found.append(If(draw(conditions(cells)), tuple(then), tuple(otherwise)))
        elif kind == "fail":
            fault = Fail(draw(st.integers(2, FAULTS - 1)))
            found.append(If(draw(conditions(cells)), (fault,)))
        found.append(Cover(draw(st.integers(0, COVERS - 4)), Load(name)))
    return found


@st.composite
def programs(draw: Any) -> Program:
    """A program of a few steps; each prefers a cell of its own, so that some do not meet."""
    cells = program_cells(draw(st.lists(st.integers(1, 3), min_size=3, max_size=5)))
    functions: dict[str, Function] = {}
    steps = []
    for number in range(draw(st.integers(2, 5))):
        own = f"m{number % (len(cells) - 2)}.state"
        narrow = {own: cells[own]}
        if draw(st.booleans()):
            narrow |= {n: c for n, c in cells.items() if n.startswith("wire")}
        seen = draw(st.sampled_from((narrow, narrow, cells)))
        at = draw(st.integers(0, cells[own].span))
        guard: Expr = Op("==", Load(own), at)
        if draw(st.booleans()):
            guard = Op("and", guard, draw(conditions(seen)))
        body = [Store(own, draw(st.integers(0, cells[own].span))), *draw(statements(seen))]
        enabled, step, inner = f"{number}?", f"{number}", f"{number} inner"
        functions[enabled] = Function(enabled, (), (), guard)
        kind = draw(st.sampled_from(("plain", "called", "posted")))
        if kind != "plain":
            functions[inner] = Function(inner, (), tuple(draw(statements(seen))))
            body.append(Call(inner, ()) if kind == "called" else Post("events", inner, ()))
        taken = f"{number} taken"
        functions[taken] = Function(taken, (), tuple(body))
        functions[step] = Function(step, (), (Run(taken),))
        steps.append(StepCode("m", (number,), "go", enabled, step))
    properties = {}
    for name in ("never", "ever"):
        functions[name] = Function(name, (), (), draw(conditions(cells)))
        properties[name] = name
    packed = sum(draw(st.integers(0, c.span)) << c.shift for n, c in cells.items() if n[0] == "m")
    faults = [Fault("assertion", str(n), "", 0) for n in range(FAULTS)]
    posted = [n for n in functions if n.endswith("inner")]
    return Program(
        cells=cells, words=1, functions=functions, steps=steps, posted=posted, calls_max=9,
        endless=0, properties=properties, faults=faults, rows=[], covers=COVERS, initial=(packed,),
    )  # fmt: skip


PROPERTIES = (Property("always", "never", "never"), Property("sometimes", "ever", "ever"))


@dataclass
class Happening:
    """Everything that is found, whatever the order."""

    states: set[Words] = field(default_factory=set)
    terminal: set[Words] = field(default_factory=set)
    faults: set[int] = field(default_factory=set)
    covered: set[int] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    """The claims that are broken, or that something is like."""


def happening(program: Program) -> Happening:
    """Search, and go on behind faults: a step that fails leads nowhere."""
    target = PythonTarget(program)
    chooser = None if program.reduction is None else Chooser(program)
    found = Happening(states={program.initial})
    frontier = [program.initial]
    while frontier:
        state = frontier.pop()
        for declared in PROPERTIES:
            if target.holds(declared.name, state) == (declared.kind == "sometimes"):
                found.told.add(declared.name)
        enabled = target.enabled(state)
        if not enabled:
            found.terminal.add(state)
        steps, after = [], []
        for step in enabled:
            try:
                after.append(target.take(state, step))
                steps.append(step)
            except StepFault as fault:
                found.faults.add(fault.number)
        kept = range(len(steps)) if chooser is None else chooser.chosen(state, steps, after)
        new = {after[place] for place in kept} - found.states
        found.states |= new
        frontier += new
    found.covered = set(target.covered)
    return found
