"""The initial states of a program: each combination of what its cells may begin with."""

from __future__ import annotations

from math import prod

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.layout import INITIAL_MAX
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.engines.search import Words
from epochgate.fsm.errors import DeclarationError


def initial_states(program: Program, system: str) -> list[Words]:
    """All of them, in the order of their fields, the last one fastest.

    Raises DeclarationError for none and for more than INITIAL_MAX.
    """
    count = prod(map(len, program.starts.values()))
    if count > INITIAL_MAX:
        raise DeclarationError(
            f"{system} has {count:,} combinations of what its fields may begin with, of "
            f"{INITIAL_MAX:,} at most: {', '.join(program.starts)}; let fewer of them begin with "
            f"several values, or choose some in a first step"
        )
    states = [program.initial]
    for name, bits in program.starts.items():
        cell = program.cells[name]
        word, first = cell.word, bits[0]
        added = [(one - first) << cell.shift for one in bits]
        states = [
            (*state[:word], state[word] + more, *state[word + 1 :])
            for state in states
            for more in added
        ]
    return _allowed(program, states, system) if program.start_conditions else states


def _allowed(program: Program, states: list[Words], system: str) -> list[Words]:
    """The states in which every start condition holds."""
    target = PythonTarget(program)
    conditions = program.start_conditions
    try:
        found = [s for s in states if all(target.holds(name, s) for name in conditions)]
    except StepFault as fault:
        about = program.faults[fault.number]
        raise DeclarationError(
            f"{about.file}:{about.line}: {about.message}, in an initial state of {system}"
        ) from None
    if not found:
        raise DeclarationError(
            f"{system} has no initial state: {' and '.join(conditions)} hold together in none of "
            f"{len(states):,}; weaken `initially`, or let fields begin with more values"
        )
    return found
