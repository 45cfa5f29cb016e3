"""The notes on queries beside a target: compared and exchanged, never written over."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime import RetryLater
from epochgate.spark.streaming.notes import (
    DirectoryNotes,
    Note,
    Notes,
    NoteStore,
    ObjectNotes,
)
from tests.runtime.objects.stores import Memory


@pytest.fixture(params=["directory", "objects", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], NoteStore]:
    """Another look at one place, as another process has it."""
    if request.param == "directory":
        return lambda: DirectoryNotes(str(tmp_path / "notes"))
    if request.param == "objects":
        memory = Memory()
        return lambda: ObjectNotes(memory.open("memory://notes"))
    dsn = request.getfixturevalue("dsn")
    from epochgate.spark.streaming.targets.postgres import PostgresNotes

    return lambda: PostgresNotes(dsn, "public.numbers")


def test_what_is_written_is_read_by_another_process(opened: Callable[[], NoteStore]) -> None:
    note = Note("/check", {"4": "a", "5": "b"}, 3, 2)
    store = opened()
    store.exchange(store.read(), {"q": note})
    assert dict(opened().read().queries) == {"q": note}


def test_of_two_that_have_read_the_same_one_is_told_to_read_again(
    opened: Callable[[], NoteStore],
) -> None:
    one, other = opened(), opened()
    read = one.read()
    assert other.read() == read
    one.exchange(read, {"q": Note("/one")})
    with pytest.raises(RetryLater):
        other.exchange(read, {"q": Note("/other")})
    assert opened().read().queries["q"].location == "/one"
    other.exchange(other.read(), {"q": Note("/other")})
    assert opened().read().queries["q"].location == "/other"


def drop(store: Any) -> None:
    """Remove the notes with their target."""
    if isinstance(store, DirectoryNotes):
        shutil.rmtree(store._directory)
    elif isinstance(store, ObjectNotes):
        for key in store._objects.list("_epochgate/queries"):
            store._objects.delete(key)
    else:
        with store._running() as run:
            run("drop table {notes}")


@pytest.mark.parametrize(("before", "behind"), [(1, 1), (3, 1), (1, 0)])
def test_who_has_read_before_the_target_was_dropped_is_told_to_read_again(
    opened: Callable[[], NoteStore], before: int, behind: int
) -> None:
    one, other = opened(), opened()
    for number in range(before):
        one.exchange(one.read(), {"q": Note("/one", number=number)})
    read = one.read()
    drop(other)
    for number in range(behind):
        other.exchange(other.read(), {"q": Note("/other", number=number)})
    with pytest.raises(RetryLater):
        one.exchange(read, {"q": Note("/one", number=7)})
    assert opened().read().queries == ({"q": Note("/other")} if behind else {})


def test_many_exchanges_leave_little(opened: Callable[[], NoteStore]) -> None:
    store = opened()
    for batch in range(20):
        notes = store.read()
        note = notes.queries.get("q", Note("/check"))
        store.exchange(notes, notes.with_note("q", note.with_batch(batch, "/check", f"d{batch}")))
    assert store.read().queries["q"].offsets == {"18": "d18", "19": "d19"}
    if isinstance(store, ObjectNotes):
        assert len(store._objects.list("_epochgate/queries")) <= 8


def test_a_note_tells_other_offsets_of_the_newest_two_batches() -> None:
    note = Note("/check").with_batch(4, "/check", "a").with_batch(5, "/check", "b")
    assert note.differs(5, "c")
    assert note.differs(4, "c")
    assert not note.differs(5, "b")
    assert not note.differs(4, "a")
    assert not note.differs(6, "c")
    assert not note.differs(5, "")


def test_a_location_belongs_to_the_query_that_was_noted_last() -> None:
    notes = Notes(1, {"old": Note("/check")})
    assert notes.before("new", "/check") == "old"
    assert notes.before("old", "/check") == ""
    assert notes.elsewhere("old", "/copy") == "/check"
    assert notes.with_note("new", Note("/check")) == {"new": Note("/check")}
    assert notes.with_note("new", Note("/other")).keys() == {"old", "new"}
