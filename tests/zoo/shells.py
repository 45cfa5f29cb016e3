"""Bugs planted in the runtime around the machines and in the user's sink: no checker reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from epochgate.runtime import Committables
from epochgate.runtime.shell.checkpoints import Answer, Checkpoints
from epochgate.runtime.shell.coordinators import RAISED, Coordinators
from epochgate.runtime.store import CompletedCheckpoint, StoredInfo
from tests.worlds.planted import leaky_fence as leaky_fence
from tests.zoo import bodies

# the runtime


def swallowed_error(patch: pytest.MonkeyPatch) -> None:
    """What a coordinator raises is logged, and the job goes on."""

    def guarded(self: Coordinators, number: int, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except OSError:
            return RAISED

    patch.setattr(Coordinators, "guarded", guarded)


def empty_not_stored(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint without committables is acknowledged and not stored."""
    save = Checkpoints._check_and_save

    def check_and_save(self: Checkpoints, whole: CompletedCheckpoint) -> Answer:
        if whole.committables:
            return save(self, whole)
        return Answer("stored", stored=StoredInfo("", 0, 0.0))

    patch.setattr(Checkpoints, "_check_and_save", check_and_save)


def one_committable(patch: pytest.MonkeyPatch) -> None:
    """A subtask has one committable in a checkpoint; a second one is taken for a repetition."""
    keep = Checkpoints.keep

    def kept(self: Checkpoints, checkpoint: int, subtask: int, parts: Any) -> None:
        keep(self, checkpoint, subtask, (parts[0], parts[1][:1]))

    patch.setattr(Checkpoints, "keep", kept)


def ledger_not_stored(patch: pytest.MonkeyPatch) -> None:
    """What waits to be committed is in no checkpoint but its own."""
    patch.setattr(Checkpoints, "keep_uncommitted", lambda *_: None)


def cleaned_at_failure(patch: pytest.MonkeyPatch) -> None:
    """With an attempt that fails goes what its subtask has handed over."""
    failed = Coordinators.failed

    def cleaned(self: Coordinators, number: int, place: int, attempt: int, reason: str) -> None:
        for held in self._master.commits._held.values():
            held.pop(place, None)
        failed(self, number, place, attempt, reason)

    patch.setattr(Coordinators, "failed", cleaned)


# the user's sink


def appending_sink(patch: pytest.MonkeyPatch) -> None:
    """A sink without keys."""

    def commit(self: bodies.Pages, checkpoint_id: int, committables: Committables) -> None:
        self.notes.table.append((checkpoint_id, committables))

    patch.setattr(bodies.Pages, "commit", commit)


def key_of_a_run(patch: pytest.MonkeyPatch) -> None:
    """A sink whose keys have the run in them, which is another one after a restart."""

    def commit(self: bodies.Pages, checkpoint_id: int, committables: Committables) -> None:
        known = self.__dict__.setdefault("of_this_run", set())
        if checkpoint_id not in known:
            known.add(checkpoint_id)
            self.notes.table.append((checkpoint_id, committables))

    patch.setattr(bodies.Pages, "commit", commit)
