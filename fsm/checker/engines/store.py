"""The tables of the compressed store, and when they grow; `store_kernels` says what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from epochgate.fsm.checker.engines import store_kernels as s
from epochgate.fsm.checker.engines.memory import Region
from epochgate.fsm.checker.engines.plan import Plan

if TYPE_CHECKING:
    from epochgate.fsm.checker.engines.functions import Functions, Worker

SLOTS_MIN = 1 << 13
SLOTS_BEGIN = 1 << 16
"""Of a table to begin with, unless the budget is small."""
SLOTS_MAX = (1 << 32) - (1 << 16)
"""A place has 32 bits, with room for what is added to it."""
LOAD, LOAD_MAX = 0.8, 0.9
"""How far a table is filled, and how far when there is no memory for a larger one."""
DOUBLED_UP_TO = 8 << 20
"""A table of fewer bytes has twice as many slots when it grows, others half as many more."""
GROWTH_MIN = 1.04
"""With less than that it is no use to grow."""
BITS_MIN = 36
"""Of a packed key; a table's place takes 32 of them."""
LEVEL_BITS_MIN = 8
PIECE = 1 << 22
"""Slots that are moved before their memory is given back."""
COLLECTED_TOGETHER = 1 << 18
VALUES_MAX = 1 << 31
"""A key is two numbers of words and pairs at least, in 62 bits."""


class NoRoom(Exception):
    """A table, or the words and pairs, cannot grow within the budget."""


