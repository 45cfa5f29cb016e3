"""The parts of states that checkpoints share: which are known, which are new, which are needless.

Decides when a part is written (its content is in no checkpoint that this driver has restored or
saved) and when it is removed (no retained checkpoint refers to it). A part's name holds the claim
of the driver that wrote it, so that a driver which was replaced never removes what another has
written: content alone would be no name, since both may write the same. Leaves to the stores where
parts lie, and to `encoding` how a checkpoint refers to them. For one thread at a time; no I/O.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

FOLDER: Final = "parts"
PART_BYTES_MIN: Final = 16 * 1024
"""A smaller part is written with each checkpoint: a file of its own would cost more."""
_NAME: Final = re.compile(rf"{FOLDER}/[0-9]+-[0-9a-f]+-[0-9]+\.part")


@dataclass(frozen=True)
class Part:
    """A part that is stored: its name beside the checkpoints, its sha256, and its bytes."""

    name: str
    digest: bytes
    length: int


def is_part_name(name: object) -> bool:
    """Return whether a part can have this name.

    >>> is_part_name("parts/3-0a1b-12.part"), is_part_name("parts/../claim.json")
    (True, False)
    """
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


@dataclass
class Writing:
    """The parts of one checkpoint that is being saved; new: what is to be written, by name."""

    prefix: str
    first: int
    known: dict[bytes, Part]
    parts: dict[bytes, Part] = field(default_factory=dict)
    new: dict[str, bytes] = field(default_factory=dict)

    def keep(self, piece: bytes) -> Part | None:
        """The part of this content; none if the piece is better written with the checkpoint."""
        if len(piece) < PART_BYTES_MIN:
            return None
        digest = hashlib.sha256(piece).digest()
        part = self.parts.get(digest) or self.known.get(digest)
        if part is None:
            name = f"{FOLDER}/{self.prefix}-{self.first + len(self.new)}.part"
            part = Part(name, digest, len(piece))
            self.new[name] = piece
        self.parts[digest] = part
        return part


class Parts:
    """The parts of the checkpoints that are stored; `prefix` is of the driver's claim."""

    def __init__(self, prefix: str) -> None:
        self._prefix, self._written = prefix, 0
        self._of: dict[int, list[Part]] = {}
        self._known: dict[bytes, Part] = {}

    def found(self, checkpoint_id: int, parts: Iterable[Part]) -> None:
        """A stored checkpoint refers to these; one that refers to none is not kept track of."""
        if held := list(parts):
            self._of[checkpoint_id] = held
        else:
            self._of.pop(checkpoint_id, None)

    def may_be_reused(self, checkpoint_id: int) -> None:
        """The checkpoint was restored, so no driver before has removed what it refers to."""
        self._known.update({part.digest: part for part in self._of.get(checkpoint_id, ())})

    def begin(self) -> Writing:
        """Another checkpoint is to be saved."""
        return Writing(self._prefix, self._written, self._known)

    def written(self, writing: Writing) -> None:
        """Its new parts are there, or may be: their names are used up."""
        self._written += len(writing.new)

    def saved(self, checkpoint_id: int, writing: Writing) -> None:
        """The checkpoint is stored."""
        self.found(checkpoint_id, writing.parts.values())
        self.may_be_reused(checkpoint_id)

    def retire(self, retained: Collection[int]) -> list[str]:
        """Forget all other checkpoints; the names of the parts to which none refers any more."""
        if not self._of and not self._known:
            return []
        before = self._names()
        self._of = {number: parts for number, parts in self._of.items() if number in retained}
        needed = self._names()
        self._known = {d: part for d, part in self._known.items() if part.name in needed}
        return sorted(before - needed)

    def needless(self, names: Iterable[str]) -> list[str]:
        """Of the parts that are there, those to which no stored checkpoint refers."""
        needed = self._names()
        return [name for name in names if is_part_name(name) and name not in needed]

    def _names(self) -> set[str]:
        return {part.name for parts in self._of.values() for part in parts}
