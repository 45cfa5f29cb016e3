"""Search in machine code, by one thread or several.

Several threads share the pool and the table without locks: a thread takes numbers for new states
from chunks of its own, and a slot of the table is claimed by one atomic operation. Which state gets
which number then depends on the threads; which states there are does not. The table grows while
they rest, between rounds.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.llvm_target import LlvmTarget
from epochgate.fsm.checker.engines import kernels as k
from epochgate.fsm.checker.engines.functions import Functions, Worker, address
from epochgate.fsm.checker.engines.memory import reserved
from epochgate.fsm.checker.engines.search import (
    DEADLOCK,
    PROPERTY,
    Finding,
    Pause,
    Search,
    Span,
    Stopped,
    Words,
    distinct,
)
from epochgate.fsm.checker.memory_limit import free_bytes

if TYPE_CHECKING:
    from epochgate.fsm.checker.compiler.machine_code import Optimisation

TABLE_BITS = 18
"""Of a table to begin with, unless the budget is small: one large page of memory."""
SHARED_SLOTS_MIN = 1 << 18
"""A table with fewer slots is doubled by one thread."""
PIECE = 1 << 17
"""States between two pauses of one thread."""
SHARED_PIECE = 1 << 13
"""States that a thread of several takes at a time."""
ALONE_MAX = 1 << 12
"""A level with fewer states is left to one thread."""
DESCENT = 1 << 17
"""New states between two pauses of a depth-first search."""
OPTIMISER_BYTES = 384 << 20
"""The compiler of optimised code is left out where less memory is free."""
STATES_MAX = (1 << 32) - 2
"""A slot has 32 bits for a state's number."""


