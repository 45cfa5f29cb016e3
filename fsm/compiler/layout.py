"""Where each field of a closed system lies in the packed state: cells of at most 63 bits in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from epochgate.fsm.compiler.ir import Cell
from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.fields import ArrayField, BoolField, FieldSpec, FifoField, IntField
from epochgate.fsm.system import System

WORD_BITS = 63


@dataclass(frozen=True)
class FifoCells:
    """A FIFO is a length and its items, oldest in the lowest bits; unused bits are 0."""

    length: str
    items: str
    item_bits: int
    item_maximum: int
    capacity: int


Place = "str | FifoCells | list[Any]"


class Layout:
    """Cells of all machines of a system, by machine instance and field."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.cells: dict[str, Cell] = {}
        self.initial: dict[str, int] = {}
        self.places: dict[tuple[str, tuple[int, ...]], dict[str, Any]] = {}
        for name, machine in system.MACHINES.items():
            for instance in system.instances(name):
                prefix = name + "".join(f"[{i}]" for i in instance.index)
                places: dict[str, Any] = {}
                if len(machine.STATES) > 1:
                    start = machine.STATES.index(machine.INITIAL)
                    places["state"] = self._cell(f"{prefix}.state", len(machine.STATES) - 1, start)
                for field, spec in machine.FIELDS.items():
                    places[field] = self._place(f"{prefix}.{field}", spec)
                self.places[name, instance.index] = places
        self.words = self._pack()

    def _place(self, name: str, spec: FieldSpec) -> Any:
        if isinstance(spec, ArrayField):
            size = self._constant(name, spec.over)
            return [self._place(f"{name}[{i}]", spec.item) for i in range(size)]
        if isinstance(spec, FifoField):
            maximum = self._constant(name, spec.item)
            capacity = self._constant(name, spec.capacity)
            bits = max(1, maximum.bit_length())
            if bits * capacity > WORD_BITS:
                raise DeclarationError(
                    f"{name}: {capacity} items of {bits} bits do not fit into {WORD_BITS} bits; "
                    f"give the channel a smaller capacity or its items a smaller bound"
                )
            return FifoCells(
                self._cell(f"{name}.length", capacity, 0),
                self._cell(f"{name}.items", (1 << bits * capacity) - 1, 0),
                bits,
                maximum,
                capacity,
            )
        if isinstance(spec, BoolField):
            return self._cell(name, 1, int(spec.start))
        if isinstance(spec, IntField):
            return self._cell(name, self._constant(name, spec.bound), spec.start)
        raise DeclarationError(f"{name}: {spec!r} is no field")

    def _constant(self, name: str, bound: str | int) -> int:
        if isinstance(bound, int):
            return bound
        value = self._system.constants.get(bound)
        if value is None:
            raise DeclarationError(
                f"{name} is bounded by {bound!r}, which is no constant of "
                f"{type(self._system).__name__}; add it to CONSTANTS, a field without a bound "
                f"cannot be checked"
            )
        return value

    def _cell(self, name: str, maximum: int, start: int) -> str:
        self.cells[name] = Cell(name, maximum.bit_length(), maximum)
        self.initial[name] = start
        return name

    def _pack(self) -> int:
        """First fit, widest cells first; cells that can only be 0 need no bits."""
        used: list[int] = []
        for cell in sorted(self.cells.values(), key=lambda c: -c.bits):
            for word, bits in enumerate(used):
                if bits + cell.bits <= WORD_BITS:
                    break
            else:
                word = len(used)
                used.append(0)
            self.cells[cell.name] = replace(cell, word=word, shift=used[word])
            used[word] += cell.bits
        return max(1, len(used))

    def pack(self, values: dict[str, int]) -> tuple[int, ...]:
        """The words that hold these values of all cells."""
        words = [0] * self.words
        for name, value in values.items():
            cell = self.cells[name]
            words[cell.word] |= value << cell.shift
        return tuple(words)

    def unpack(self, words: tuple[int, ...]) -> dict[str, int]:
        """The values of all cells."""
        return {
            name: (words[cell.word] >> cell.shift) & ((1 << cell.bits) - 1)
            for name, cell in self.cells.items()
        }
