"""What a search in machine code calls, and the buffers of each of its threads."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.llvm_target import LlvmTarget
from epochgate.fsm.checker.engines import kernels as k
from epochgate.fsm.checker.engines.graph_kernels import GRAPHS
from epochgate.fsm.checker.engines.search import Span

if TYPE_CHECKING:
    from epochgate.fsm.checker.compiler.machine_code import MachineCode


def compiled_target(
    program: Program, final: str | None, workers: int, *, is_quick: bool = True
) -> LlvmTarget:
    """Machine code of a program with the kernels, from the cache if it is there."""
    blocks, first, width = program.blocks
    constants = {
        **k.CONSTANTS,
        "W": program.words,
        "PARALLEL": int(workers > 1),
        "BLOCKS": blocks,
        "FIRST": first,
        "WIDTH": width,
    }
    kernels = (*k.SEARCHES, *GRAPHS)
    return LlvmTarget(program, kernels, k.INLINED, constants, final, is_quick=is_quick)


class Functions:
    """The kernels of a target as callables."""

    def __init__(self, code: MachineCode) -> None:
        p, i = ctypes.c_void_p, ctypes.c_int64
        function = code.function
        self.double = function("double", p, i, i, p, i, i)
        self.refill = function("refill", p, i, i, p, i, i)
        self.search = function("search", *[p] * 9, i)
        self.descend = function("descend", *[p] * 8, i)
        self.scan = function("scan", p, i, i, i, p, p, p)
        self.link = function("link", *[p] * 5, i, i, *[p] * 3, i, p)
        self.mark = function("mark", p, i, i, p, p, p)
        self.components = function("components", i, *[p] * 9)
        self.walks = function("walks", p, *[i] * 4, *[p] * 5, i, *[p] * 3, i, i, p)


class Worker:
    """The buffers of one thread, and where it puts new states."""

    def __init__(self, program: Program) -> None:
        room = k.BATCH + program.fanout
        self.status = np.zeros(k.STATUS_WORDS, np.int64)
        self.status[[k.FAULT, k.STEP, k.SPARE]] = -1
        self.out = np.empty((room, program.words), np.int64)
        self.act = np.empty(room, np.uint16)
        self.source = np.empty(room, np.int64)
        self.hashes = np.empty(room, np.int64)
        self.covered = np.zeros(program.covers + 1, np.uint8)
        self.begin = 0
        """The first state of the level that is being made, in the present chunk."""
        self.spans: list[Span] = []
        """States of the level in chunks that are full."""

    def __getitem__(self, place: int) -> int:
        return int(self.status[place])

    def close_level(self) -> list[Span]:
        """The spans of the states that were added since the last call."""
        end = self[k.NEXT]
        spans = [*self.spans, *([(self.begin, end)] if end > self.begin else [])]
        self.begin, self.spans = end, []
        return spans


def address(array: Any) -> int:
    """Where an array lies."""
    return int(array.ctypes.data)
