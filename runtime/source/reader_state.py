"""The state of a reader in a checkpoint: its splits with the position in each, and its own state.

Decides the packed form, and which forms of earlier versions are read. Pure; driver and tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from epochgate.runtime.source.errors import SourceStateRefused
from epochgate.runtime.source.split import SourceSplit, pack, unpack

FORMAT_VERSION: Final = 1
FORMAT_WITH_READER: Final = 2
"""The state of the reader stands behind the splits."""


@dataclass
class ReaderState:
    """`splits`: each with the position in it, none for one that was not begun. `own`: what
    `SourceReader.snapshot_state` returned.
    """

    splits: list[tuple[SourceSplit, Any]] = field(default_factory=list)
    own: Any = None

    def to_bytes(self) -> bytes:
        """Inverse of `from_bytes`. Raises ValueNotPlain.

        >>> state = ReaderState([(SourceSplit("a", [1, 2]), 1)])
        >>> ReaderState.from_bytes(state.to_bytes(), "reader 0") == state
        True
        """
        splits = [[split.split_id, split.value, position] for split, position in self.splits]
        if self.own is not None:
            what = "a list of [split id, split value, position], and the reader's state"
            return pack([FORMAT_WITH_READER, splits, self.own], what)
        return pack([FORMAT_VERSION, splits], "a list of [split id, split value, position]")

    @classmethod
    def from_bytes(cls, state: bytes, whose: str) -> ReaderState:
        """Read what `to_bytes` made for `whose` reader. Raises SourceStateRefused for another
        format.
        """
        version, splits, *own = unpack(state)
        if version not in (FORMAT_VERSION, FORMAT_WITH_READER):
            raise SourceStateRefused(
                f"the state of {whose} has format {version!r}, expected {FORMAT_VERSION} or "
                f"{FORMAT_WITH_READER}. Resume with the epochgate that wrote it, or start again "
                "with an empty checkpoint directory"
            )
        read = [(SourceSplit(split_id, value), position) for split_id, value, position in splits]
        return cls(read, own[0] if own else None)