class Values:
    """The words and pairs, each once. Several workers share them without locks: each takes numbers
    for new ones from a range of its own, and a slot is claimed by one atomic operation.
    """

    def __init__(self, range_min: int, workers: int, memory_max: int, plan: Plan) -> None:
        self.plan, self._packed_plan = plan, plan.packed()
        # What is left of a range is lost when a worker gets one that does not follow it.
        self._given = range_min * (4 if workers == 1 else 32)
        self._capacity = min(VALUES_MAX, memory_max // 8 + 2 * workers * self._given)
        self.values = Region(self._capacity, np.int64)
        self._bits = max(12, (2 * self._given).bit_length())
        self.slots = Region(1 << self._bits, np.uint64)
        self.allocated = 0

    @property
    def arguments(self) -> tuple[int, int]:
        """For kernels: the words and pairs, and the plan."""
        return self.values.address, int(self._packed_plan.ctypes.data)

    def lacks(self, worker: Worker, needed: int) -> int:
        """Return how many numbers a worker has to be given to have `needed`; 0 if it has them."""
        have = worker[s.VALUE_END] - worker[s.VALUE_NEXT]
        return 0 if have >= needed else max(self._given, needed)

    @property
    def bytes(self) -> int:
        return self.allocated * 8 + (8 << self._bits)

    def give(self, worker: Worker, calls: Functions, spare_bytes: int, wanted: int) -> None:
        """Give a worker `wanted` numbers, while all others rest."""
        if self.allocated + wanted > self._capacity:
            raise NoRoom
        while self.allocated + wanted > 1 << self._bits - 1:
            self._double(calls, spare_bytes)
        if worker[s.VALUE_END] != self.allocated:
            worker.status[s.VALUE_NEXT] = self.allocated
        self.allocated += wanted
        worker.status[s.VALUE_END] = self.allocated

    def tell(self, worker: Worker) -> None:
        """Say where the slots are, which may have changed with what another worker was given."""
        worker.status[s.VALUE_SHIFT] = 64 - self._bits
        worker.status[s.VALUE_MASK] = (1 << self._bits) - 1

    def restore(self, calls: Functions, slots: Any, values: Any) -> None:
        """Have the words and pairs of an earlier search, and what its slots held; raises NoRoom."""
        if len(values) > self._capacity:
            raise NoRoom
        while len(values) > 1 << self._bits - 1:
            self._bits += 1
        self.values.array[: len(values)] = values
        self.allocated, self.slots = len(values), Region(1 << self._bits, np.uint64)
        shift, mask = 64 - self._bits, (1 << self._bits) - 1
        calls.double(slots.ctypes.data, 0, len(slots), self.slots.address, shift, mask)

    def _double(self, calls: Functions, spare_bytes: int) -> None:
        old, count = self.slots, 1 << self._bits
        if 16 * count > spare_bytes:
            raise NoRoom
        self._bits += 1
        self.slots = Region(1 << self._bits, np.uint64)
        shift, mask = 64 - self._bits, (1 << self._bits) - 1
        calls.double(old.address, 0, count, self.slots.address, shift, mask)


class Table:
    """One worker's table of keys."""

    def __init__(
        self, key_bits: int, plan: Plan, slots: int, level_bits: int = LEVEL_BITS_MIN
    ) -> None:
        self._key_bits, self._plan = key_bits, plan
        """The first is that of a state of one word; 0 with more words."""
        self.count = 0
        self._load, self._pledged = LOAD, 0
        self._level_bits = level_bits
        self._number_bits = -(-BITS_MIN // len(plan.parts))
        self._lay_out(slots)

    def _lay_out(self, slots: int) -> None:
        self.shape = shape(slots, self._plan, self._number_bits, self._key_bits, self._level_bits)
        self.slots, self.length = slots, slots + s.REACH * s.LANES
        self._main = Region(self.length, np.uint32)
        self._extras = Region(self.length * self.stride, np.uint8)
        self.arguments = (
            self._main.address,
            self._extras.address,
            int(self.shape.ctypes.data),
        )
        """For kernels: the slots, their bytes, and the shape."""

    @property
    def stride(self) -> int:
        return int(self.shape[s.STRIDE])

    @property
    def level_max(self) -> int:
        return int(self.shape[s.LEVEL_MAX])

    @property
    def level_bits(self) -> int:
        return self._level_bits

    @property
    def bytes(self) -> int:
        return max(self._pledged, self.length * (4 + self.stride))

    @property
    def room(self) -> int:
        return int(self.slots * self._load) - self.count

    def slot(self, key: int, calls: Functions) -> int:
        """Return the slot of a state that is there."""
        return calls.slot_of(*self.arguments, key)

    def key(self, slot: int, calls: Functions) -> int:
        """The state that a slot keeps."""
        found, level = np.zeros(1, np.int64), np.zeros(1, np.uint32)
        place = found.ctypes.data, level.ctypes.data
        calls.collect(*self.arguments, slot, slot + 1, 0, self.level_max, *place)
        return int(found[0])

    def level(self, key: int, calls: Functions) -> int:
        """The level of a state that is there."""
        start = self.slot(key, calls) * self.stride
        kept = self._extras.array[start : start + self.stride].tobytes()
        return int.from_bytes(kept, "little") >> int(self.shape[s.EXTRA])

    def wider(self, spare_bytes: int) -> int:
        """Return the next number of slots, whose memory then counts; raises NoRoom."""
        slot_bytes = 4 + self.stride
        factor = 2.0 if self.bytes < DOUBLED_UP_TO else 1.5
        slots = min(int(self.slots * factor), self.slots + spare_bytes // slot_bytes, SLOTS_MAX)
        slots -= slots % s.LANES
        if slots > self.slots * GROWTH_MIN:
            self._pledged = slots * slot_bytes
            return slots
        if self._load >= LOAD_MAX:
            raise NoRoom
        self._load = LOAD_MAX
        return self.slots

    def grow(self, calls: Functions, slots: int) -> None:
        """Have `slots` slots. Memory of the old ones is given back while they move, so that no more
        is taken than the new ones need.
        """
        if slots > self.slots:
            self._relay(calls, slots)

    def hold_level(self, level: int, calls: Functions) -> None:
        """Have bits for the number of a level."""
        if level > self.level_max:
            self._level_bits = level.bit_length() + 2
            self._relay(calls, self.slots)

    def hold_numbers(self, numbers: int, calls: Functions) -> None:
        """Have bits for the numbers of words and pairs below `numbers`."""
        if numbers > 1 << self._number_bits and not self._key_bits:
            self._number_bits = min(self._plan.part_bits, numbers.bit_length() + 1)
            self._relay(calls, self.slots)

    def _relay(self, calls: Functions, slots: int) -> None:
        main, extras, old, length = self._main, self._extras, self.arguments, self.length
        old_shape, stride = self.shape, self.stride
        self._lay_out(slots)
        for first in range(0, length, PIECE):
            end = min(first + PIECE, length)
            if not calls.move(*old, first, end, *self.arguments):
                raise NoRoom
            main.give_back(first, end)
            extras.give_back(first * stride, end * stride)
        del old_shape  # `old` has its address

    def collected(
        self, calls: Functions, lowest: int, highest: int, *, is_emptied: bool = False
    ) -> Iterator[tuple[Any, Any]]:
        """The keys and levels of the states of some levels, in parts; if the table is emptied, the
        memory of what was listed is given back.
        """
        room = min(COLLECTED_TOGETHER, self.length)
        keys, levels = np.zeros(room, np.int64), np.zeros(room, np.uint32)
        for first in range(0, self.length, room):
            end = min(first + room, self.length)
            found = calls.collect(
                *self.arguments, first, end, lowest, highest, keys.ctypes.data, levels.ctypes.data
            )
            yield keys[:found].copy(), levels[:found].copy()
            if is_emptied:
                self._main.give_back(first, end)
                self._extras.give_back(first * self.stride, end * self.stride)

    def put(self, calls: Functions, keys: Any, levels: Any, spare_bytes: int) -> None:
        """Keep states that are not there; raises NoRoom."""
        while self.room < len(keys):
            self.grow(calls, self.wider(spare_bytes))
        keys, levels = np.ascontiguousarray(keys), np.ascontiguousarray(levels)
        new = calls.put(*self.arguments, keys.ctypes.data, levels.ctypes.data, len(keys))
        self.count += new
        if new != len(keys):
            raise NoRoom


def slots_to_begin_with(memory_max: int) -> int:
    """Of a table that may take `memory_max` bytes in the end."""
    slots = SLOTS_BEGIN
    while slots > SLOTS_MIN and slots * 32 > memory_max:
        slots //= 2
    return slots


def shape(slots: int, plan: Plan, number_bits: int, key_bits: int, level_bits: int) -> Any:
    """Return the layout of a table of `slots` slots."""
    found = np.zeros(s.SHAPE_WORDS, np.int64)
    bits = key_bits or len(plan.parts) * number_bits
    groups = slots // s.LANES
    step_bits = groups.bit_length() - 1
    extra = max(0, bits - step_bits + s.REACH_BITS - 32)
    stride = -(-(extra + level_bits) // 8)
    found[s.GROUPS], found[s.STEP_BITS], found[s.BITS] = groups, step_bits, bits
    found[s.PARTS], found[s.PART_BITS] = len(plan.parts), plan.part_bits
    found[s.NUMBER_BITS], found[s.STRIDE], found[s.EXTRA] = number_bits, stride, extra
    found[s.LEVEL_MAX] = (1 << 8 * stride - extra) - 1
    return found
