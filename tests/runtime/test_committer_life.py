"""A committer lives on one thread, and whatever it raises, the job ends and lets everything go."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from epochgate.runtime import (
    Committables,
    Committer,
    JobConfiguration,
    JobLoop,
    JobMaster,
)
from epochgate.runtime.shell.blocking_work import ThreadedWork
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.store import CompletedCheckpoint, DirectoryCheckpointStore
from tests.runtime.test_loop import KeeperProvider, OneTask

COMMITTABLES: Committables = {0: [7]}


class TableCommitter(Committer):
    """Writes to a connection that only the thread which has made it may use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.committed = threading.Event()

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        self._connection = sqlite3.connect(self._path)
        self._connection.execute("create table if not exists rows (row)")

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        with self._connection:
            self._connection.executemany("insert into rows values (?)", [committables[0]])
        self.committed.set()

    def close(self) -> None:
        self._connection.close()


class Raising(TableCommitter):
    """Raises where the test says."""

    def __init__(self, path: Path, place: str) -> None:
        super().__init__(path)
        self._place = place

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        if self._place == "open":
            raise ConnectionError("the table is not there")
        super().open(run_id, restored)

    def close(self) -> None:
        super().close()
        raise ConnectionError("the server has gone")


def store_in(tmp_path: Path) -> DirectoryCheckpointStore:
    return DirectoryCheckpointStore(tmp_path / "checkpoints", job_id="job")


def master_with(tmp_path: Path, committer: Committer) -> JobMaster:
    """A job that has a checkpoint to commit as soon as it starts."""
    store = store_in(tmp_path)
    store.save(CompletedCheckpoint(1, "job", "run", 0.0, 1, committables=COMMITTABLES))
    return JobMaster(
        JobConfiguration("job", 1, (KeeperProvider(),), checkpoint_interval_s=None),
        transport=OneTask(),
        store=store,
        clock=MonotonicClock(),
        blocking=ThreadedWork,
        committer=committer,
    )


def run_until(committed: Callable[[float], bool], master: JobMaster) -> JobLoop:
    loop = JobLoop(master)
    loop.start()
    assert committed(10)
    master.cancel()
    assert loop.join(60).state == "canceled"
    return loop


def test_a_connection_of_one_thread_serves_a_committer_for_its_whole_life(tmp_path: Path) -> None:
    committer = TableCommitter(tmp_path / "table")
    loop = run_until(committer.committed.wait, master_with(tmp_path, committer))
    assert loop.master.report.warnings == []
    with sqlite3.connect(tmp_path / "table") as connection:
        assert connection.execute("select row from rows").fetchall() == [(7,)]


def left() -> set[threading.Thread]:
    """Our threads that are there; other tests of this process may have left some."""
    return {one for one in threading.enumerate() if one.name.startswith("epochgate-")}


def test_a_committer_that_cannot_be_closed_keeps_nothing_from_being_released(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    committer, threads = Raising(tmp_path / "table", "close"), left()
    with caplog.at_level(logging.ERROR):
        loop = run_until(committer.committed.wait, master_with(tmp_path, committer))
    [warning] = loop.master.report.warnings
    assert warning.startswith(
        "the committer could not be closed: ConnectionError: the server has gone\n  File "
    )
    assert "test_committer_life.py" in warning.splitlines()[1]
    assert "the server has gone" in caplog.text
    store_in(tmp_path).close()
    assert left() <= threads


def test_a_committer_that_cannot_be_opened_refuses_the_job_and_leaves_no_thread(
    tmp_path: Path,
) -> None:
    threads = left()
    with pytest.raises(ConnectionError, match="the table is not there"):
        master_with(tmp_path, Raising(tmp_path / "table", "open"))
    assert left() <= threads
