"""The machine code of a search over partitions, and what it is made from.

A program travels to the tasks as text: LLVM's, which each host compiles for its own processor, and
keeps in the cache of machine code. Nothing of a model is imported there. The driver writes the
text, and needs no compiler for it.
"""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.llvm_target import module_text
from epochgate.fsm.checker.engines import partition_kernels as k

WORD_BYTES = 8


@dataclass(frozen=True)
class Code:
    """What tasks need to know of a program."""

    text: str
    words: int
    fanout: int
    covers: int

    @property
    def state_bytes(self) -> int:
        return self.words * WORD_BYTES


def code_of(program: Program, final: str | None) -> Code:
    """The code of a program; `final` names the property of states in which it may end."""
    blocks, first, width = program.blocks
    constants = {
        **k.CONSTANTS,
        "W": program.words,
        "BLOCKS": blocks,
        "FIRST": first,
        "WIDTH": width,
    }
    text = module_text(program, k.KERNELS, k.INLINED, constants, final)
    return Code(text, program.words, program.fanout, program.covers)


class Kernels:
    """The functions of `partition_kernels`, compiled for a program on this machine."""

    def __init__(self, text: str) -> None:
        from epochgate.fsm.checker.compiler import machine_code as made

        key = hashlib.sha256(text.encode()).hexdigest()
        code = made.kept(key, made.OPTIMISED) or made.compiled(key, made.OPTIMISED, text)
        p, i = ctypes.c_void_p, ctypes.c_int64
        self.index = code.function("index", p, i, i, p, i, i)
        self.widen = code.function("widen", p, i, p, i, i)
        self.spread = code.function("spread", *[p] * 11, i)
        self.take = code.function("take", *[p] * 5)
        self.look = code.function("look", p, i, i, i, p, p, p)
        self.precede_one = code.function("precede_one", p, i, *[p] * 5)


@lru_cache(1)
def kernels(text: str) -> Kernels:
    """The compiled functions; a process that runs many tasks compiles once."""
    return Kernels(text)


def address(array: Any) -> int:
    """Where an array lies."""
    return int(array.ctypes.data)


def owner(words: tuple[int, ...], parts: int) -> int:
    """The partition that a state belongs to, as `partition_kernels.mix` has it."""
    bits = (1 << 64) - 1
    h = 0x9E3779B97F4A7C15
    for word in words:
        h = ((h ^ word) * 0xFF51AFD7ED558CCD) & bits
        h ^= h >> 32
    h = (h * 0xC4CEB9FE1A85EC53) & bits
    h ^= h >> 29
    return ((h & k.LOW) * parts) >> 32
