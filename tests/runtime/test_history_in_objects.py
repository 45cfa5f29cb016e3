"""A history beside checkpoints in an object store tells the same, is bounded, and is each driver's
own.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochgate.cli import main
from epochgate.runtime import Warned
from epochgate.runtime.objects.client import ObjectStore, ObstoreObjects
from epochgate.runtime.observing.history import History, read_history, recorded_runs
from epochgate.runtime.observing.history_files import OBJECTS_MAX
from epochgate.runtime.observing.status import status_of
from epochgate.runtime.store import ObjectCheckpointStore
from tests.runtime.objects.stores import Memory
from tests.runtime.test_history import NOW, WHOLE, completed, ended, started, summed_up

URL = "s3://jobs/orders"


def stored(memory: Memory) -> ObjectCheckpointStore:
    return ObjectCheckpointStore(memory.open(URL), job_id="job")


def test_a_history_in_an_object_store_tells_the_same() -> None:
    memory = Memory()
    with stored(memory) as held:
        history = History(held.objects, epoch=held.epoch)
        for event in WHOLE:
            history.on_event(event)
    assert read_history(memory.open(URL)) == [replace(summed_up(*WHOLE), epoch=1)]
    status = status_of(URL, now=NOW, open_objects=memory.open)
    assert (status.state, status.run and status.run.checkpoints_completed) == ("running", 2)
    assert status.to_json()["is_held"] is None
    with stored(memory):
        later = status_of(URL, now=NOW, open_objects=memory.open)
        assert (later.state, later.run, len(later.earlier)) == ("starting", None, 1)


def test_a_driver_that_was_replaced_overwrites_no_history() -> None:
    memory = Memory()
    old = History(stored(memory).objects, epoch=1)
    old.on_event(started())
    new = History(stored(memory).objects, epoch=2)
    new.on_event(started("run-2", 50.0))
    old.on_event(Warned(60.0, "still here"))
    first, second = read_history(memory.open(URL))
    assert (first.run_id, first.warnings) == ("run-1", ["still here"])
    assert (second.run_id, second.warnings) == ("run-2", [])


def test_a_history_in_an_object_store_is_bounded() -> None:
    memory = Memory()
    objects = memory.open(URL)
    history = History(objects, epoch=1, file_bytes_max=3000)
    history.on_event(started())
    for number in range(1, 400):
        history.on_event(completed(number))
    assert len(objects.list("history")) == OBJECTS_MAX
    [run] = recorded_runs(objects)
    assert (run.summary.checkpoints_completed, run.summary.job_id) == (399, "job")
    ids = [one["checkpoint_id"] for one in run.checkpoints]
    assert ids == list(range(ids[0], 400))
    assert len(ids) >= OBJECTS_MAX


def test_a_store_that_fails_is_said_once_and_made_good(
    caplog: pytest.LogCaptureFixture,
) -> None:
    objects = Striking(Memory().open(URL))
    history = History(objects, epoch=1)
    history.on_event(started())
    objects.fails = True
    for event in WHOLE[1:]:
        history.on_event(event)
    assert len(caplog.records) == 1
    objects.fails = False
    history.on_event(ended())
    assert read_history(objects) == [replace(summed_up(*WHOLE, ended()), epoch=1)]


class Striking(ObstoreObjects):
    """Refuses to write while `fails`."""

    def __init__(self, objects: ObjectStore) -> None:
        assert isinstance(objects, ObstoreObjects)
        super().__init__(objects.url, objects._store)
        self.fails = False

    def put(self, key: str, data: bytes) -> None:
        if self.fails:
            raise OSError("the store does not answer")
        super().put(key, data)


def test_the_status_of_a_url_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = Memory()
    for module in ("observing.status", "store.inspection"):
        monkeypatch.setattr(f"epochgate.runtime.{module}.open_url", memory.open)
    history = History(stored(memory).objects, epoch=1)
    for event in WHOLE:
        history.on_event(event)
    assert main(["status", URL]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("job: running after ")
    assert "whether its driver lives, an object store does not tell" in shown
