"""The functions that a search in machine code calls, and the buffers of each of its threads."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.llvm_target import LlvmTarget
from epochgate.fsm.checker.engines import kernels as k, reduced
from epochgate.fsm.checker.engines.graph_kernels import GRAPHS
from epochgate.fsm.checker.engines.memory import Region

if TYPE_CHECKING:
    from epochgate.fsm.checker.compiler.machine_code import MachineCode


NO_KEY = -1
"""Keys are not negative."""
BLOCK = 1 << 16
"""Keys of a level that are kept together."""


BOX_MIN, BOX_MAX = 1 << 12, 1 << 16
"""Keys in a box: the more, the seldomer the tables drive all else out of the fast cache."""
BOXES_SHARE = 16
"""Boxes take no more than such a part of the memory, where they can be that small."""


def box_size(program: Program, workers: int, memory_max: int) -> int:
    """Return the size of a box in keys; those of one state fill no more than a quarter."""
    size = BOX_MAX
    while size > BOX_MIN and 8 * size * workers * workers * BOXES_SHARE > memory_max:
        size //= 2
    while size < 4 * program.fanout:
        size *= 2
    return size


def sizes(program: Program, workers: int) -> tuple[dict[str, int], tuple[Any, ...]]:
    """The constants of the kernels for a program, and the functions of its reduction, if any."""
    blocks, first, width = program.blocks
    constants = {
        **k.CONSTANTS,
        "W": program.words,
        "PARALLEL": int(workers > 1),
        "BLOCKS": blocks,
        "FIRST": first,
        "WIDTH": width,
    }
    if program.reduction is None:
        return constants, ()
    own = program.reduction.constants
    assert not own.keys() & constants.keys(), "two constants of kernels have one name"
    return {**constants, **own}, reduced.INLINED


def compiled_target(
    program: Program, final: str | None, workers: int, *, is_quick: bool = True
) -> LlvmTarget:
    """Machine code of a program with the kernels, from the cache if it is there."""
    constants, reducing = sizes(program, workers)
    kernels = (*k.SEARCHES, *GRAPHS)
    return LlvmTarget(
        program, kernels, k.INLINED, constants, final, reducing=reducing, is_quick=is_quick
    )


class Functions:
    """The kernels of a target as callables."""

    def __init__(self, code: MachineCode) -> None:
        p, i = ctypes.c_void_p, ctypes.c_int64
        function = code.function
        self.double = function("double", p, i, i, p, i, i)
        self.move = function("move", p, p, p, i, i, p, p, p)
        self.put = function("put", *[p] * 5, i)
        self.slot_of = function("slot_of", p, p, p, i)
        self.collect = function("collect", p, p, p, i, i, i, i, p, p)
        self.gather = function("gather", *[p] * 9, i, p, i, p, i, i, p)
        self.receive = function("receive", p, i, i, i, *[p] * 6)
        self.admit = function("admit", p, i, i, *[p] * 6)
        self.spell = function("spell", p, i, i, p, p, p, p)
        self.precede = function("precede", p, i, i, p, i, *[p] * 8, i, p)
        self.descend = function("descend", *[p] * 11, i, i, p)
        self.scan = function("scan", p, i, i, i, *[p] * 6)
        self.link = function("link", *[p] * 5, i, *[p] * 12)
        self.components = function("components", i, *[p] * 9)
        self.walks = function("walks", p, *[i] * 4, *[p] * 5, i, *[p] * 3, i, i, p)


class Worker:
    """The buffers of one thread, and the states of the next level that it has found."""

    def __init__(self, program: Program, workers: int = 1, memory_max: int = 0) -> None:
        fanout = program.fanout
        self.status = np.zeros(k.STATUS_WORDS, np.int64)
        self.status[[k.FAULT, k.STEP]] = -1
        self.scratch = np.zeros(5 * program.words, np.int64)
        self.out = np.empty((fanout + 1, program.words), np.int64)
        self.act = np.empty(fanout + 1, np.uint16)
        self.covered = np.zeros(program.covers + 1, np.uint8)
        self.mixed = np.empty(k.BATCH, np.int64)
        self.box = box_size(program, workers, memory_max)
        self.boxes = Region(workers * self.box, np.int64)
        self.filled = np.zeros(workers, np.int64)
        self.recent = np.full(1 << 64 - k.RECENT_SHIFT, NO_KEY, np.int64)
        self.at = {
            name: address(getattr(self, name))
            for name in ("status", "scratch", "out", "act", "covered", "mixed", "recent", "filled")
        }
        """Where the buffers lie."""
        self._block_size = max(BLOCK, 2 * self.box)
        self.block = Region(self._block_size, np.int64)
        """Keys of the next level are listed from `begin` on."""
        self.begin = 0
        self._parts: list[Any] = []

    def __getitem__(self, place: int) -> int:
        return int(self.status[place])

    def make_room(self, keys: int) -> None:
        """Have room in the block for this number of keys."""
        if self[k.NEXT] + keys > self._block_size:
            self._close_part()
            self.block = Region(self._block_size, np.int64)
            self.begin = self.status[k.NEXT] = 0

    def _close_part(self) -> None:
        if self[k.NEXT] > self.begin:
            self._parts.append(self.block.array[self.begin : self[k.NEXT]])
            self.begin = self[k.NEXT]

    def listed(self) -> list[Any]:
        """The keys that were listed for the next level."""
        return [*self._parts, self.block.array[self.begin : self[k.NEXT]]]

    def close_level(self) -> list[Any]:
        """The keys that were listed since the last call."""
        self._close_part()
        parts, self._parts = self._parts, []
        return parts


def address(array: Any) -> int:
    """Return the address of an array."""
    return int(array.ctypes.data)
