"""The source's coordinator gives each split to one reader, and takes back what a reset forgets."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime import FatalTaskError, SendFuture
from epochgate.spark.files import FileEnumeration, FileSplit
from epochgate.spark.ingest.source_coordinator import FileSourceCoordinator, FirstLook
from tests.spark.ingest.simulated import make_older, write_source


class Gateway:
    """A gateway that keeps what was sent."""

    def __init__(self, subtask: int, attempt: int = 1) -> None:
        self.subtask, self.attempt = subtask, attempt
        self.sent: list[Any] = []

    def send_event(self, event: Any) -> SendFuture:
        self.sent.append(event)
        return SendFuture(event)

    def files(self) -> list[str]:
        splits = [FileSplit.from_list(event[1]) for event in self.sent if event[0] == "split"]
        return [Path(split.path).name for split in splits]


class Context:
    """A context whose time and threads a test moves by hand."""

    operator_id, parallelism = "source", 2

    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []
        self.work: list[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]] = []

    def fail_job(self, cause: BaseException | str) -> None:
        raise AssertionError(cause)

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        call(*arguments)

    def post_later(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> None:
        self.later.append(lambda: call(*arguments))

    def run_async(
        self, work: Callable[[], Any], then: Callable[[Any, BaseException | None], None]
    ) -> None:
        self.work.append((work, then))

    def look(self) -> None:
        """Finish the look for new files that is under way."""
        work, then = self.work.pop()
        try:
            outcome, error = work(), None
        except Exception as raised:  # noqa: BLE001  # handed over, as the runtime does
            outcome, error = None, raised
        then(outcome, error)


def coordinator(
    tmp_path: Path, context: Context, follow_every_s: float | None = None
) -> FileSourceCoordinator:
    def fresh() -> FileEnumeration:
        return FileEnumeration(tmp_path / "in", follow=follow_every_s is not None)

    first = fresh()
    first.discover()
    given: Any = context
    source = FileSourceCoordinator(given, fresh, FirstLook(0, first.snapshot()), follow_every_s)
    source.start()
    return source


def ready(source: FileSourceCoordinator, subtask: int, attempt: int = 1) -> Gateway:
    gateway = Gateway(subtask, attempt)
    source.execution_attempt_ready(subtask, attempt, gateway)
    return gateway


def request(source: FileSourceCoordinator, subtask: int) -> None:
    source.handle_event_from_operator(subtask, 1, ["request"])


def taken(source: FileSourceCoordinator, checkpoint_id: int) -> bytes:
    result: Future[bytes] = Future()
    source.checkpoint(checkpoint_id, result)
    return result.result(timeout=0)


def test_a_reset_takes_back_what_the_reader_got_after_the_checkpoint(tmp_path: Path) -> None:
    write_source(tmp_path, files=3)
    source = coordinator(tmp_path, Context())
    zero, one = ready(source, 0), ready(source, 1)
    request(source, 0)
    taken(source, 1)
    source.notify_checkpoint_complete(1)
    request(source, 0)
    assert zero.files() == ["000000.csv", "000010.csv"]
    source.execution_attempt_failed(0, 1, "killed")
    source.subtask_reset(0, 1)
    request(source, 1)
    request(source, 1)
    request(source, 1)
    assert one.files() == ["000010.csv", "000020.csv"]
    assert one.sent[-1] == ["no more"]


def test_a_reader_that_waits_gets_what_another_gives_back(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    source = coordinator(tmp_path, Context(), follow_every_s=1.0)
    zero, one = ready(source, 0), ready(source, 1)
    request(source, 0)
    request(source, 1)
    assert (zero.files(), one.files()) == (["000000.csv"], [])
    source.execution_attempt_failed(0, 1, "killed")
    source.subtask_reset(0, 0)
    assert one.files() == ["000000.csv"]


def test_a_checkpoint_during_a_look_for_files_is_completed_after_it(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    context = Context()
    source = coordinator(tmp_path, context, follow_every_s=1.0)
    context.later.pop()()
    write_source(tmp_path, files=1, first=10)
    result: Future[bytes] = Future()
    source.checkpoint(1, result)
    assert not result.done()
    context.look()
    source.reset_to_checkpoint(1, result.result(timeout=0))
    gateway = ready(source, 0)
    request(source, 0)
    request(source, 0)
    assert gateway.files() == ["000000.csv", "000010.csv"]


def test_a_checkpoint_is_completed_although_everything_was_reset_during_the_look(
    tmp_path: Path,
) -> None:
    write_source(tmp_path, files=1)
    context = Context()
    source = coordinator(tmp_path, context, follow_every_s=1.0)
    context.later.pop()()
    source.reset_to_checkpoint(0, None)
    result: Future[bytes] = Future()
    source.checkpoint(2, result)
    context.look()
    assert result.done()


def test_a_file_that_does_not_fit_ends_a_followed_job_for_good(tmp_path: Path) -> None:
    write_source(tmp_path, files=1)
    context = Context()
    coordinator(tmp_path, context, follow_every_s=1.0)
    (tmp_path / "in" / "other.csv").write_text("y\n1\n")
    make_older(tmp_path / "in" / "other.csv")
    context.later.pop()()
    with pytest.raises(FatalTaskError, match="schema changes"):
        context.look()
