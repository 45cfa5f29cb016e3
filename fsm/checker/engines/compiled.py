"""Search in machine code, by one thread or several, in a compressed store.

Each thread has a table of its own, for the states whose keys fall to it. A round has two halves:
first all gather successors of the level, each into one box for every thread; then each enters what
lies in the boxes for it. Only the words and pairs are shared. Which key a state has then depends on
the threads; which states there are does not.

No predecessors are kept: `ways` finds them by the levels of the states.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.llvm_target import LlvmTarget
from epochgate.fsm.checker.engines import kernels as k
from epochgate.fsm.checker.engines.functions import Functions, Worker
from epochgate.fsm.checker.engines.keeping import Keeping
from epochgate.fsm.checker.engines.memory import Region
from epochgate.fsm.checker.engines.search import (
    DEADLOCK,
    PROPERTY,
    Finding,
    Level,
    Pause,
    Words,
    distinct,
    size,
)
from epochgate.fsm.checker.engines.store import (
    Table,
)
from epochgate.fsm.checker.memory_limit import free_bytes

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
"""Packed states that are entered together."""
OPTIMISER_BYTES = 384 << 20
"""The compiler of optimised code is left out where less memory is free."""


class CompiledSearch(Keeping):
    """A search of more than `optimise_from` states has optimised code made, and goes over to it."""

    def __init__(
        self,
        program: Program,
        target: LlvmTarget,
        workers: int,
        memory_max: int,
        optimise_from: int,
    ) -> None:
        super().__init__(program, target, workers, memory_max)
        self._target, self._optimise_from = target, optimise_from
        self._optimisation: Optimisation | None = None
        self._is_optimised = target.is_optimised
        self._executor = ThreadPoolExecutor(workers) if workers > 1 else None

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
        self.depth += 1
        self.hold_level(self.depth)
        self.expanding, known = level, self.states
        workers = self.workers if is_shared else self.workers[:1]
        while todo:
            pause()
            self._improve()
            self.plan_better()
            for worker in workers:
                self.have_numbers(worker)
            codes = self._each(is_shared, lambda worker: self._gathered(worker, todo), workers)
            self._each(is_shared, self._receive, self.workers)
            self.listed = states + self.states - known
            self._count_up()
            for worker, (code, state) in zip(workers, codes, strict=True):
                if (found := self._finding(worker, code, state)) is not None:
                    return found
        self.expanding = []
        self.expanded += states
        self.listed = self.states - known
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
        code = k.DONE
        while code == k.DONE:
            try:
                part = todo.popleft()
            except IndexError:
                return k.DONE, 0
            worker.status[[k.HEAD, k.END]] = 0, len(part)
            code = self._gather(worker, part)
            head = worker[k.HEAD]
            if code in (k.FULL, k.NO_VALUES) and head < len(part):
                todo.appendleft(part[head:])
        return code, int(part[head]) if code in (k.VIOLATED, k.DEADLOCKED) else 0

    def _gather(self, worker: Worker, part: Any) -> int:
        at, values = worker.at, self.values
        return self.kernels.gather(
            part.ctypes.data,
            *values.arguments,
            values.slots.address,
            at["status"],
            at["scratch"],
            at["out"],
            at["act"],
            at["recent"],
            0,
            worker.boxes.address,
            worker.box,
            at["filled"],
            len(self.workers),
            self.fanout,
            at["covered"],
        )

    def _receive(self, worker: Worker) -> None:
        """Enter what lies in the boxes for this worker."""
        own = self.workers.index(worker)
        for sender in self.workers:
            end = int(sender.filled[own])
            if end:
                self.enter(worker, sender.boxes.address + 8 * own * sender.box, end)
                sender.filled[own] = 0

    def _count_up(self) -> None:
        self.transitions = sum(worker[k.TRANSITIONS] for worker in self.workers)
        self.terminal_states = sum(worker[k.STUCK] for worker in self.workers)
        self.left_out = sum(worker[k.LEFT_OUT] for worker in self.workers)

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
        stack = self.stack = Region(stack_max, np.int64)
        stack.array[: len(self.initial)] = self.initial
        worker.status[k.STACK] = len(self.initial)
        code = k.DONE
        while worker[k.STACK]:
            pause()
            self._improve()
            self.plan_better()
            self.have_numbers(worker)
            table = self.tables[0]
            if code == k.FULL:
                self.hold_level(
                    table.level(int(stack.array[worker[k.STACK] - 1]), self.kernels) + 1
                )
                if table.room < self.fanout or not worker[k.ROOM]:
                    self.grow(table)
            code = self._descended(worker, table, stack)
            self.listed = worker[k.STACK]
            self._count_up()
            if (found := self._finding(worker, code, worker[k.HEAD])) is not None:
                return found
        self.stack = None
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

    def recount(self, transitions: int, terminal_states: int, held: int, left_out: int) -> None:
        super().recount(transitions, terminal_states, held, left_out)
        counted = [k.TRANSITIONS, k.STUCK, k.LEFT_OUT]
        self.workers[0].status[counted] = transitions, terminal_states, left_out

    def saved(self, level: Level) -> Iterator[bytes]:
        for part in level:
            for start in range(0, len(part), PIECE):
                yield self.spelled(part[start : start + PIECE]).tobytes()

    def restore(self, states: Iterable[bytes], rows: set[int]) -> Level:
        self.depth += bool(self.states)
        self.hold_level(self.depth)
        known, width = self.states, self.program.words
        for packed in states:
            words = np.frombuffer(packed, np.int64)
            for first in range(0, len(words), ADMITTED_MAX * width):
                keys = self.admitted(words[first : first + ADMITTED_MAX * width])
                owners = self.owners(keys)
                for number, worker in enumerate(self.workers):
                    own = np.ascontiguousarray(keys[owners == number])
                    self.enter(worker, own.ctypes.data, len(own))
        self.workers[0].covered[[*rows]] = 1
        self.listed = self.states - known
        level = self._close_level()
        if not self.depth:
            self.first = np.concatenate(level)
        return level