class CompiledSearch(Search):
    """Keeps the states in one large array; `memory_max` is in bytes.

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
        self._memory_max = memory_max
        self._fanout = program.fanout
        self._chunk = 1 << 14
        while self._chunk < 2 * (k.BATCH + self._fanout):
            self._chunk *= 2
        state_bytes = program.words * 8 + 4
        self._limit = min(STATES_MAX, memory_max // state_bytes + 2 * workers * self._chunk)
        self.pool = reserved(self._limit * program.words, np.int64)
        self.parents = reserved(self._limit, np.uint32)
        self._bits = min(TABLE_BITS, max(12, (memory_max // 32).bit_length() - 1))
        self.table = reserved(1 << self._bits, np.uint64)
        self.workers = [Worker(program) for _ in range(workers)]
        self._is_tight = False
        """The table cannot grow any more within the budget, and is filled further than is fast."""
        self._allocated = 0
        self._chunks = itertools.count(0, self._chunk)
        self._count = 0
        self._executor = ThreadPoolExecutor(workers) if workers > 1 else None

    # Numbers of states

    @property
    def is_parallel(self) -> bool:
        return len(self.workers) > 1

    def _give_chunk(self, worker: Worker) -> None:
        """The chunk that a worker goes on in, and one more for when it is full."""
        if not self.is_parallel:
            worker.status[k.LIMIT] = self._limit
            return
        if worker[k.LIMIT] == 0:
            worker.begin = worker.status[k.NEXT] = self._taken_chunk()
            worker.status[k.LIMIT] = worker.begin + self._chunk
        if worker[k.SPARE] < 0:
            worker.status[k.SPARE] = self._taken_chunk()
            worker.status[k.SPARE_END] = worker[k.SPARE] + self._chunk

    def _taken_chunk(self) -> int:
        # Taken by several threads at once: drawing from the iterator is one step.
        first = next(self._chunks)
        if first + self._chunk > self._limit:
            raise self._out_of_memory()
        self._allocated = max(self._allocated, first + self._chunk)
        return first

    def _note_chunk(self, worker: Worker, limit: int) -> None:
        """Remember the full chunk if the worker has gone on to its spare one."""
        if worker[k.LIMIT] != limit:
            worker.spans.append((worker.begin, limit))
            worker.begin = worker[k.LIMIT] - self._chunk

    @property
    def states(self) -> int:
        open_spans = sum(
            worker[k.NEXT] - worker.begin + sum(e - s for s, e in worker.spans)
            for worker in self.workers
        )
        return self._count + open_spans

    @property
    def memory_bytes(self) -> int:
        used = self._allocated if self.is_parallel else self.workers[0][k.NEXT]
        return used * (self.program.words * 8 + 4) + (8 << self._bits)

    # The table

    def _out_of_memory(self) -> Stopped:
        return Stopped(
            f"the memory budget of {self._memory_max >> 20} MiB is used up: no room for more than "
            f"{self.states:,} states and their table"
        )

    @property
    def _usable_slots(self) -> int:
        """Half of the table, or nearly all of it when there is no memory for a larger one."""
        return (7 << self._bits) >> 3 if self._is_tight else 1 << self._bits - 1

    def _allow(self) -> None:
        """Tell the workers how many states they may add before the table has to grow."""
        room = self._usable_slots - self.states
        if not self.is_parallel:
            left = self._limit - self.workers[0][k.NEXT]
            if left < k.BATCH + self._fanout:
                raise self._out_of_memory()
            room = min(room, left)
        for worker in self.workers:
            worker.status[k.ROOM] = max(0, room) // len(self.workers)
            worker.status[k.SHIFT] = 64 - self._bits
            worker.status[k.MASK] = (1 << self._bits) - 1

    def _grow(self) -> None:
        old, slots = self.table, 1 << self._bits
        if self.memory_bytes + 2 * 8 * slots > self._memory_max:
            if self._is_tight:
                raise self._out_of_memory()
            self._is_tight = True
            return
        self._bits += 1
        self.table = reserved(1 << self._bits, np.uint64)
        if self._executor is None or slots < SHARED_SLOTS_MIN:
            self._double(old, (0, slots))
            return
        share = slots // len(self.workers)
        parts = [(share * n, share * (n + 1)) for n in range(len(self.workers) - 1)]
        parts.append((share * len(parts), slots))
        list(self._executor.map(lambda part: self._double(old, part), parts))

    def _double(self, old: Any, slots: Span) -> None:
        shift, mask = 64 - self._bits, (1 << self._bits) - 1
        self.kernels.double(address(old), *slots, address(self.table), shift, mask)

    # The code

    def _improve(self) -> None:
        """Have optimised code made once the search is large, and go over to it when it is done."""
        if self._is_optimised or self.states < self._optimise_from:
            return
        if self._optimisation is None and free_bytes() < OPTIMISER_BYTES:
            self._is_optimised = True
        elif self._optimisation is None:
            self._optimisation = self._target.optimise()
        elif self._optimisation.is_done:
            self._is_optimised = True
            if (code := self._optimisation.code()) is not None:
                self.kernels = Functions(code)

    def close(self) -> None:
        if self._optimisation is not None:
            self._optimisation.close()

    # The search

    def begin(self, initial: Iterable[Words]) -> list[Span]:
        states = distinct(self.program, initial)
        words = np.array(states, np.int64).tobytes()
        level = [(0, len(states))]
        self.restore(level, words, np.arange(len(states), dtype=np.uint32).tobytes(), set())
        return level

    def _refill(self, first: int, end: int) -> None:
        self.kernels.refill(
            address(self.pool),
            first,
            end,
            address(self.table),
            64 - self._bits,
            (1 << self._bits) - 1,
        )

    def _close_level(self) -> list[Span]:
        spans = [span for worker in self.workers for span in worker.close_level()]
        self._count += sum(end - first for first, end in spans)
        return spans

    def expand(self, level: Sequence[Span], pause: Pause) -> Finding | list[Span]:
        states = sum(end - first for first, end in level)
        is_shared = self.is_parallel and states > ALONE_MAX
        piece = SHARED_PIECE if is_shared else PIECE
        todo = deque(
            (start, min(start + piece, end))
            for first, end in level
            for start in range(first, end, piece)
        )
        while todo:
            pause()
            self._improve()
            self._allow()
            if is_shared and self._executor is not None:
                codes = list(
                    self._executor.map(lambda worker: self._round(worker, todo), self.workers)
                )
            else:
                codes = [self._round(self.workers[0], todo)]
            self._count_up()
            if (found := self._finding(codes)) is not None:
                return found
            if k.FULL in codes:
                self._grow_if_needed()
        self.expanded += states
        return self._close_level()

    def _round(self, worker: Worker, todo: deque[Span]) -> int:
        """Expand pieces until none is left or the worker cannot go on by itself."""
        code = k.DONE
        pieces = 0
        while code in (k.DONE, k.CHUNK) and pieces < PIECE:
            try:
                worker.status[[k.HEAD, k.END]] = todo.popleft()
            except IndexError:
                return k.DONE
            self._give_chunk(worker)
            pieces += worker[k.END] - worker[k.HEAD]
            limit = worker[k.LIMIT]
            code = self.kernels.search(
                address(self.pool),
                address(self.parents),
                address(self.table),
                address(worker.status),
                address(worker.out),
                address(worker.act),
                address(worker.source),
                address(worker.hashes),
                address(worker.covered),
                self._fanout,
            )
            self._note_chunk(worker, limit)
            if worker[k.HEAD] < worker[k.END] and code in (k.FULL, k.CHUNK):
                todo.appendleft((worker[k.HEAD], worker[k.END]))
        return code

    def _grow_if_needed(self) -> None:
        """More room for everybody; a round later the table may have to grow after all."""
        needed = (k.BATCH + self._fanout) * len(self.workers)
        while self._usable_slots - self.states < needed:
            self._grow()

    def _count_up(self) -> None:
        self.transitions = sum(worker[k.TRANSITIONS] for worker in self.workers)
        self.terminal_states = sum(worker[k.STUCK] for worker in self.workers)

    def _finding(self, codes: list[int]) -> Finding | None:
        for worker, code in zip(self.workers, codes, strict=False):
            if code == k.VIOLATED:
                return Finding(worker[k.HEAD], worker[k.FAULT], worker[k.STEP])
            if code == k.DEADLOCKED:
                fault = worker[k.FAULT]
                return Finding(worker[k.HEAD], fault if fault >= 0 else DEADLOCK)
        return None

    def descend(self, pause: Pause) -> Finding | list[Span]:
        worker = self.workers[0]
        stack = reserved(self._limit, np.uint32)
        stack[: self.states] = np.arange(self.states)
        worker.status[k.STACK] = self.states
        while worker[k.STACK]:
            pause()
            self._improve()
            self._allow()
            worker.status[k.ROOM] = min(worker[k.ROOM], DESCENT + self._fanout)
            code = self.kernels.descend(
                address(self.pool),
                address(self.parents),
                address(self.table),
                address(worker.status),
                address(worker.out),
                address(worker.act),
                address(stack),
                address(worker.covered),
                self._fanout,
            )
            self._count_up()
            if (found := self._finding([code])) is not None:
                return found
            self._grow_if_needed()
        self._close_level()
        return [(0, self.states)]

    def examine(self, level: Sequence[Span], demanded: int, pause: Pause) -> Finding | None:
        held, fault = np.zeros(2, np.int64), np.array([-1, 0], np.int64)
        covered = np.zeros(self.program.covers + 1, np.uint8)
        for first, end in level:
            for start in range(first, end, PIECE):
                pause()
                stop = min(start + PIECE, end)
                state = self.kernels.scan(
                    address(self.pool),
                    start,
                    stop,
                    demanded,
                    address(held),
                    address(fault),
                    address(covered),
                )
                self.held |= int(held[0])
                if fault[0] >= 0:
                    return Finding(state, int(fault[0]))
                if state < stop:
                    return Finding(state, PROPERTY, held=int(held[1]))
        return None

    # Reading

    def words(self, state: int) -> Words:
        width = self.program.words
        return tuple(int(word) for word in self.pool[state * width : (state + 1) * width])

    def parent(self, state: int) -> int:
        return int(self.parents[state])

    def covered(self) -> set[int]:
        rows = np.bitwise_or.reduce([worker.covered for worker in self.workers])
        return {int(row) for row in np.flatnonzero(rows)}

    def recount(self, transitions: int, terminal_states: int, held: int) -> None:
        super().recount(transitions, terminal_states, held)
        self.workers[0].status[[k.TRANSITIONS, k.STUCK]] = transitions, terminal_states

    def saved(self, level: Sequence[Span]) -> tuple[Any, Any]:
        width = self.program.words
        words = [self.pool[first * width : end * width] for first, end in level]
        parents = [self.parents[first:end] for first, end in level]
        return np.concatenate(words).tobytes(), np.concatenate(parents).tobytes()

    def restore(self, level: Sequence[Span], words: bytes, parents: bytes, rows: set[int]) -> None:
        packed, before = np.frombuffer(words, np.int64), np.frombuffer(parents, np.uint32)
        width, done = self.program.words, 0
        for first, end in level:
            count = end - first
            while self._usable_slots - (self._count + count) < k.BATCH + self._fanout:
                self._grow()
            self.pool[first * width : end * width] = packed[done * width : (done + count) * width]
            self.parents[first:end] = before[done : done + count]
            self._refill(first, end)
            self._count += count
            done += count
        self._allocated = max(self._allocated, max(end for _, end in level))
        self._chunks = itertools.count(self._allocated, self._chunk)
        for worker in self.workers:
            worker.status[[k.LIMIT, k.SPARE]] = 0, -1
            worker.begin = worker.status[k.NEXT] = self._allocated
        self.workers[0].covered[[*rows]] = 1
