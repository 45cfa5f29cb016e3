"""Search in machine code, by one thread or several, in a compressed store.

Each thread has a table of its own, for the states whose keys fall to it. A round has two halves:
first all gather successors of the level, each into one box for every thread; then each enters what
lies in the boxes for it. Only the words and pairs are shared. Which key a state has then depends on
the threads; which states there are does not.

No predecessors are kept: `ways` finds them by the levels of the states.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.llvm_target import LlvmTarget
from epochgate.fsm.checker.engines import kernels as k, store_kernels as s
from epochgate.fsm.checker.engines.functions import Functions, Worker
from epochgate.fsm.checker.engines.memory import Region
from epochgate.fsm.checker.engines.plan import parts_for, plan
from epochgate.fsm.checker.engines.replanning import TooManyNumbers, replan
from epochgate.fsm.checker.engines.search import (
    DEADLOCK,
    PROPERTY,
    Finding,
    Level,
    Pause,
    Search,
    Stopped,
    Words,
    distinct,
    size,
)
from epochgate.fsm.checker.engines.store import (
    BITS_MIN,
    NoRoom,
    Table,
    Values,
    slots_to_begin_with,
)
from epochgate.fsm.checker.engines.ways import way_to

if TYPE_CHECKING:
    from epochgate.fsm.checker.compiler.machine_code import Optimisation

PIECE = 1 << 17
"""States between two pauses of one thread."""
SHARED_PIECE = 1 << 12
"""States that a thread of several takes at a time."""
ALONE_MAX = 1 << 12
"""A level with fewer states is left to one thread."""
DESCENT = 1 << 17
"""New states between two pauses of a depth-first search."""
ADMITTED_MAX = 1 << 10
"""Saved states that are entered together."""
PLANNED_FROM = 1 << 17
"""States with which a plan that was made for fewer is made again."""


class CompiledSearch(Search):
    """A state's id is its key; `memory_max` is in bytes.

    A search of more than `optimise_from` states has optimised code made, and goes over to it.
    """

    def __init__(
        self,
        program: Program,
        target: LlvmTarget,
        workers: int,
        memory_max: int,
        optimise_from: int,
    ) -> None:
        self.program, self.kernels = program, Functions(target.code)
        self._target, self._optimise_from = target, optimise_from
        self._optimisation: Optimisation | None = None
        self._is_optimised = target.is_optimised
        self.memory_max = memory_max
        self.fanout = len(program.steps)
        self.numbers_of_a_state = self.fanout * 2 * program.words
        """As many words and pairs can be new at most."""
        self.key_bits = 0
        if program.words == 1:
            used = max((cell.shift + cell.bits for cell in program.cells.values()), default=0)
            self.key_bits = max(BITS_MIN, used)
        parts = parts_for(program.words, 32 * workers * self.numbers_of_a_state)
        first = plan(program.words, parts, np.array([program.initial]))
        self.values = Values(self.numbers_of_a_state, workers, memory_max, first)
        self.former: Values | None = None
        """Words and pairs by the plan before, while states get other keys."""
        self._planned_for = 1
        """How many states were known when the plan was made."""
        slots = slots_to_begin_with(memory_max // workers)
        self.tables = [Table(self.key_bits, first, slots) for _ in range(workers)]
        self.workers = [Worker(program, workers) for _ in range(workers)]
        self._expanding: Level = []
        self._stack: Region | None = None
        self._listed = 0
        """Keys in the level that is expanded, in the one that is made, and on the stack."""
        self._depth = 0
        self._executor = ThreadPoolExecutor(workers) if workers > 1 else None
        self._initial: Any = None
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
        return tables + boxes + self.values.bytes + 8 * self._listed

    # Growing

    def _out_of_memory(self) -> Stopped:
        return Stopped(
            f"the memory budget of {self.memory_max >> 20} MiB is used up: no room for more than "
            f"{self.states:,} states and their table"
        )

    @property
    def _spare_bytes(self) -> int:
        return max(0, self.memory_max - self.memory_bytes)

    def have_numbers(
        self, worker: Worker, needed: int = 0, *, spare_bytes: int | None = None
    ) -> None:
        """Give a worker numbers for new words and pairs, while all others rest."""
        spare = self._spare_bytes if spare_bytes is None else spare_bytes
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
            raise self._out_of_memory() from None

    def _hold_level(self, level: int) -> None:
        try:
            for table in self.tables:
                table.hold_level(level, self.kernels)
        except NoRoom:
            raise self._out_of_memory() from None

    def _grow(self, table: Table) -> None:
        # What one table may still take depends on what the others have.
        with self._growing:
            try:
                table.grow(self.kernels, self._spare_bytes)
            except NoRoom:
                raise self._out_of_memory() from None

    def live(self) -> Iterator[Any]:
        """The keys that are kept beside the tables, as arrays."""
        yield from self._expanding
        for worker in self.workers:
            yield from worker.listed()
        if self._stack is not None:
            yield self._stack.array[: self.workers[0][k.STACK]]
        if self._initial is not None:
            yield self._initial

    def _plan_better(self) -> None:
        """Choose the pairs once more when enough states are known to choose by."""
        if self._planned_for < PLANNED_FROM <= self.states:
            self._planned_for = self.states
            if self.values.plan.pairs:
                try:
                    replan(self)
                except NoRoom:
                    raise self._out_of_memory() from None

    # The code

    def _improve(self) -> None:
        """Have optimised code made once the search is large, and go over to it when it is done."""
        if self._is_optimised or self.states < self._optimise_from:
            return
        if self._optimisation is None:
            self._optimisation = self._target.optimise()
        elif self._optimisation.is_done:
            self._is_optimised = True
            if (code := self._optimisation.code()) is not None:
                self.kernels = Functions(code)

    def close(self) -> None:
        if self._optimisation is not None:
            self._optimisation.close()

    # The search

    def begin(self, initial: Iterable[Words]) -> Level:
        states = distinct(self.program, initial)
        return self.restore([np.array(states, np.int64).tobytes()], set())

    def expand(self, level: Level, pause: Pause) -> Finding | Level:
        states = size(level)
        is_shared = self.is_parallel and states > ALONE_MAX
        piece = SHARED_PIECE if is_shared else PIECE
        todo = deque(
            part[start : start + piece] for part in level for start in range(0, len(part), piece)
        )
        self._depth += 1
        self._hold_level(self._depth)
        self._expanding, known = level, self.states
        workers = self.workers if is_shared else self.workers[:1]
        while todo:
            pause()
            self._improve()
            self._plan_better()
            for worker in workers:
                self.have_numbers(worker)
            codes = self._each(is_shared, lambda worker: self._gathered(worker, todo), workers)
            self._each(is_shared, self._receive, self.workers)
            self._listed = states + self.states - known
            self._count_up()
            for worker, (code, state) in zip(workers, codes, strict=True):
                if (found := self._finding(worker, code, state)) is not None:
                    return found
        self._expanding = []
        self.expanded += states
        self._listed = self.states - known
        return self._close_level()

    def _each(
        self, is_shared: bool, work: Callable[[Worker], Any], workers: Sequence[Worker]
    ) -> list[Any]:
        """Do it with each worker, at the same time if that is worth it."""
        if is_shared and self._executor is not None:
            return list(self._executor.map(work, workers))
        return [work(worker) for worker in workers]

    def _close_level(self) -> Level:
        return [part for worker in self.workers for part in worker.close_level()]

    def _gathered(self, worker: Worker, todo: deque[Any]) -> tuple[int, int]:
        """Gather until a box is full or nothing is left; says why it has ended, and where."""
        code, at, values = k.DONE, worker.at, self.values
        while code == k.DONE:
            try:
                part = todo.popleft()
            except IndexError:
                return k.DONE, 0
            worker.status[[k.HEAD, k.END]] = 0, len(part)
            code = self.kernels.gather(
                part.ctypes.data,
                *values.arguments,
                values.slots.address,
                at["status"],
                at["scratch"],
                at["out"],
                at["act"],
                worker.boxes.address,
                at["filled"],
                len(self.workers),
                self.fanout,
                at["covered"],
            )
            head = worker[k.HEAD]
            if code in (k.FULL, k.NO_VALUES) and head < len(part):
                todo.appendleft(part[head:])
        return code, int(part[head]) if code in (k.VIOLATED, k.DEADLOCKED) else 0

    def _receive(self, worker: Worker) -> None:
        """Enter what lies in the boxes for this worker."""
        own = self.workers.index(worker)
        for sender in self.workers:
            end = int(sender.filled[own])
            if end:
                self._enter(worker, sender.boxes.address + 8 * own * sender.box, end)
                sender.filled[own] = 0

    def _enter(self, worker: Worker, keys: int, end: int) -> None:
        table, at, first = self.tables[self.workers.index(worker)], worker.at, 0
        while first < end:
            if table.room < k.BATCH:
                self._grow(table)
            worker.make_room(end - first)
            before = worker[k.NEXT]
            worker.status[k.ROOM] = table.room
            first = self.kernels.receive(
                keys,
                first,
                end,
                self._depth,
                *table.arguments,
                at["status"],
                at["mixed"],
                worker.block.address,
            )
            table.count += worker[k.NEXT] - before
            if first < end:
                self._grow(table)

    def _count_up(self) -> None:
        self.transitions = sum(worker[k.TRANSITIONS] for worker in self.workers)
        self.terminal_states = sum(worker[k.STUCK] for worker in self.workers)

    def _finding(self, worker: Worker, code: int, state: int) -> Finding | None:
        if code == k.VIOLATED:
            return Finding(state, worker[k.FAULT], worker[k.STEP])
        if code == k.DEADLOCKED:
            fault = worker[k.FAULT]
            return Finding(state, fault if fault >= 0 else DEADLOCK)
        return None

    def descend(self, pause: Pause) -> Finding | None:
        worker = self.workers[0]
        stack_max = self.memory_max // 8 + self.fanout + len(self.initial)
        stack = self._stack = Region(stack_max, np.int64)
        stack.array[: len(self.initial)] = self.initial
        worker.status[k.STACK] = len(self.initial)
        code = k.DONE
        while worker[k.STACK]:
            pause()
            self._improve()
            self._plan_better()
            self.have_numbers(worker)
            table = self.tables[0]
            if code == k.FULL:
                self._hold_level(
                    table.level(int(stack.array[worker[k.STACK] - 1]), self.kernels) + 1
                )
                if table.room < self.fanout or not worker[k.ROOM]:
                    self._grow(table)
            code = self._descended(worker, table, stack)
            self._listed = worker[k.STACK]
            self._count_up()
            if (found := self._finding(worker, code, worker[k.HEAD])) is not None:
                return found
        self._stack = None
        return None

    def everything(self) -> Iterator[Sequence[int]]:
        for table in self.tables:
            for keys, _ in table.collected(self.kernels, 0, table.level_max):
                yield keys

    def _descended(self, worker: Worker, table: Table, stack: Region) -> int:
        at, values = worker.at, self.values
        room = min(table.room, DESCENT + self.fanout)
        worker.status[[k.ROOM, k.NEXT]] = room, 0
        code = self.kernels.descend(
            *values.arguments,
            values.slots.address,
            *table.arguments,
            at["status"],
            at["scratch"],
            at["out"],
            at["act"],
            stack.address,
            len(stack.array),
            self.fanout,
            at["covered"],
        )
        table.count += worker[k.NEXT]
        worker.status[k.NEXT] = worker.begin
        return code

    def examine(self, level: Iterable[Any], demanded: int, pause: Pause) -> Finding | None:
        held, fault = np.zeros(2, np.int64), np.array([-1, 0, 0], np.int64)
        worker, covered = self.workers[0], np.zeros(self.program.covers + 1, np.uint8)
        for part in level:
            for start in range(0, len(part), PIECE):
                pause()
                stop = min(start + PIECE, len(part))
                state = self.kernels.scan(
                    part.ctypes.data,
                    start,
                    stop,
                    demanded,
                    *self.values.arguments,
                    worker.at["scratch"],
                    held.ctypes.data,
                    fault.ctypes.data,
                    covered.ctypes.data,
                )
                self.held |= int(held[0])
                if fault[0] >= 0:
                    return Finding(int(part[state]), int(fault[0]))
                if state < stop:
                    return Finding(int(part[state]), PROPERTY, held=int(held[1]))
        return None

    # Reading

    @property
    def initial(self) -> list[int]:
        return [] if self._initial is None else [int(key) for key in self._initial]

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

    def covered(self) -> set[int]:
        rows = np.bitwise_or.reduce([worker.covered for worker in self.workers])
        return {int(row) for row in np.flatnonzero(rows)}

    def recount(self, transitions: int, terminal_states: int, held: int) -> None:
        super().recount(transitions, terminal_states, held)
        self.workers[0].status[[k.TRANSITIONS, k.STUCK]] = transitions, terminal_states

    def saved(self, level: Level) -> Iterator[bytes]:
        for part in level:
            for start in range(0, len(part), PIECE):
                yield self.spelled(part[start : start + PIECE]).tobytes()

    def restore(self, states: Iterable[bytes], rows: set[int]) -> Level:
        self._depth += bool(self.states)
        self._hold_level(self._depth)
        known, width = self.states, self.program.words
        for packed in states:
            words = np.frombuffer(packed, np.int64)
            for first in range(0, len(words), ADMITTED_MAX * width):
                keys = self.admitted(words[first : first + ADMITTED_MAX * width])
                owners = self.owners(keys)
                for number, worker in enumerate(self.workers):
                    own = np.ascontiguousarray(keys[owners == number])
                    self._enter(worker, own.ctypes.data, len(own))
        self.workers[0].covered[[*rows]] = 1
        self._listed = self.states - known
        level = self._close_level()
        if not self._depth:
            self._initial = np.concatenate(level)
        return level

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
