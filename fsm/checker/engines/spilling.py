"""A search in machine code that keeps its states on disk, and reads and writes them in order.

A level is a few files of sorted keys, and all levels together are what is known. The successors of
a level are gathered in a buffer, which is sorted when it is full and rid of keys that occur twice.
All files are then read once, from their beginning to their end, and what they have is dropped; the
rest is a file of the next level. So no access to the disk is for one state alone, and nothing is
written a second time but levels of many files, which are merged. Words and pairs stay in memory.

Each file is followed by a manifest (see `spill_directory`) that says how many states of the level
have been expanded: from there the search goes on.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain as chained, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from epochgate.fsm.checker.engines import kernels as k
from epochgate.fsm.checker.engines.choice import Setting
from epochgate.fsm.checker.engines.compiled import SHARED_PIECE, CompiledSearch
from epochgate.fsm.checker.engines.functions import NO_KEY, Worker, address, compiled_target
from epochgate.fsm.checker.engines.keeping import PLANNED_FROM
from epochgate.fsm.checker.engines.key_files import Block, KeyFile, merged, unknown
from epochgate.fsm.checker.engines.key_kernels import key_functions
from epochgate.fsm.checker.engines.memory import Region
from epochgate.fsm.checker.engines.plan import Plan, parts_for, plan
from epochgate.fsm.checker.engines.replanning import SAMPLE_MAX
from epochgate.fsm.checker.engines.search import Finding, Level, Pause, Stopped, Words, distinct
from epochgate.fsm.checker.engines.spill_directory import Directory
from epochgate.fsm.checker.engines.store import NoRoom, Values
from epochgate.fsm.checker.engines.store_kernels import VALUE_NEXT
from epochgate.fsm.checker.memory_limit import usable_bytes
from epochgate.fsm.checker.resuming import identity

SHARED_FROM = 1 << 20
"""Keys that are shared out among the threads when they are looked for."""
BUFFERED_MIN = 64
"""States whose successors have room in the smallest buffer."""
PARTS_MAX = 4
"""A level of more files is made one file."""
MERGED_TOGETHER = 1 << 18
WRITTEN_FROM = 0.6
"""How much of the buffer different keys fill before they are written."""
WRITTEN_EVERY_S = 600
"""Work that a killed search may lose."""
BLOCK_KEYS, BLOCK_KEYS_SMALL = 1 << 15, 1 << 10
SMALL_BYTES = 64 << 20
"""A budget for which blocks are small."""
COUNTED = [k.TRANSITIONS, k.STUCK, k.LEFT_OUT]


class Outgrown(Exception):
    """There are too many words and pairs for the parts of a key."""


def spilled(path: Path, setting: Setting) -> SpillingSearch:
    """A search that keeps its states in a directory, and goes on with what is there."""
    program, workers, threshold = setting.program, setting.workers, setting.optimise_from
    target = compiled_target(program, setting.final, workers, is_quick=threshold > 0)
    memory_max = usable_bytes() if setting.memory_max is None else setting.memory_max
    searched = identity(program, setting.system.claims()) + (
        "" if program.reduction is None else " reduced"
    )
    directory = Directory(path, searched, type(setting.system).__name__)
    return SpillingSearch(directory, program, target, workers, memory_max, threshold)


class SpillingSearch(CompiledSearch):
    """`levels` are the files of each level; those of the level `depth` are expanded."""

    def __init__(self, directory: Directory, *of_a_search: Any) -> None:
        super().__init__(*of_a_search)
        self.tables = []
        self.directory = directory
        directory.block_keys = BLOCK_KEYS if self.memory_max > SMALL_BYTES else BLOCK_KEYS_SMALL
        self.levels: list[list[KeyFile]] = []
        self.place = 0
        """How many states of the level have been expanded."""
        self.begins: list[Words] = []
        self.buffer = Region(self.memory_max // 8, np.int64)
        self.filled = self._touched = 0
        """Keys in the buffer, and the most there were."""
        self.known = self._size = self._read_together = 0
        self._saved: tuple[Any, ...] = ()
        """Which words and pairs the directory has."""
        self._written_s = time.monotonic()

    @property
    def states(self) -> int:
        return self.known

    @property
    def memory_bytes(self) -> int:
        return self._besides + 8 * self._touched

    @property
    def disk_bytes(self) -> int:
        """The bytes of the files of keys."""
        return self._size

    def room_for(self, memory_max: int) -> tuple[int, str]:
        state_bytes = max(1.0, self._size / max(1, self.known))
        return self.known + int(self.directory.free_bytes / state_bytes), "disk"

    @property
    def _besides(self) -> int:
        """The memory needed beside the buffer: words, boxes, a block of each file."""
        boxes = sum(8 * len(worker.boxes.array) for worker in self.workers)
        return self.values.bytes + boxes + 8 * self._read_together * len(self.workers)

    @property
    def spare_bytes(self) -> int:
        """The bytes that words and pairs may take more: the buffer gives way to them."""
        return max(0, self.memory_max - self._besides - 8 * BUFFERED_MIN * self.fanout)

    @property
    def capacity(self) -> int:
        """The keys that the buffer may hold, with room for twice as many words and pairs."""
        room = (self.memory_max - self._besides - 2 * self.values.bytes) // 8
        return min(max(room, BUFFERED_MIN * self.fanout), len(self.buffer.array))

    def count(self) -> None:
        """Count what is in the files."""
        files = [*chained.from_iterable(self.levels)]
        self.known = sum(file.count for file in files)
        self._size = sum(file.size for file in files)
        self._read_together = sum(min(file.count, self.directory.block_keys) for file in files)

    def begin(self, initial: Iterable[Words]) -> Level:
        self.begins = distinct(self.program, initial)
        width, begins = self.program.words, len(self.begins)
        if begins > 1 or self._is_full:
            first = np.array(self.begins[:SAMPLE_MAX])
            self.values = self.numbering(plan(width, self.parts(begins * 2 * width), first))
        with self.writing():
            found = self.directory.open()
        if found is not None:
            self._resume(found)
        else:
            self.first = self.entered(self.begins)
            self.levels = [[]]
            self.filled = len(self.first)
            self.buffer.array[: self.filled] = self.first
            self._write()
        self.begun_at = self.depth
        return self._level()

    def numbering(self, chosen: Plan) -> Values:
        """Words and pairs to come, by a plan."""
        return Values(self.numbers_of_a_state, len(self.workers), self.memory_max, chosen)

    def entered(self, states: list[Words]) -> Any:
        """The keys of states."""
        words = np.array(states, np.int64).reshape(-1)
        together = self.fanout * self.program.words
        return np.concatenate(
            [self.admitted(words[at : at + together]) for at in range(0, len(words), together)]
        )

    def _resume(self, found: dict[str, Any]) -> None:
        self.levels = self.directory.files(found)
        self.count()
        pairs = tuple((one, other) for one, other in found["plan"]["pairs"])
        self.values = self.numbering(Plan(pairs, tuple(found["plan"]["parts"])))
        try:
            self.values.restore(self.kernels, *self.directory.words())
        except NoRoom:
            raise self.out_of_memory() from None
        self._saved = self._numbered()
        self.depth, self.place = found["depth"], found["place"]
        self._planned_for = found["planned_for"]
        self.recount(*found["counted"])
        self.workers[0].covered[found["rows"]] = 1
        self.first = self.entered(self.begins)

    def _level(self) -> list[Block]:
        return [block for file in self.levels[self.depth] for block in file.blocks]

    def expand(self, level: Level, pause: Pause) -> Finding | Level:
        if len(self.levels) == self.depth + 1:
            self.levels.append([])
        self.plan_better()
        while True:
            try:
                found = self._expand_rest(pause)
            except Outgrown:
                self.rekey()
            else:
                break
        if found is not None:
            return found
        self._write(is_last=True)
        self._join_parts()
        self.expanded += self.place
        self.depth, self.place = self.depth + 1, 0
        if not self.levels[self.depth]:
            # A later run finds the same end: the level before, expanded as a whole.
            self.depth -= 1
            self.place = sum(file.count for file in self.levels[self.depth])
            self.commit()
            return []
        self.commit()
        return self._level()

    def _expand_rest(self, pause: Pause) -> Finding | None:
        """Expand what has not been expanded of the level."""
        passed = 0
        for block in self._level():
            passed += len(block)
            if passed <= self.place:
                continue
            keys = block.keys[len(block) - (passed - self.place) :]
            while len(keys):
                try:
                    pause()
                except Stopped:
                    self._write()
                    raise
                self._improve()
                portion = keys[: self._portion(len(keys))]
                if (found := self._expanded(portion)) is not None:
                    return found
                self.place += len(portion)
                keys = keys[len(portion) :]
        return None

    def _portion(self, wanted: int) -> int:
        """For how many states there is room for all successors; makes some if need be."""
        capacity = self.capacity
        wanted = min(wanted, max(1, capacity // (4 * self.fanout)))
        is_due = time.monotonic() - self._written_s > WRITTEN_EVERY_S
        if is_due or capacity - self.filled < wanted * self.fanout:
            self._sort()
            if is_due or self.filled > WRITTEN_FROM * capacity:
                self._write()
        return min(wanted, (capacity - self.filled) // self.fanout)

    def _expanded(self, keys: Any) -> Finding | None:
        """Put the successors of some states into the buffer, of all of them or of none."""
        before = self.filled, [worker.status[COUNTED] for worker in self.workers]
        step = SHARED_PIECE if self.is_parallel else len(keys)
        todo = deque(keys[start : start + step] for start in range(0, len(keys), step))
        try:
            while todo:
                for worker in self.workers:
                    self.have_numbers(worker)
                codes = self._each(True, lambda worker: self._gathered(worker, todo), self.workers)
                self._empty_boxes()
                self._count_up()
                for worker, (code, state) in zip(self.workers, codes, strict=True):
                    if (found := self._finding(worker, code, state)) is not None:
                        return found
        except (Outgrown, Stopped):
            self.filled = before[0]
            for worker, counted in zip(self.workers, before[1], strict=True):
                worker.status[COUNTED] = counted
                worker.recent[:] = NO_KEY
            self._count_up()
            raise
        return None

    def _empty_boxes(self) -> None:
        for worker in self.workers:
            for number, count in enumerate(worker.filled.tolist()):
                begin = number * worker.box
                end = self.filled + count
                self.buffer.array[self.filled : end] = worker.boxes.array[begin : begin + count]
                self.filled = end
            worker.filled[:] = 0
        self._touched = max(self._touched, self.filled)

    def _sort(self) -> None:
        """Sort the keys of the buffer, and keep each once."""
        keys = self.buffer.array[: self.filled]
        keys.sort()
        self.filled = key_functions().unlike(address(keys), len(keys))

    def _write(self, *, is_last: bool = False) -> None:
        """Write those keys of the buffer that are in no file; and a manifest, unless the level is
        at its end and another one follows.
        """
        self._sort()
        shares = len(self.workers) if self.filled > SHARED_FROM else 1
        bounds = [self.filled * share // shares for share in range(shares + 1)]
        parts = [self.buffer.array[first:end] for first, end in pairwise(bounds)]
        files = [*chained.from_iterable(self.levels)]
        with self.writing():
            writers = [self.directory.writer() for _ in parts]
            shared = self._executor.map if self._executor is not None else map
            made = [*shared(lambda to, keys: to.written(unknown(keys, files)), writers, parts)]
        self.levels[-1] += [file for file in made if file is not None]
        self.count()
        self.filled = 0
        if (capacity := self.capacity) < self._touched:
            self.buffer.give_back(capacity, self._touched)
            self._touched = capacity
        if not is_last:
            self.commit()

    def _join_parts(self) -> None:
        """Make one file of a level of many."""
        parts = self.levels[-1]
        if len(parts) <= PARTS_MAX:
            return
        with self.writing():
            whole = self.directory.writer().written(
                merged(parts, min(MERGED_TOGETHER, self.capacity))
            )
        self.levels[-1] = [whole] if whole is not None else []
        self.count()
        for part in parts:
            part.close()

    def _numbered(self) -> tuple[Any, ...]:
        return self.values, [worker[VALUE_NEXT] for worker in self.workers]

    def commit(self) -> None:
        """Make what the files say the state of the search that a later run goes on from."""
        values = self.values
        with self.writing():
            if (numbered := self._numbered()) != self._saved:
                slots = values.slots.array
                self.directory.save_words(
                    slots[slots != 0], values.values.array[: values.allocated]
                )
                self._saved = numbered
            self.directory.commit(
                self.levels,
                {
                    "plan": {"pairs": values.plan.pairs, "parts": values.plan.parts},
                    "planned_for": self._planned_for,
                    "depth": self.depth,
                    "place": self.place,
                    "counted": [
                        self.transitions,
                        self.terminal_states,
                        self.held,
                        self.left_out,
                    ],
                    "rows": sorted(self.covered()),
                },
            )
        self._written_s = time.monotonic()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """End the search in order where the disk is full."""
        try:
            yield
        except OSError as error:
            if (stopped := self.directory.full(error)) is not None:
                raise stopped from error
            raise

    @property
    def _spare_numbers(self) -> int:
        """The numbers that all threads may be given twice."""
        shared = 4 if len(self.workers) == 1 else 32
        return 2 * shared * len(self.workers) * self.numbers_of_a_state

    @property
    def _is_full(self) -> bool:
        return self.values.allocated + self._spare_numbers > self.values.plan.numbers_max

    def parts(self, numbers: int) -> int:
        """Return the number of parts that a key may have when this many numbers are in use."""
        return parts_for(self.program.words, numbers + 2 * self._spare_numbers)

    def have_numbers(
        self, worker: Worker, needed: int = 0, *, spare_bytes: int | None = None
    ) -> None:
        # A way to a violation is told without new keys: some numbers are kept for it.
        if self._is_full and spare_bytes is None and self.former is None:
            raise Outgrown
        super().have_numbers(worker, needed, spare_bytes=spare_bytes)

    def plan_better(self) -> None:
        if self._planned_for < PLANNED_FROM <= self.known:
            self._planned_for = self.known
            if self.values.plan.pairs:
                self.rekey()

    def rekey(self) -> None:
        """Go over to another plan for the keys of all states."""
        from epochgate.fsm.checker.engines.rekeying import rekey

        self._write()
        try:
            rekey(self)
        except NoRoom:
            raise self.out_of_memory() from None

    def examine(
        self, level: Iterable[Sequence[int]], demanded: int, pause: Pause
    ) -> Finding | None:
        return super().examine(_read(level), demanded, pause)

    def levels_before(self, state: int) -> Iterator[Iterable[Any]]:
        reached = next(
            number
            for number in range(len(self.levels) - 1, -1, -1)
            if any(state in file for file in self.levels[number])
        )
        for files in reversed(self.levels[:reached]):
            yield (block.keys for file in files for block in file.blocks)

    def everything(self) -> Iterator[Sequence[int]]:
        yield from chained.from_iterable(file.blocks for level in self.levels for file in level)

    def close(self) -> None:
        super().close()
        for file in chained.from_iterable(self.levels):
            file.close()
        self.directory.close()


def _read(level: Iterable[Sequence[int]]) -> Iterator[Any]:
    """The keys of blocks, as arrays."""
    for block in level:
        assert isinstance(block, Block)
        yield block.keys
