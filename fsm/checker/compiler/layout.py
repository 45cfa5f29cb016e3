"""The layout of a closed system's fields in the packed state: cells of at most 63 bits in words.

Without symmetry the cells of all machines share the words. With it, what belongs to one of the
interchangeable instances of an index set lies in words of its own, laid out alike for each of them,
so that exchanging two instances is exchanging their blocks of words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from epochgate.fsm.checker.compiler.ir import Cell
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.fields import ArrayField, BoolField, FieldSpec, FifoField, IntField, SetField
from epochgate.fsm.subset.tree import SET_BITS
from epochgate.fsm.system import System

WORD_BITS = 63
INITIAL_MAX = 1 << 22
"""In how many states a system may begin."""
SHARED = -1
"""The block of what belongs to no interchangeable instance."""


@dataclass(frozen=True)
class FifoCells:
    """A FIFO is a length and its items, oldest in the lowest bits; unused bits are 0."""

    name: str
    length: str
    items: str
    item_bits: int
    item_maximum: int
    capacity: int


class Layout:
    """Cells of all machines of a system, by machine instance and field; `symmetric` names the index
    set whose instances are interchangeable.

    Raises DeclarationError for a field without a bound, or one that does not fit into a word.
    """

    def __init__(self, system: System, symmetric: str | None = None) -> None:
        self._system, self._symmetric = system, symmetric
        self._over = system.INDEX_SETS[symmetric] if symmetric else None
        self.cells: dict[str, Cell] = {}
        self.initial: dict[str, int] = {}
        self.starts: dict[str, tuple[int, ...]] = {}
        """The bits that a cell may begin with, where these are several."""
        self.wrapping: set[str] = set()
        """The cells that wrap."""
        self.sets: set[str] = set()
        """The cells with a bit for each number of a set."""
        self.places: dict[tuple[str, tuple[int, ...]], dict[str, Any]] = {}
        self._blocks: dict[str, int] = {}
        for name in system.MACHINES:
            for instance in system.instances(name):
                self._machine(name, instance)
        self.words, self.blocks = self._pack()

    def _machine(self, name: str, instance: Any) -> None:
        machine = self._system.MACHINES[name]
        prefix = name + "".join(f"[{i}]" for i in instance.index)
        block = SHARED
        if self._symmetric in machine.INDEX:
            block = instance.index[machine.INDEX.index(self._symmetric)]
        places: dict[str, Any] = {}
        if len(machine.STATES) > 1:
            starts = dict.fromkeys((machine.INITIAL, *machine.STARTS))
            numbers = tuple(map(machine.STATES.index, starts))
            places["state"] = self._cell(f"{prefix}.state", len(machine.STATES) - 1, numbers, block)
        for field, spec in machine.FIELDS.items():
            places[field] = self._place(f"{prefix}.{field}", spec, block)
        self.places[name, instance.index] = places

    def _place(self, name: str, spec: FieldSpec, block: int) -> Any:
        if isinstance(spec, ArrayField):
            self._constant(name, spec.over)
            if spec.over != self._over:
                items = self._items(name, spec)
                return [self._place(f"{name}[{i}]", item, block) for i, item in enumerate(items)]
            if block != SHARED:
                raise DeclarationError(
                    f"{name} is over {spec.over} and belongs to one {self._symmetric} itself; "
                    f"with such pairs of instances symmetry cannot be used"
                )
            if spec.start is not None and len({*spec.start}) > 1:
                raise DeclarationError(
                    f"{name} is over {spec.over}, and its items begin differently, so that the "
                    f"instances of {self._symmetric} can be told apart; check without symmetry"
                )
            items = self._items(name, spec)
            return [self._place(f"{name}[{i}]", item, i) for i, item in enumerate(items)]
        if isinstance(spec, FifoField):
            return self._fifo(name, spec, block)
        if isinstance(spec, SetField):
            return self._set(name, spec, block)
        if isinstance(spec, BoolField):
            return self._cell(name, 1, tuple(map(int, spec.starts({}))), block)
        return self._int(name, spec, block)

    def _set(self, name: str, spec: SetField, block: int) -> str:
        size = self._constant(name, spec.over)
        if not 1 <= size <= SET_BITS:
            raise DeclarationError(f"{name} has {size} numbers to hold; give it 1 to {SET_BITS}")
        if spec.over == self._over and spec.over is not None:
            raise DeclarationError(
                f"{name} holds numbers of {self._symmetric}, and symmetry exchanges these; check "
                f"without symmetry, or keep an array of bools over {spec.over!r}"
            )
        if spec.start and not 0 <= spec.start[0] <= spec.start[-1] < size:
            raise DeclarationError(
                f"{name} starts with {[*spec.start]}, outside of 0 to {size - 1}"
            )
        self.sets.add(name)
        return self._cell(name, (1 << size) - 1, (sum(1 << n for n in spec.start),), block)

    def _items(self, name: str, spec: ArrayField) -> list[FieldSpec]:
        try:
            return spec.items(self._system.constants)
        except DeclarationError as error:
            raise DeclarationError(f"{name}: {error}") from None

    def _int(self, name: str, spec: IntField, block: int) -> str:
        maximum = self._constant(name, spec.bound, lowest=spec.low)
        starts = spec.starts(self._system.constants)
        if len(starts) > INITIAL_MAX:
            raise DeclarationError(
                f"{name} may start as any of {len(starts):,} values; of {INITIAL_MAX:,} at most"
            )
        for start in (min(starts), max(starts)):
            if not spec.low <= start <= maximum:
                raise DeclarationError(
                    f"{name} starts as {start}, outside of {spec.low} to {maximum}"
                )
        if (maximum - spec.low).bit_length() > WORD_BITS - 1:
            raise DeclarationError(
                f"{name} may be from {spec.low} to {maximum}, which are more than "
                f"2**{WORD_BITS - 1} values"
            )
        if spec.wraps:
            self.wrapping.add(name)
        bits = tuple(start - spec.low for start in starts)
        return self._cell(name, maximum - spec.low, bits, block, spec.low)

    def _fifo(self, name: str, spec: FifoField, block: int) -> FifoCells:
        maximum = self._constant(name, spec.item)
        capacity = self._constant(name, spec.capacity)
        bits = max(1, maximum.bit_length())
        if bits * capacity > WORD_BITS:
            raise DeclarationError(
                f"{name}: {capacity} items of {bits} bits do not fit into {WORD_BITS} bits; "
                f"give the channel a smaller capacity or its items a smaller bound"
            )
        length = self._cell(f"{name}.length", capacity, (0,), block)
        items = self._cell(f"{name}.items", (1 << bits * capacity) - 1, (0,), block)
        return FifoCells(name, length, items, bits, maximum, capacity)

    def _constant(self, name: str, bound: str | int, *, lowest: int = 0) -> int:
        value = bound if isinstance(bound, int) else self._system.constants.get(bound)
        if value is None:
            raise DeclarationError(
                f"{name} is bounded by {bound!r}, which is no constant of "
                f"{type(self._system).__name__}; add it to CONSTANTS, a field without a bound "
                f"cannot be checked"
            )
        if value < min(0, lowest) or value.bit_length() > WORD_BITS:
            raise DeclarationError(f"{name}: its bound {value} is not from 0 to 2**{WORD_BITS} - 1")
        return value

    def _cell(self, name: str, span: int, starts: tuple[int, ...], block: int, low: int = 0) -> str:
        self.cells[name] = Cell(name, span.bit_length(), span, low)
        self.initial[name] = starts[0]
        if len(starts) > 1:
            self.starts[name] = starts
        self._blocks[name] = block
        return name

    def _pack(self) -> tuple[int, tuple[int, int, int]]:
        """Number the words; returns how many there are, and the interchangeable ones among them."""
        shared = self._pack_block(SHARED, 0)
        members = sorted({block for block in self._blocks.values() if block != SHARED})
        if not members:
            return max(1, shared), (0, 0, 0)
        width = max(1, max(self._pack_block(block, 0) for block in members))
        for position, block in enumerate(members):
            self._pack_block(block, shared + position * width)
        return shared + len(members) * width, (len(members), shared, width)

    def _pack_block(self, block: int, first_word: int) -> int:
        """First fit, a machine's cells together: they have few values at once, of which the store
        of a search keeps each once. Cells that can only be 0 need no bits.
        """
        used: list[int] = []
        machines = dict[str, list[Cell]]()
        for cell in self.cells.values():
            if self._blocks[cell.name] == block:
                machines.setdefault(cell.name.partition(".")[0], []).append(cell)
        for cells in machines.values():
            together = sum(cell.bits for cell in cells)
            fitting = (w for w, bits in enumerate(used) if bits + together <= WORD_BITS)
            first = next(fitting, len(used))
            for cell in cells:
                own = range(first, len(used))
                word = next((w for w in own if used[w] + cell.bits <= WORD_BITS), len(used))
                if word == len(used):
                    used.append(0)
                self.cells[cell.name] = replace(cell, word=first_word + word, shift=used[word])
                used[word] += cell.bits
        return len(used)

    def channels(self) -> Iterator[FifoCells]:
        """Every channel of every machine, those of arrays too."""
        waiting = [place for places in self.places.values() for place in places.values()]
        while waiting:
            place = waiting.pop(0)
            if isinstance(place, list):
                waiting += place
            elif isinstance(place, FifoCells):
                yield place

    def typed_states(self) -> int:
        """Count the states with any values in the fields' ranges, reachable or not."""
        count, in_channels = 1, set[str]()
        for channel in self.channels():
            in_channels |= {channel.length, channel.items}
            items = channel.item_maximum + 1
            count *= sum(items**length for length in range(channel.capacity + 1))
        for name, cell in self.cells.items():
            count *= 1 if name in in_channels else cell.span + 1
        return count

    def pack(self, values: dict[str, int]) -> tuple[int, ...]:
        """The words that hold these bits of all cells."""
        words = [0] * self.words
        for name, value in values.items():
            cell = self.cells[name]
            words[cell.word] |= value << cell.shift
        return tuple(words)

    def values(self, words: tuple[int, ...]) -> dict[str, int]:
        """The bits of each cell; the opposite of `pack`."""
        return {
            name: words[cell.word] >> cell.shift & ((1 << cell.bits) - 1)
            for name, cell in self.cells.items()
        }


