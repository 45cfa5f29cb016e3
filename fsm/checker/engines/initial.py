"""The initial states of a program: each combination of what its cells may begin with."""

from __future__ import annotations

from importlib.util import find_spec
from math import prod
from typing import Any, NoReturn

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.layout import INITIAL_MAX
from epochgate.fsm.checker.compiler.python_target import PythonTarget, StepFault
from epochgate.fsm.checker.engines.search import Words
from epochgate.fsm.errors import DeclarationError

FEW = 1 << 10
"""Combinations for which numpy is not imported."""
TOGETHER = 1 << 14


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
    if count > FEW and find_spec("numpy"):
        found = [
            state
            for first in range(0, count, TOGETHER)
            for state in _together(program, first, min(first + TOGETHER, count), system)
        ]
    else:
        found = _one_by_one(program, system)
    if not found:
        conditions = program.start_conditions
        raise DeclarationError(
            f"{system} has no initial state: {' and '.join(conditions)} hold together in none of "
            f"{count:,}; weaken `initially`, or let fields begin with more values"
        )
    return found


def _one_by_one(program: Program, system: str) -> list[Words]:
    """The states in which every start condition holds."""
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
    if not program.start_conditions:
        return states
    target = PythonTarget(program)
    try:
        return [s for s in states if all(target.holds(n, s) for n in program.start_conditions)]
    except StepFault as fault:
        _refuse(program, fault.number, system)


def _together(program: Program, first: int, end: int, system: str) -> Any:
    """The states with these numbers in which every start condition holds."""
    import numpy as np
    from epochgate.fsm.checker.compiler.vector_target import NO_FAULT, satisfying

    numbers = np.arange(first, end)
    words = [np.full(end - first, word) for word in program.initial]
    for name, bits in reversed(program.starts.items()):
        cell = program.cells[name]
        numbers, position = np.divmod(numbers, len(bits))
        words[cell.word] += (np.array(bits)[position] - bits[0]) << cell.shift
    allowed, fault = satisfying(program, words, program.start_conditions)
    if fault != NO_FAULT:
        _refuse(program, fault, system)
    return zip(*(word.tolist() for word in allowed), strict=True)


def _refuse(program: Program, fault: int, system: str) -> NoReturn:
    about = program.faults[fault]
    raise DeclarationError(
        f"{about.file}:{about.line}: {about.message}, in an initial state of {system}"
    )
