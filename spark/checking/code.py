"""The machine code of a search over partitions, and what it is made from.

A program travels to the tasks as text: LLVM's, which each host compiles for its own processor, and
keeps in the cache of machine code. Nothing of a model is imported there. The driver writes the
text, and needs no compiler for it.
"""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import dataclass

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.llvm_target import module_text
from epochgate.fsm.checker.engines import partition_kernels as k, store_kernels as s
from epochgate.fsm.checker.engines.functions import sizes

WORD_BYTES = 8


@dataclass(frozen=True)
class Code:
    """A program as tasks know it."""

    text: str
    words: int
    fanout: int
    covers: int
    used_bits: int
    initial: tuple[int, ...]

    @property
    def state_bytes(self) -> int:
        return self.words * WORD_BYTES


def code_of(program: Program, final: str | None) -> Code:
    """The code of a program; `final` names the property of states in which it may end."""
    constants, reducing = sizes(program, 1)
    text = module_text(program, k.KERNELS, k.INLINED, k.CONSTANTS | constants, final, reducing)
    shape = program.words, program.fanout, program.covers, program.used_bits
    return Code(text, *shape, program.initial)


class Compiled:
    """The functions of `partition_kernels`, compiled for a program on this machine."""

    is_optimised = True

    def __init__(self, text: str) -> None:
        from epochgate.fsm.checker.compiler import machine_code as made

        key = hashlib.sha256(text.encode()).hexdigest()
        self.code = made.kept(key, made.OPTIMISED) or made.compiled(key, made.OPTIMISED, text)
        p, i = ctypes.c_void_p, ctypes.c_int64
        self.spread = self.code.function("spread", *[p] * 10, i, p, i, p, p, i, i, p, i, p)


def owner(words: tuple[int, ...], parts: int) -> int:
    """The partition that a state belongs to, as `partition_kernels.mix` has it."""
    bits, h = (1 << 64) - 1, 0
    for word in words:
        h = ((h ^ word) * s.ONCE) & bits
        h ^= h >> 32
    h = (h * s.TWICE) & bits
    h ^= h >> 29
    return ((h & s.LOW) * parts) >> 32
