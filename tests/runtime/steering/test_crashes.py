"""A driver or updater that dies, or meets an error, at any of its operations on the store."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from epochgate.errors import EpochgateError
from epochgate.runtime.entries.stores import DirectoryEntries, Entries, ObjectEntries, open_entries
from epochgate.runtime.filesystem import TEMPORARY_SUFFIX, LocalFileSystem
from epochgate.runtime.steering import Updating
from epochgate.runtime.steering.versions import Versions
from epochgate.runtime.testing.faulty_filesystem import Fault, FaultyFileSystem, SimulatedCrash
from tests.runtime.objects.faulty_objects import FaultyObjects
from tests.runtime.objects.stores import Memory
from tests.runtime.steering.coordinators import chosen
from tests.runtime.steering.steered import CONTROL, driver, entries_in, limit_of, update

URL = "s3://bucket/control"
KINDS: tuple[Literal["crash", "error"], ...] = ("crash", "error")


class Place:
    """A store that outlives processes; `struck` is what one process sees of it."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder, self._memory, self._kind = folder, Memory(), kind

    def whole(self) -> Entries:
        if self._kind == "directory":
            return entries_in(self._folder)
        return open_entries(URL, self._memory.open)

    def struck(self, fault: Fault | None) -> tuple[Entries, Callable[[], int]]:
        """The store with a fault, and how many operations have changed something."""
        if self._kind == "directory":
            files = FaultyFileSystem(LocalFileSystem(), fault)
            return DirectoryEntries(str(self._folder), files), lambda: len(files.operations)
        objects = FaultyObjects(self._memory.open, fault)
        return ObjectEntries(objects.open(URL)), lambda: len(objects.operations)


def faults(place: Callable[[int], Place], act: Callable[[Entries], object]) -> list[Fault]:
    """Every fault that can strike while a process acts."""
    entries, counted = place(-1).struck(None)
    act(entries)
    assert counted() > 0
    moments: tuple[Literal["before", "during", "after"], ...] = ("before", "during", "after")
    return [Fault(at, kind, when) for at in range(counted()) for kind in KINDS for when in moments]


@pytest.mark.parametrize("kind", ["directory", "objects"])
def test_a_batch_that_ran_sees_the_same_after_a_crash_at_any_operation(
    tmp_path: Path, kind: str
) -> None:
    def place(number: int) -> Place:
        return Place(tmp_path / str(number), kind)

    ran = []
    for number, fault in enumerate(
        faults(place, lambda entries: driver(entries).decide(0).value["limit"])
    ):
        there = place(number)
        update(there.whole(), limit=800)
        entries, _ = there.struck(fault)
        seen = None
        with contextlib.suppress(SimulatedCrash, EpochgateError):
            seen = driver(entries).decide(0).value["limit"]
        update(there.whole(), limit=700)
        again = limit_of(there.whole(), 0)
        assert again in ((800, 700) if seen is None else (seen,)), fault
        assert limit_of(there.whole(), 0) == again
        assert limit_of(there.whole(), 1) == 700
        ran.append(seen)
    assert {None, 800} == set(ran)


@pytest.mark.parametrize("kind", ["directory", "objects"])
def test_each_batch_has_one_choice_after_a_crash_at_any_operation(
    tmp_path: Path, kind: str
) -> None:
    def place(number: int) -> Place:
        made = Place(tmp_path / str(number), kind)
        assert chosen(made.whole(), 0) == 899
        return made

    ran = []
    for number, fault in enumerate(faults(place, lambda entries: chosen(entries, 1))):
        there = place(number)
        entries, _ = there.struck(fault)
        seen = None
        with contextlib.suppress(SimulatedCrash, EpochgateError):
            seen = chosen(entries, 1)
        # Each choice is one less than the one before, so that none was made twice or forgotten.
        assert [chosen(there.whole(), batch) for batch in (1, 2, 1)] == [898, 897, 898], fault
        ran.append(seen)
    assert {None, 898} == set(ran)


@pytest.mark.parametrize("kind", ["directory", "objects"])
def test_an_update_counts_once_or_not_at_all_after_a_crash_at_any_operation(
    tmp_path: Path, kind: str
) -> None:
    def place(number: int) -> Place:
        return Place(tmp_path / str(number), kind)

    def change(entries: Entries) -> int:
        return Updating(entries, "the store", CONTROL, "a test").update({"limit": 700})

    ends = []
    for number, fault in enumerate(faults(place, change)):
        there = place(number)
        update(there.whole(), limit=800)
        entries, _ = there.struck(fault)
        try:
            end = f"done as {change(entries)}"
        except SimulatedCrash:
            end = "crash"
        except EpochgateError as error:
            end = type(error).__name__
        newest, value = Versions(there.whole(), CONTROL).newest()
        assert value == {"limit": 700 if newest == 2 else 800}, fault
        assert newest == 2 or end != "done as 2", fault
        assert newest == 1 or end != "UpdateFailed", fault
        assert update(there.whole(), limit=600) == newest + 1
        ends.append(end)
    assert {"done as 2", "crash", "UpdateFailed" if kind == "directory" else "done as 2"} <= {*ends}


def test_what_a_crash_has_left_is_removed_once_it_is_old(tmp_path: Path) -> None:
    for at in range(2, 40):
        entries, _ = Place(tmp_path, "directory").struck(Fault(at, "crash"))
        with contextlib.suppress(SimulatedCrash):
            for batch in range(9):
                driver(entries).decide(batch)
    left = [path for path in tmp_path.rglob("*") if path.name.endswith(TEMPORARY_SUFFIX)]
    assert left
    driver(entries_in(tmp_path)).decide(9)
    assert all(path.exists() for path in left)
    for path in left:
        os.utime(path, (0, 0))
    driver(entries_in(tmp_path)).decide(10)
    assert not any(path.exists() for path in left)
