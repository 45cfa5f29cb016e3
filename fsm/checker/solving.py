"""The questions of an inductive check to the solver."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import z3
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.layout import Layout
from epochgate.fsm.checker.compiler.smt_target import SmtTarget, Term, Way, number
from epochgate.fsm.checker.engines.search import Words
from epochgate.fsm.checker.induction import Shown, Unsolved

INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class StepWays:
    """The ways through one step from the states that are assumed."""

    ways: list[Way]
    faults: set[int]


class Solving:
    """The solver over the typed states in which the claims hold."""

    def __init__(
        self, program: Program, layout: Layout, claims: list[str], deadline_s: float | None
    ) -> None:
        self.program, self.layout = program, layout
        self.target = SmtTarget(program, layout)
        self.typed = self.target.typed()
        self.claims = {name: self.target.holds(name) for name in claims}
        self.deadline_s = deadline_s
        self._steps: list[StepWays] = []

    # Questions

    def _solver(self, *assumed: Term) -> Any:
        solver = z3.SolverFor("QF_BV")
        solver.add(*self.typed, *assumed)
        return solver

    def _is_possible(self, solver: Any, *conditions: Term) -> bool:
        """Return whether a state fulfils what is asserted and the conditions; raises Unsolved."""
        if self.deadline_s is not None:
            left_s = self.deadline_s - time.perf_counter()
            if left_s <= 0:
                raise Unsolved("the budget of time is used up")
            solver.set("timeout", max(1, int(left_s * 1000)))
        answer = solver.check(*conditions)
        if answer == z3.unknown:
            reason = solver.reason_unknown()
            if INTERRUPTED in reason:
                raise KeyboardInterrupt
            if self.deadline_s is not None and reason in ("timeout", "canceled"):
                raise Unsolved("the budget of time is used up")
            raise Unsolved(f"the solver gives no answer: {reason}")
        return bool(answer == z3.sat)

    def is_satisfiable(self, premise: str = "") -> bool:
        """Return whether the claims, and the premise, hold together in a typed state."""
        conditions = [self.target.holds(premise)] if premise else []
        return self._is_possible(self._solver(*self.claims.values()), *conditions)

    def is_trivial(self, name: str) -> bool:
        """Return whether a claim holds in every typed state."""
        return not self._is_possible(self._solver(), z3.Not(self.claims[name]))

    # Steps

    def step(self, position: int, shown: Shown) -> StepWays:
        """Every way through a step from the states in which the claims hold."""
        solver = self._solver(*self.claims.values())
        ways = self.target.ways(position, lambda c: self._is_possible(solver, *c))
        # A solver that was asked nothing before is faster with what is hard to tell.
        ways = [
            way
            for way in ways
            if way.fault is None
            or self._is_possible(self._solver(*self.claims.values(), *way.conditions))
        ]
        for way in ways:
            if way.fault is None:
                self._cover(solver, way, shown.taken)
        found = StepWays(ways, {way.fault for way in ways if way.fault is not None})
        shown.ways += len(ways)
        self._steps.append(found)
        return found

    def _cover(self, solver: Any, way: Way, taken: set[int]) -> None:
        """Add the rows that the way can take, in the states in which it can."""
        for condition, row, state in way.covers:
            place = number(state) + row
            known = taken if not isinstance(state, int) else taken & {row + state}
            new = z3.And(condition, *(place != one for one in known if one >= row))
            while self._is_possible(solver, *way.conditions, new):
                found = int(solver.model().eval(place, True).as_long())
                taken.add(found)
                new = z3.And(new, place != found)

    def counterexample(self, position: int, depth: int, failing: set[int]) -> list[Words] | None:
        """States in a row in which the claims hold, from the last of which the step breaks one, or
        ends in one of the `failing` faults.
        """
        chain = [self.target.variables]
        assumed = [*self.claims.values()]
        for distance in range(1, depth):
            before, leading = self._before(chain[0], distance)
            chain.insert(0, before)
            assumed += leading
        for one in range(depth):
            for other in range(one):
                pairs = zip(chain[one].values(), chain[other].values(), strict=True)
                assumed.append(z3.Or(*(a != b for a, b in pairs)))
        for way in self._steps[position].ways:
            broken = self._broken(way, failing)
            if broken is None:
                continue
            solver = self._solver(*assumed, *way.conditions, broken)
            if self._is_possible(solver):
                self._simplify(solver, chain[0])
                model = solver.model()
                return [self._words(model, variables) for variables in chain]
        return None

    def _broken(self, way: Way, failing: set[int]) -> Term | None:
        """Return the condition under which the state after a way breaks a claim; None where it
        cannot.
        """
        if way.fault is not None:
            return z3.BoolVal(True) if way.fault in failing else None
        variables = self.target.variables
        changed = [
            (variables[name], value)
            for name, value in way.cells.items()
            if value is not variables[name]
        ]
        if not changed:
            return None
        return z3.Not(z3.And(*(z3.substitute(c, *changed) for c in self.claims.values())))

    def _before(self, after: dict[str, Term], distance: int) -> tuple[dict[str, Term], list[Term]]:
        """Variables of a state before `after`, and that a step leads from the one to the other."""
        variables = self.target.variables
        before = {
            name: z3.BitVec(f"{name} {distance} before", variable.size())
            for name, variable in variables.items()
        }
        renaming = [(variables[name], variable) for name, variable in before.items()]
        renaming += [
            (choice, z3.BitVec(f"{choice} {distance} before", choice.size()))
            for choice in self.target.choices
        ]
        leading = [z3.substitute(one, *renaming) for one in (*self.typed, *self.claims.values())]
        taken = []
        for way in (way for step in self._steps for way in step.ways if way.fault is None):
            ends = (z3.substitute(way.cells[name], *renaming) for name in variables)
            made = (one == end for one, end in zip(after.values(), ends, strict=True))
            conditions = (z3.substitute(c, *renaming) for c in way.conditions)
            taken.append(z3.And(*conditions, *made))
        return before, [*leading, z3.Or(*taken)]

    # States

    def _simplify(self, solver: Any, variables: dict[str, Term]) -> None:
        """Assert of a state what is as at the start wherever it can be, and small elsewhere."""
        start = self.layout.initial
        others = []
        for name, variable in variables.items():
            if self._is_possible(solver, variable == start[name]):
                solver.add(variable == start[name])
            else:
                others.append(variable)
        for variable in others:
            solver.add(variable == self._least(solver, variable))
        self._is_possible(solver)  # for the model

    def _least(self, solver: Any, variable: Term) -> int:
        """The least value that the variable can have."""
        self._is_possible(solver)
        least, most = 0, int(solver.model().eval(variable, True).as_long())
        while least < most:
            middle = (least + most) // 2
            if self._is_possible(solver, z3.ULE(variable, middle)):
                most = middle
            else:
                least = middle + 1
        return most

    def _words(self, model: Any, variables: dict[str, Term]) -> Words:
        values = {n: model.eval(variable, True).as_long() for n, variable in variables.items()}
        return self.layout.pack(values)
