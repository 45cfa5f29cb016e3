"""Which splits were handed to which subtask since which checkpoint, for a reset to take back.

Decides: what `take_back` returns. Leaves to others: when a checkpoint is taken or complete, and
what becomes of the splits that come back. The rules are those of Flink's SplitAssignmentTracker:

    assign a, b | on_checkpoint(1) | assign c | on_checkpoint(2) | assign d | reset to 1
    a, b are in the subtask's state of checkpoint 1; c and d are not, and come back.

- An assignment is uncheckpointed until the coordinator's next checkpoint N, then it belongs to N.
- complete(N) forgets what belongs to N or an earlier one: the subtasks' own state holds it.
- An aborted checkpoint keeps its assignments until a later one completes: no state holds them.

Pure; lives on the driver's protocol thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar

Split = TypeVar("Split")


class SplitAssignmentTracker(Generic[Split]):
    """Remembers assignments by checkpoint and subtask, in the order in which they were made."""

    def __init__(self) -> None:
        self._uncheckpointed: dict[int, list[Split]] = {}
        self._by_checkpoint: dict[int, dict[int, list[Split]]] = {}

    @property
    def uncheckpointed(self) -> Mapping[int, Sequence[Split]]:
        """Assignments since the last checkpoint, by subtask."""
        return self._uncheckpointed

    @property
    def by_checkpoint(self) -> Mapping[int, Mapping[int, Sequence[Split]]]:
        """Assignments of checkpoints not known to be complete, by checkpoint id and subtask."""
        return self._by_checkpoint

    def record(self, subtask: int, splits: Iterable[Split]) -> None:
        """Note that `splits` have just been assigned to `subtask`."""
        new = list(splits)
        if new:
            self._uncheckpointed.setdefault(subtask, []).extend(new)

    def on_checkpoint(self, checkpoint: int) -> None:
        """The coordinator takes `checkpoint`: what is uncheckpointed belongs to it now."""
        of_checkpoint = self._by_checkpoint.setdefault(checkpoint, {})
        for subtask, splits in self._uncheckpointed.items():
            of_checkpoint.setdefault(subtask, []).extend(splits)
        self._uncheckpointed = {}

    def complete(self, checkpoint: int) -> None:
        """`checkpoint` is complete: forget the assignments up to and including it."""
        for done in [known for known in self._by_checkpoint if known <= checkpoint]:
            del self._by_checkpoint[done]

    def take_back(self, subtask: int, restored_checkpoint: int) -> list[Split]:
        """Remove and return what `subtask`, restored to that checkpoint, no longer knows of;
        NO_CHECKPOINT, which is less than every checkpoint's id, for the beginning.

        These are its splits of later checkpoints, in ascending order, then the uncheckpointed ones.
        """
        returned: list[Split] = []
        for checkpoint in sorted(self._by_checkpoint):
            if checkpoint > restored_checkpoint:
                returned.extend(self._by_checkpoint[checkpoint].pop(subtask, ()))
        returned.extend(self._uncheckpointed.pop(subtask, ()))
        return returned

    def assigned(self) -> dict[int, list[Split]]:
        """Everything that is remembered, by subtask, in the order in which it was assigned."""
        everything: dict[int, list[Split]] = {}
        by_time = [self._by_checkpoint[known] for known in sorted(self._by_checkpoint)]
        for of_time in (*by_time, self._uncheckpointed):
            for subtask, splits in of_time.items():
                everything.setdefault(subtask, []).extend(splits)
        return everything