class Packing:
    """Moves states between packed words and the machines of a real system.

    Raises OutOfRange when a field holds what its bound does not allow.
    """

    def __init__(self, system: System, layout: Layout) -> None:
        self._system, self._layout = system, layout
        self._leaves: list[tuple[Any, str, Any]] = list(self._all_leaves())

    def _all_leaves(self) -> Iterator[tuple[Any, str, Any]]:
        for (name, index), places in self._layout.places.items():
            machine = self._system.instance(name, index)
            for field, place in places.items():
                yield machine, field, place

    def load(self, words: tuple[int, ...]) -> None:
        """Set every field of every machine from the words."""
        for machine, field, place in self._leaves:
            if field == "state":
                machine.state = machine.STATES[self._value(words, place)]
            else:
                kind = machine.FIELDS[field]
                setattr(machine, field, self._loaded(words, place, kind, getattr(machine, field)))

    def _loaded(self, words: tuple[int, ...], place: Any, spec: FieldSpec, now: Any) -> Any:
        if isinstance(place, list):
            assert isinstance(spec, ArrayField)
            for position, item in enumerate(place):
                now[position] = self._loaded(words, item, spec.item, now[position])
            return now
        if isinstance(place, FifoCells):
            now.clear()
            items, mask = self._value(words, place.items), (1 << place.item_bits) - 1
            for position in range(self._value(words, place.length)):
                now.push(items >> position * place.item_bits & mask)
            return now
        value = self._value(words, place)
        if isinstance(spec, SetField):
            now.clear()
            now |= {number for number in range(value.bit_length()) if value >> number & 1}
            return now
        return bool(value) if isinstance(spec, BoolField) else value

    def _value(self, words: tuple[int, ...], name: str) -> int:
        cell = self._layout.cells[name]
        return (words[cell.word] >> cell.shift & ((1 << cell.bits) - 1)) + cell.low

    def words(self) -> tuple[int, ...]:
        """Pack every field of every machine."""
        words = [0] * self._layout.words
        for machine, field, place in self._leaves:
            value = getattr(machine, field)
            self._store(words, place, machine.STATES.index(value) if field == "state" else value)
        return tuple(words)

    def expect_unchanged(self, before: tuple[int, ...], step: str) -> None:
        """Raise Changed unless the machines are as they were; `step` says what was done."""
        after = self.words()
        if after == before:
            return
        values = self._layout.values(before), self._layout.values(after)
        raise Changed(
            step, next(cell for cell in self._layout.cells if values[0][cell] != values[1][cell])
        )

    def _store(self, words: list[int], place: Any, value: Any) -> None:
        if isinstance(place, list):
            for item, part in zip(place, value, strict=True):
                self._store(words, item, part)
        elif isinstance(place, FifoCells):
            if value.size() > place.capacity:
                raise OutOfRange("overflow", overflow(place.name, place.capacity))
            packed = 0
            for position, item in enumerate(value):
                if not 0 <= item <= place.item_maximum:
                    raise OutOfRange("range", outside(place.name, 0, place.item_maximum))
                packed |= int(item) << position * place.item_bits
            self._store(words, place.length, value.size())
            self._store(words, place.items, packed)
        elif isinstance(value, set):
            last = self._layout.cells[place].span.bit_length() - 1
            if value and not 0 <= min(value) <= max(value) <= last:
                raise OutOfRange("range", outside(place, 0, last))
            self._store(words, place, sum(1 << number for number in value))
        else:
            cell = self._layout.cells[place]
            if not 0 <= value - cell.low <= cell.span:
                raise OutOfRange("range", outside(place, cell.low, cell.low + cell.span))
            words[cell.word] |= int(value - cell.low) << cell.shift


class OutOfRange(Exception):
    """A field holds what it cannot hold in a closed system."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


class Changed(OutOfRange):
    """A stuttering step has left a field with another value."""

    def __init__(self, step: str, cell: str) -> None:
        super().__init__("changed", changed(step, cell))


def outside(name: str, low: int, high: int) -> str:
    """The message for a value that a field or the items of a channel cannot have."""
    return f"{name} leaves its range {low} to {high}"


def changed(step: str, cell: str) -> str:
    """The message for a step that was to change nothing."""
    return f"{step} has to change nothing, and changes {cell}"


def overflow(name: str, capacity: int) -> str:
    """The message for a channel that is given too much."""
    return f"{name} overflows: it holds at most {capacity}"
