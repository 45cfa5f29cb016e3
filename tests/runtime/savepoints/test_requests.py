"""A savepoint asked for by another process: taken by the job that runs, and by no other's word."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest

from epochgate.runtime import CheckpointAborted
from epochgate.runtime.requests import listening
from epochgate.runtime.requests.asking import RequestNotAnswered, RequestRefused
from epochgate.runtime.requests.listening import JobRequests
from epochgate.runtime.requests.place import FOLDER, RequestPlace
from epochgate.runtime.savepoints import Savepoint
from epochgate.runtime.savepoints.asking import KIND, ask_savepoint, requested
from epochgate.runtime.store import DirectoryCheckpointStore
from tests.runtime.objects.stores import Memory
from tests.runtime.store.mediums import JOB, checkpoint_of

MADE = Savepoint("/somewhere", "id", JOB, 7, 3, 100)


class Job:
    """Answers as it is told; `asked` are the places that were named."""

    def __init__(self, outcome: Savepoint | Exception | None) -> None:
        self.outcome, self.asked = outcome, list[str | None]()

    def ask(self, to: str | None) -> Future[Savepoint]:
        self.asked.append(to)
        future: Future[Savepoint] = Future()
        if isinstance(self.outcome, Exception):
            future.set_exception(self.outcome)
        elif self.outcome is not None:
            future.set_result(self.outcome)
        return future


@contextmanager
def running(job: Job, directory: Path) -> Iterator[None]:
    """A driver that holds the directory, and looks for requests."""
    with DirectoryCheckpointStore(directory, job_id=JOB):
        requests = JobRequests(RequestPlace(str(directory)), {KIND: requested(job.ask)})
        requests.start()
        try:
            yield
        finally:
            requests.close()
            requests.join()


def test_the_job_is_asked_and_its_answer_told(tmp_path: Path) -> None:
    job = Job(MADE)
    with running(job, tmp_path):
        assert ask_savepoint(str(tmp_path), "/somewhere", timeout_s=60) == (MADE, True)
        assert ask_savepoint(str(tmp_path), timeout_s=60) == (MADE, True)
    assert job.asked == ["/somewhere", None]
    assert os.listdir(tmp_path / FOLDER) == [], "nothing is left of requests and answers"


def test_what_the_job_says_against_it_is_told(tmp_path: Path) -> None:
    with (
        running(Job(RuntimeError("checkpoint 3: a subtask declined it")), tmp_path),
        pytest.raises(RequestRefused, match="a subtask declined it"),
    ):
        ask_savepoint(str(tmp_path), timeout_s=60)


def test_a_job_that_takes_too_long_is_said_to(tmp_path: Path) -> None:
    job = Job(None)
    with DirectoryCheckpointStore(tmp_path, job_id=JOB):
        place = RequestPlace(str(tmp_path))
        with pytest.raises(RequestNotAnswered, match=r"within 0\.05 s"):
            ask_savepoint(str(tmp_path), timeout_s=0.05)
        assert place.requests() == [], "it is not taken later"
    assert job.asked == []


def test_a_job_that_ends_meanwhile_answers_what_it_has_taken(tmp_path: Path) -> None:
    waiting: Future[Savepoint] = Future()
    taken = threading.Event()

    def ask(to: str | None) -> Future[Savepoint]:
        taken.set()
        return waiting

    place = RequestPlace(str(tmp_path))
    requests = JobRequests(place, {KIND: requested(ask)})
    place.write("one.request", {"kind": KIND, "to": None})
    requests.look()
    assert taken.is_set()
    assert place.read("one.answer") == {"state": "taken"}
    waiting.set_result(MADE)
    requests.start()
    requests.close()
    requests.join()
    assert place.read("one.answer") == {"state": "done", **MADE.to_json()}


def test_of_a_job_that_ends_before_it_has_made_one_the_newest_checkpoint_is_copied(
    tmp_path: Path,
) -> None:
    store = DirectoryCheckpointStore(tmp_path / "checkpoints", job_id=JOB)
    store.write_file("known-files/one.segment", b"known")
    store.save(checkpoint_of(3))
    asked: Future[Savepoint] = Future()
    taken = threading.Event()

    def ask(to: str | None) -> Future[Savepoint]:
        taken.set()
        return asked

    requests = JobRequests(RequestPlace(store.path), {KIND: requested(ask)})

    def end() -> None:
        assert taken.wait(60)
        requests.close()
        asked.set_exception(CheckpointAborted("the job is finished: its input has ended"))
        store.close()

    ending = threading.Thread(target=end)
    requests.start()
    ending.start()
    made, is_of_running_job = ask_savepoint(store.path, timeout_s=60)
    ending.join()
    requests.join()
    assert (made.checkpoint_id, is_of_running_job) == (3, False)


def test_a_request_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, job = RequestPlace(str(tmp_path)), Job(MADE)
    place.write("one.request", {"kind": KIND, "to": "/etc/passwd"})
    user = os.geteuid()
    if user == 0:
        os.chown(tmp_path / FOLDER / "one.request", 4321, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    JobRequests(place, {KIND: requested(job.ask)}).look()
    answer = place.read("one.answer")
    assert answer is not None
    assert answer["state"] == "failed"
    assert f"user {user or 4321} has asked" in answer["reason"]
    assert job.asked == []


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"kind": "savepoint", "to": 3}', b'{"kind": "x"}', b"\xff"]
)
def test_what_is_no_request_is_answered_too(tmp_path: Path, content: bytes) -> None:
    place, job = RequestPlace(str(tmp_path)), Job(MADE)
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "one.request").write_bytes(content)
    JobRequests(place, {KIND: requested(job.ask)}).look()
    answer = place.read("one.answer")
    assert answer is not None
    assert answer["state"] == "failed"
    assert "the request cannot be read" in answer["reason"]
    assert job.asked == []


def test_a_request_that_is_withdrawn_hinders_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place, job = RequestPlace(str(tmp_path)), Job(MADE)
    place.write("two.request", {"kind": KIND, "to": "/x"})
    monkeypatch.setattr(place, "requests", lambda: ["one", "two"])
    JobRequests(place, {KIND: requested(job.ask)}).look()
    assert job.asked == ["/x"]
    assert not caplog.records


def test_a_look_that_hangs_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, may_end = threading.Event(), threading.Event()

    def hang(place: RequestPlace) -> list[str]:
        looks.set()
        assert may_end.wait(60)
        return []

    monkeypatch.setattr(RequestPlace, "requests", hang)
    monkeypatch.setattr(RequestPlace, "look_s", 0.0)
    monkeypatch.setattr(listening, "JOINED_WITHIN_S", 0.01)
    requests = JobRequests(RequestPlace(str(tmp_path)), {})
    requests.start()
    assert looks.wait(60)
    requests.close()
    requests.join()
    may_end.set()


def test_in_an_object_store_the_same_files_are_objects() -> None:
    memory, job = Memory(), Job(MADE)
    place = RequestPlace("s3://bucket/jobs/orders", memory.open)
    place.write("one.request", {"kind": KIND, "to": "s3://bucket/x"})
    requests = JobRequests(place, {KIND: requested(job.ask)})
    requests.look()
    assert job.asked == ["s3://bucket/x"]
    [key] = memory.open("s3://bucket/jobs/orders").list(FOLDER)
    assert json.loads(memory.open("s3://bucket/jobs/orders").get(key))["state"] == "done"


def test_where_no_driver_takes_a_request_in_an_object_store_there_is_none(tmp_path: Path) -> None:
    from epochgate.runtime.store import ObjectCheckpointStore

    memory, url = Memory(), "s3://bucket/jobs/orders"
    store = ObjectCheckpointStore(memory.open(url), job_id=JOB)
    store.write_file("known-files/one.segment", b"known")
    store.save(checkpoint_of(3))
    instants = iter(range(0, 1000, 10))
    made, is_of_running_job = ask_savepoint(
        url,
        str(tmp_path / "savepoint"),
        timeout_s=600,
        open_objects=memory.open,
        clock=lambda: float(next(instants)),
    )
    assert (made.checkpoint_id, is_of_running_job) == (3, False)
    assert memory.open(url).list(FOLDER) == []
