"""The choices of one way to take a step, in machine code: `epochgate.fsm.choosing.Tape`.

Translated by `epochgate.fsm.checker.compiler.kernel`. A tape holds how many choices the step has
made, how many are known, the position of each, and how many there were to choose from.
"""

from __future__ import annotations

from typing import Any

from epochgate.fsm.choosing import CHOICES_MAX

Words = Any


def choose(tape: Words, count: int) -> int:
    """The next choice; -1 if there are too many."""
    at = tape[0]
    if at == CHOICES_MAX:
        return -1
    if at == tape[1]:
        tape[2 + at] = 0
        tape[1] = at + 1
    tape[2 + CHOICES_MAX + at] = count
    tape[0] = at + 1
    return tape[2 + at]  # type: ignore[no-any-return]  # elements of Words are Any


def advance(tape: Words) -> int:
    """Go over to the beginning of the next way; 0 if there is none."""
    height = tape[0]
    while height > 0:
        if tape[1 + height] + 1 < tape[1 + CHOICES_MAX + height]:
            tape[1 + height] = tape[1 + height] + 1
            tape[1] = height
            tape[0] = 0
            return 1
        height = height - 1
    return 0
