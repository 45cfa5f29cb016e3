"""Breadth-first search over whole arrays of states at a time, with NumPy alone.

States found are kept as columns in the order in which a search one by one would find them, beside a
sorted array of their hashes. Equal hashes are compared word by word; should two states ever share
one, everything is hashed anew with another salt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from epochgate.fsm.compiler.ir import Program
from epochgate.fsm.compiler.numpy_target import Columns, NumpyTarget
from epochgate.fsm.explore.search import (
    DEADLOCK,
    PROPERTY,
    Finding,
    Pause,
    Search,
    Span,
    Unsuited,
    Words,
)

PIECE = 1 << 15
"""States that are expanded together."""
MULTIPLIER = np.uint64(0xFF51AFD7ED558CCD)
LAST_MULTIPLIER = np.uint64(0xC4CEB9FE1A85EC53)


class VectorSearch(Search):
    """Keeps the states as columns of 64-bit integers."""

    def __init__(self, program: Program, final: str | None) -> None:
        self._program, self._final = program, final
        self._target = NumpyTarget(program)
        self._columns: Columns = [np.empty(1024, np.int64) for _ in range(program.words)]
        self._parents = np.empty(1024, np.int64)
        self._count = 0
        self._salt = 1
        self._hashes = np.empty(0, np.uint64)
        self._numbers = np.empty(0, np.int64)

    @property
    def states(self) -> int:
        return self._count

    @property
    def memory_bytes(self) -> int:
        return int(self._count * (self._program.words * 8 + 8 + 16))

    def begin(self, initial: Words) -> list[Span]:
        self._append([np.array([word], np.int64) for word in initial], np.zeros(1, np.int64))
        return [(0, 1)]

    def _append(self, columns: Columns, parents: Any) -> None:
        """Add states that are new and all different."""
        first, end = self._count, self._count + len(parents)
        while end > len(self._parents):
            self._columns = [np.concatenate([c, np.empty_like(c)]) for c in self._columns]
            self._parents = np.concatenate([self._parents, np.empty_like(self._parents)])
        for mine, new in zip(self._columns, columns, strict=True):
            mine[first:end] = new
        self._parents[first:end] = parents
        self._count = end
        hashes = self._hash(columns)
        order = np.argsort(hashes, kind="stable")
        places = np.searchsorted(self._hashes, hashes[order])
        self._hashes = np.insert(self._hashes, places, hashes[order])
        self._numbers = np.insert(self._numbers, places, first + order)

    def _hash(self, columns: Columns) -> Any:
        h = np.full(len(columns[0]), self._salt * 0x9E3779B97F4A7C15 & (1 << 64) - 1, np.uint64)
        for column in columns:
            h = (h ^ column.view(np.uint64)) * MULTIPLIER
            h ^= h >> np.uint64(32)
        h *= LAST_MULTIPLIER
        return h ^ (h >> np.uint64(29))

    def _new(self, columns: Columns) -> Any:
        """Which of these states are new, each once, in their order."""
        while True:
            hashes = self._hash(columns)
            order = np.argsort(hashes, kind="stable")
            ordered = hashes[order]
            is_first = np.ones(len(order), bool)
            is_first[1:] = ordered[1:] != ordered[:-1]
            leaders = order[np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))]
            firsts = order[is_first]
            places = np.searchsorted(self._hashes, hashes[firsts])
            places[places == len(self._hashes)] = 0
            is_known = self._hashes[places] == hashes[firsts]
            known = self._numbers[places[is_known]]
            collide = any(
                (c[order] != c[leaders]).any() or (c[firsts[is_known]] != mine[known]).any()
                for c, mine in zip(columns, self._columns, strict=True)
            )
            if not collide:
                return np.sort(firsts[~is_known])
            self._salt_anew()

    def _salt_anew(self) -> None:
        self._salt += 1
        hashes = self._hash([column[: self._count] for column in self._columns])
        self._numbers = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._numbers]

    def expand(self, level: Sequence[Span], pause: Pause) -> Finding | list[Span]:
        first_new = self._count
        for first, end in level:
            for start in range(first, end, PIECE):
                pause()
                if (found := self._expand(start, min(start + PIECE, end))) is not None:
                    return found
        return [(first_new, self._count)] if self._count > first_new else []

    def _expand(self, first: int, end: int) -> Finding | None:
        columns = [column[first:end] for column in self._columns]
        parts: list[Columns] = []
        sources, steps = [], []
        faults: list[tuple[int, int, int, int]] = []
        for number in range(len(self._program.steps)):
            is_enabled, guard_faults = self._target.enabled(columns, number)
            faults += [
                (int(i), -1, int(guard_faults[i]), number)
                for i in np.flatnonzero(guard_faults >= 0)
            ]
            where = np.flatnonzero(is_enabled & (guard_faults < 0))
            if not len(where):
                continue
            after, failed = self._target.take([c[where] for c in columns], number)
            faults += [
                (int(where[i]), number, int(failed[i]), number) for i in np.flatnonzero(failed >= 0)
            ]
            parts.append([np.broadcast_to(c, len(where)) for c in after])
            sources.append(where)
            steps.append(np.full(len(where), number))
        stuck = self._stuck(columns, sources, end - first)
        if isinstance(stuck, tuple):
            faults.append(stuck)
        worst = min(faults) if faults else None
        if parts:
            self._enter(parts, np.concatenate(sources), np.concatenate(steps), first, worst)
        if worst is None:
            self.expanded += end - first
            return None
        state, step, fault, _ = worst
        return Finding(first + state, fault, step if step >= 0 else None)

    def _stuck(
        self, columns: Columns, sources: list[Any], count: int
    ) -> tuple[int, int, int, int] | None:
        """Count states without steps; the first of them in which the system may not end."""
        stuck = np.ones(count, bool)
        for where in sources:
            stuck[where] = False
        numbers = np.flatnonzero(stuck)
        if self._final is not None and len(numbers):
            may_end, _ = self._target.holds(self._final, [c[numbers] for c in columns])
            if not may_end.all():
                return int(numbers[np.flatnonzero(~may_end)[0]]), -1, DEADLOCK, -1
        self.terminal_states += len(numbers)
        return None

    def _enter(
        self, parts: list[Columns], sources: Any, steps: Any, first: int, worst: Any
    ) -> None:
        order = np.lexsort((steps, sources))
        if worst is not None:
            # What one by one would not have come to any more.
            before = (sources < worst[0]) | ((sources == worst[0]) & (steps < worst[1]))
            order = order[before[order]]
        self.transitions += len(order)
        if not len(order):
            return
        columns = [np.concatenate(words)[order] for words in zip(*parts, strict=True)]
        columns = self._canonical(columns)
        new = self._new(columns)
        self._append([c[new] for c in columns], sources[order][new] + first)

    def _canonical(self, columns: Columns) -> Columns:
        """Sort the blocks of interchangeable instances."""
        blocks, first, width = self._program.blocks
        columns = [*columns]
        for sweep in range(blocks - 1):
            for block in range(blocks - 1 - sweep):
                one = range(first + block * width, first + (block + 1) * width)
                swap, same = np.zeros(len(columns[0]), bool), np.ones(len(columns[0]), bool)
                for word in one:
                    swap |= same & (columns[word] > columns[word + width])
                    same &= columns[word] == columns[word + width]
                for word in one:
                    here, there = columns[word], columns[word + width]
                    columns[word] = np.where(swap, there, here)
                    columns[word + width] = np.where(swap, here, there)
        return columns

    def examine(self, level: Sequence[Span], demanded: int, pause: Pause) -> Finding | None:
        for first, end in level:
            for start in range(first, end, PIECE):
                pause()
                stop = min(start + PIECE, end)
                columns = [column[start:stop] for column in self._columns]
                held, faults = np.zeros(stop - start, np.int64), np.full(stop - start, -1)
                for bit, name in enumerate(self._program.properties):
                    holds, failed = self._target.holds(name, columns)
                    held |= np.where(holds, 1 << bit, 0)
                    np.copyto(faults, failed, where=faults < 0)
                wrong = np.flatnonzero((held & demanded != demanded) | (faults >= 0))
                seen = held[: wrong[0] + 1] if len(wrong) else held
                self.held |= int(np.bitwise_or.reduce(seen))
                if len(wrong):
                    at = int(wrong[0])
                    fault = int(faults[at])
                    return Finding(
                        start + at, fault if fault >= 0 else PROPERTY, held=int(held[at])
                    )
        return None

    def words(self, state: int) -> Words:
        return tuple(int(column[state]) for column in self._columns)

    def parent(self, state: int) -> int:
        return int(self._parents[state])

    def covered(self) -> set[int]:
        return set(self._target.covered)

    def saved(self, level: Sequence[Span]) -> tuple[Any, Any]:
        spans = [slice(first, end) for first, end in level]
        words = [np.stack([c[span] for c in self._columns], axis=1) for span in spans]
        parents = [self._parents[span].astype(np.uint32) for span in spans]
        return np.concatenate(words).tobytes(), np.concatenate(parents).tobytes()

    def restore(self, level: Sequence[Span], words: bytes, parents: bytes, rows: set[int]) -> None:
        if len(level) != 1 or level[0][0] != self._count:
            raise Unsuited("it was written by several workers; go on with the llvm engine")
        packed = np.frombuffer(words, np.int64).reshape(-1, self._program.words)
        self._append([*packed.T.copy()], np.frombuffer(parents, np.uint32).astype(np.int64))
        self._target.covered |= rows
