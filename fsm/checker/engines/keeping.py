"""The states of a search in machine code: their keys, words and pairs, and how these may grow."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.llvm_target import LlvmTarget
from epochgate.fsm.checker.engines import kernels as k, store_kernels as s
from epochgate.fsm.checker.engines.functions import Functions, Worker, address
from epochgate.fsm.checker.engines.memory import Region
from epochgate.fsm.checker.engines.plan import parts_for, plan
from epochgate.fsm.checker.engines.replanning import TooManyNumbers, replan
from epochgate.fsm.checker.engines.search import Level, Search, Stopped, Words
from epochgate.fsm.checker.engines.store import (
    BITS_MIN,
    NoRoom,
    Table,
    Values,
    slots_to_begin_with,
)
from epochgate.fsm.checker.engines.ways import levels_before, way_to

PLANNED_FROM = 1 << 17
"""States with which a plan that was made for fewer is made again."""


class Keeping(Search):
    """A state's id is its key; `memory_max` is in bytes."""

    def __init__(self, program: Program, target: LlvmTarget, workers: int, memory_max: int) -> None:
        self.program, self.kernels = program, Functions(target.code)
        self.memory_max = memory_max
        self.fanout = program.fanout
        self.numbers_of_a_state = self.fanout * 2 * program.words
        """As many words and pairs can be new at most."""
        self.key_bits = 0
        if program.words == 1:
            self.key_bits = max(BITS_MIN, program.used_bits)
        parts = parts_for(program.words, 32 * workers * self.numbers_of_a_state)
        first = plan(program.words, parts, np.array([program.initial]))
        self.values = Values(self.numbers_of_a_state, workers, memory_max, first)
        self.former: Values | None = None
        """Words and pairs by the plan before, while states get other keys."""
        self._planned_for = 1
        """How many states were known when the plan was made."""
        slots = slots_to_begin_with(memory_max // workers)
        self.tables = [Table(self.key_bits, first, slots) for _ in range(workers)]
        self.workers = [Worker(program, workers, memory_max) for _ in range(workers)]
        self.expanding: Level = []
        self.stack: Region | None = None
        self.listed = 0
        """Keys in the level that is expanded, in the one that is made, and on the stack."""
        self.depth = 0
        self.first: Any = None
        self.sought: list[Any] = []
        """Keys by which a way is sought."""
        self._growing = threading.Lock()

    @property
    def is_parallel(self) -> bool:
        return len(self.workers) > 1

    @property
    def states(self) -> int:
        return sum(table.count for table in self.tables)

    @property
    def memory_bytes(self) -> int:
        tables = sum(table.bytes for table in self.tables)
        boxes = sum(8 * len(worker.boxes.array) for worker in self.workers)
        values = self.values.bytes + (self.former.bytes if self.former is not None else 0)
        return tables + boxes + values + 8 * self.listed

    def out_of_memory(self) -> Stopped:
        return Stopped(
            f"the memory budget of {self.memory_max >> 20} MiB is used up: no room for more than "
            f"{self.states:,} states and their table"
        )

    @property
    def spare_bytes(self) -> int:
        return max(0, self.memory_max - self.memory_bytes)

    def have_numbers(
        self, worker: Worker, needed: int = 0, *, spare_bytes: int | None = None
    ) -> None:
        """Give a worker numbers for new words and pairs, while all others rest."""
        spare = self.spare_bytes if spare_bytes is None else spare_bytes
        try:
            wanted = self.values.lacks(worker, needed or self.numbers_of_a_state)
            if wanted and self.values.allocated + wanted > self.values.plan.numbers_max:
                if self.former is not None:
                    raise TooManyNumbers
                replan(self)
                wanted = self.values.lacks(worker, needed or self.numbers_of_a_state)
            if wanted:
                self.values.give(worker, self.kernels, spare, wanted)
            for each in self.workers:
                self.values.tell(each)
            if self.former is None:
                for table in self.tables:
                    table.hold_numbers(self.values.allocated, self.kernels)
        except NoRoom:
            raise self.out_of_memory() from None

    def hold_level(self, level: int) -> None:
        try:
            for table in self.tables:
                table.hold_level(level, self.kernels)
        except NoRoom:
            raise self.out_of_memory() from None

    def grow(self, table: Table) -> None:
        # What one table may still take depends on what the others have.
        try:
            with self._growing:
                slots = table.wider(self.spare_bytes)
            table.grow(self.kernels, slots)
        except NoRoom:
            raise self.out_of_memory() from None

    def live(self) -> Iterator[Any]:
        """The keys that are kept beside the tables, as arrays."""
        yield from self.expanding
        for worker in self.workers:
            yield from worker.listed()
        if self.stack is not None:
            yield self.stack.array[: self.workers[0][k.STACK]]
        if self.first is not None:
            yield self.first
        yield from self.sought

    def plan_better(self) -> None:
        """Choose the pairs once more when enough states are known to choose by."""
        if self._planned_for < PLANNED_FROM <= self.states:
            self._planned_for = self.states
            if self.values.plan.pairs:
                try:
                    replan(self)
                except NoRoom:
                    raise self.out_of_memory() from None

    @property
    def initial(self) -> list[int]:
        return [] if self.first is None else [int(key) for key in self.first]

    def words(self, state: int) -> Words:
        return tuple(int(word) for word in self.spelled(np.array([state], np.int64)))

    def spelled(self, keys: Any, values: Values | None = None) -> Any:
        """The words of states, one behind the other; `values` are those of another plan."""
        packed = np.empty(len(keys) * self.program.words, np.int64)
        scratch = np.zeros(2 * self.program.words, np.int64)
        self.kernels.spell(
            keys.ctypes.data,
            0,
            len(keys),
            *(values or self.values).arguments,
            scratch.ctypes.data,
            packed.ctypes.data,
        )
        return packed

    def chain(self, state: int) -> list[int]:
        return way_to(self, state)

    def levels_before(self, state: int) -> Iterator[Iterable[Any]]:
        """The states of each level below that of a state, in arrays, from the highest level on."""
        return levels_before(self, state)

    def covered(self) -> set[int]:
        rows = np.bitwise_or.reduce([worker.covered for worker in self.workers])
        return {int(row) for row in np.flatnonzero(rows)}

    def admitted(self, words: Any) -> Any:
        """The keys of at most ADMITTED_MAX packed states."""
        worker, count = self.workers[0], len(words) // self.program.words
        keys = np.empty(count, np.int64)
        self.have_numbers(worker, count * 2 * self.program.words)
        self.kernels.admit(
            words.ctypes.data,
            0,
            count,
            *self.values.arguments,
            self.values.slots.address,
            worker.at["status"],
            worker.at["scratch"],
            keys.ctypes.data,
        )
        return keys

    def owners(self, keys: Any) -> Any:
        """The number of the table of each key, as `gather` has it."""
        mixed = keys.astype(np.uint64)
        mixed = (mixed * np.uint64(s.ONCE)) ^ (mixed >> np.uint64(32))
        return ((mixed & np.uint64(s.LOW)) * np.uint64(len(self.tables))) >> np.uint64(32)

    def gather(
        self, worker: Worker, part: Any, *, are_all: bool = False, boxes: int | None = None
    ) -> int:
        """Put the successors of a part of a level into boxes, all or those that were not put there
        lately; returns why it has ended.
        """
        return self.kernels.gather(
            *self.expanding_with(worker, part),
            are_all,
            worker.boxes.address,
            worker.box,
            worker.at["filled"],
            len(self.workers) if boxes is None else boxes,
            self.fanout,
            worker.at["covered"],
        )

    def expanding_with(self, worker: Worker, part: Any) -> tuple[Any, ...]:
        """The first arguments of kernels that expand a part of a level."""
        at = worker.at
        return (
            address(part),
            *self.values.arguments,
            self.values.slots.address,
            *(at[name] for name in ("status", "scratch", "out", "act", "recent")),
        )

    def enter(self, worker: Worker, keys: int, end: int) -> None:
        table, at, first = self.tables[self.workers.index(worker)], worker.at, 0
        while first < end:
            if table.room < k.BATCH:
                self.grow(table)
            worker.make_room(end - first)
            before = worker[k.NEXT]
            worker.status[k.ROOM] = table.room
            first = self.kernels.receive(
                keys,
                first,
                end,
                self.depth,
                *table.arguments,
                at["status"],
                at["mixed"],
                worker.block.address,
            )
            table.count += worker[k.NEXT] - before
            if first < end:
                self.grow(table)
