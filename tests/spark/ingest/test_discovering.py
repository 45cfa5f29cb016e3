"""New files of a source with a queue of hints: whatever the queue tells or leaves out, each file is
found once, and hints are done with once their files are known.
"""

from __future__ import annotations

import queue
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from epochgate.runtime import CoordinatorContext
from epochgate.runtime.limited import Limit
from epochgate.runtime.source import SourceCoordinator
from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.known_segments import KnownSegments
from epochgate.spark.ingest.file_enumerator import EnumeratedFileSource, FirstLook
from epochgate.spark.ingest.hints.hint import Heard, HintsFailed
from tests.runtime.source.by_hand import HandContext, HandJob

LIST_EVERY_S = 300.0
PATIENCE_S = 3.0


class HandQueue:
    """A queue that says what a test has it say; `asked` has the time for which it was to wait."""

    name = "the queue"

    def __init__(self) -> None:
        self.answers: queue.SimpleQueue[Heard | Exception] = queue.SimpleQueue()
        self.asked: list[float] = []
        self.confirmed: list[Any] = []
        self.faults: list[Exception] = []
        self.is_closed = False

    def hear(self, wait_s: float) -> Heard:
        self.asked.append(wait_s)
        answer = self.answers.get(timeout=PATIENCE_S)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def confirm(self, receipts: Sequence[Any]) -> None:
        if self.faults:
            raise self.faults.pop()
        self.confirmed += receipts

    def close(self) -> None:
        self.is_closed = True


class PostedContext(HandContext):
    """A context in which calls of other threads wait until the test takes them."""

    def __init__(self) -> None:
        super().__init__()
        self.posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        self.posted.put(lambda: call(*arguments))


class HintedJob(HandJob):
    """The coordinator of the files in `in`, beside a queue."""

    context: PostedContext

    def __init__(self, tmp_path: Path, settle_s: float = 0.0) -> None:
        self.folder, self.now_s = tmp_path / "in", 1e9
        self.folder.mkdir(exist_ok=True)
        segments = KnownSegments(tmp_path / "known")
        self.queues: list[HandQueue] = []

        def fresh() -> FileEnumeration:
            return FileEnumeration(
                self.folder,
                follow=True,
                segments=segments,
                settle_s=settle_s,
                now=lambda: self.now_s,
            )

        def hints(files: FileEnumeration) -> HandQueue:
            self.queues.append(HandQueue())
            return self.queues[-1]

        first = fresh()
        first.discover()
        self.files = EnumeratedFileSource(
            fresh, FirstLook(0, first), segments, follow_every_s=LIST_EVERY_S, hints=hints
        )
        self.context = PostedContext()
        self.coordinator = SourceCoordinator(cast(CoordinatorContext, self.context), self.files)
        self.coordinator.start()

    @property
    def queue(self) -> HandQueue:
        return self.queues[-1]

    @property
    def found(self) -> list[str]:
        """The names of the files that the enumerator has found, in their order."""
        return [Path(path).name for path in self.enumeration.seen]

    @property
    def enumeration(self) -> FileEnumeration:
        assert self.files.enumerator is not None
        return self.files.enumerator._files

    @property
    def figures(self) -> dict[str, int | float]:
        return dict(self.context.metrics)

    def write(self, *names: str, text: str = '{"a": 1}\n') -> None:
        for name in names:
            (self.folder / name).write_text(text)

    def take(self) -> None:
        """Take the next call that the queue's thread has posted."""
        self.context.posted.get(timeout=PATIENCE_S)()

    def hint(self, *names: str, receipts: Iterable[Any] = (), foreign: int = 0) -> None:
        """Let the queue name these files."""
        named = dict.fromkeys(str(self.folder / name) for name in names)
        self.queue.answers.put(Heard(named, [*receipts], foreign))
        self.take()

    def fail(self, error: Exception | None = None) -> None:
        self.queue.answers.put(error or HintsFailed("the queue", "it is gone"))
        self.take()

    def begin(self) -> None:
        """Open the queue, and list."""
        self.hint()
        self.context.finish_work()

    def named(self, *names: str, receipts: Iterable[Any] = ()) -> None:
        """Let the queue name files, and be done with them."""
        self.hint(*names, receipts=receipts)
        self.context.finish_work()
        self.take()

    def be_due(self) -> None:
        """Let the times of all timers be over."""
        self.context.tick()
        while self.context.work:
            self.context.finish_work()

    def end(self) -> None:
        self.coordinator.close()
        for one in self.queues:
            one.answers.put(Heard())


@pytest.fixture
def job(tmp_path: Path) -> Any:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"a": 1}\n')
    job = HintedJob(tmp_path)
    yield job
    job.end()


def test_a_listing_follows_the_opening_of_the_queue(job: HintedJob) -> None:
    job.write("b.jsonl")
    assert (job.found, job.context.work) == (["a.jsonl"], [])
    job.begin()
    assert job.found == ["a.jsonl", "b.jsonl"]


def test_a_file_that_a_hint_names_is_found_without_a_listing(job: HintedJob) -> None:
    job.begin()
    job.write("b.jsonl", "unsaid.jsonl")
    job.named("b.jsonl", receipts=["of b"])
    assert job.found == ["a.jsonl", "b.jsonl"]
    assert job.queue.confirmed == ["of b"]
    told = job.figures
    assert (told["hints_heard"], told["files_hinted"], told["files_unhinted"]) == (1, 1, 0)


def test_a_hint_is_done_with_once_the_enumerator_has_its_file(job: HintedJob) -> None:
    job.begin()
    job.write("b.jsonl")
    job.hint("b.jsonl", receipts=["of b"])
    assert job.queue.confirmed == []
    job.context.finish_work()
    assert job.found == ["a.jsonl", "b.jsonl"]
    job.take()
    assert job.queue.confirmed == ["of b"]


def test_a_file_without_a_hint_is_found_when_a_listing_is_due(job: HintedJob) -> None:
    job.begin()
    job.write("b.jsonl")
    assert [delay_s for delay_s, _ in job.context.timers] == [LIST_EVERY_S]
    job.be_due()
    assert job.found == ["a.jsonl"]
    job.begin()
    assert job.found == ["a.jsonl", "b.jsonl"]
    assert job.figures["files_unhinted"] == 1


def test_a_known_file_that_is_named_again_is_nothing_new(job: HintedJob) -> None:
    job.begin()
    before = job.figures["files_waiting"]
    job.named("a.jsonl", receipts=["first"])
    job.named("a.jsonl", receipts=["second"])
    assert (job.found, job.queue.confirmed) == (["a.jsonl"], ["first", "second"])
    assert job.figures["files_waiting"] == before


def test_hints_of_what_is_no_file_of_the_source_change_nothing(job: HintedJob) -> None:
    job.begin()
    job.write("_hidden.jsonl", "b.jsonl.tmp", "empty.jsonl", text="")
    (job.folder.parent / "other.jsonl").write_text('{"a": 1}\n')
    (job.folder / "linked").symlink_to(job.folder.parent)
    job.named(
        *("_hidden.jsonl", "b.jsonl.tmp", "empty.jsonl", "gone.jsonl", "../other.jsonl"),
        *("linked/other.jsonl", "\udce9.jsonl", "."),
        receipts=["all"],
    )
    assert (job.found, job.queue.confirmed) == (["a.jsonl"], ["all"])


def test_a_queue_that_fails_is_left_alone_for_longer_each_time_while_listings_go_on(
    job: HintedJob, caplog: pytest.LogCaptureFixture
) -> None:
    job.begin()
    waits = []
    for _ in range(3):
        job.fail()
        list_timer, rest_timer = job.context.timers
        waits.append(rest_timer[0])
        job.context.timers = [rest_timer]
        job.be_due()
        job.context.timers = [list_timer]
    assert waits == [1.0, 2.0, 4.0]
    assert job.figures["hints_up"] == 0
    assert [record.message for record in caplog.records if "it is gone" in record.message] == [
        "the queue cannot be asked for new files: it is gone. They are found by listing SOURCE, "
        "later than by notifications; it is asked again"
    ]
    job.hint()
    assert (job.figures["hints_up"], job.figures["hints_failed"]) == (1, 3)


def test_a_queue_that_hangs_counts_as_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = Limit("HEAR_LIMIT", 0.05)
    monkeypatch.setattr("epochgate.spark.ingest.discovering.HEAR_LIMIT", limit)
    job = HintedJob(tmp_path)
    job.write("a.jsonl")
    job.take()
    assert (job.found, job.figures["hints_up"]) == ([], 0)
    job.context.finish_work()
    assert job.found == ["a.jsonl"]
    job.end()


def test_files_are_found_by_listings_while_the_queue_is_left_alone(job: HintedJob) -> None:
    job.begin()
    job.fail(ValueError("as a library may raise"))
    job.write("b.jsonl")
    (list_timer, rest_timer) = job.context.timers
    assert (list_timer[0], rest_timer[0]) == (LIST_EVERY_S, 1.0)
    job.context.timers = [list_timer]
    job.be_due()
    assert job.found == ["a.jsonl", "b.jsonl"]
    assert len(job.queue.asked) == 2
    job.context.timers = [rest_timer]
    job.be_due()
    job.write("c.jsonl")
    job.named("c.jsonl")
    assert job.found == ["a.jsonl", "b.jsonl", "c.jsonl"]


def test_a_hint_that_could_not_be_confirmed_may_come_again(job: HintedJob) -> None:
    job.begin()
    job.write("b.jsonl")
    job.queue.faults.append(HintsFailed("the queue", "it is gone"))
    job.named("b.jsonl", receipts=["of b"])
    assert (job.found, job.queue.confirmed) == (["a.jsonl", "b.jsonl"], [])
    (_, rest) = job.context.timers
    job.context.timers = [rest]
    job.be_due()
    job.named("b.jsonl", receipts=["of b again"])
    assert (job.found, job.queue.confirmed) == (["a.jsonl", "b.jsonl"], ["of b again"])


def test_a_file_whose_hint_came_while_it_was_written_is_looked_at_again(tmp_path: Path) -> None:
    job = HintedJob(tmp_path, settle_s=5.0)
    job.write("a.jsonl")
    job.now_s = 4e9
    job.begin()
    job.write("b.jsonl")
    written_s = (job.folder / "b.jsonl").stat().st_mtime
    job.now_s = written_s + 1
    job.named("b.jsonl", receipts=["of b"])
    assert (job.found, job.queue.confirmed) == (["a.jsonl"], ["of b"])
    job.now_s = written_s + 6
    job.hint()
    assert job.queue.asked[-1] == 5.0
    job.context.finish_work()
    assert job.found == ["a.jsonl", "b.jsonl"]
    job.end()


def test_an_enumerator_that_goes_back_opens_its_own_queue_and_lists(job: HintedJob) -> None:
    job.begin()
    state = job.checkpoint(1)
    job.write("b.jsonl")
    job.named("b.jsonl", receipts=["of b"])
    left = job.queue
    job.coordinator.reset_to_checkpoint(1, state)
    assert left.is_closed
    assert job.found == ["a.jsonl"]
    job.begin()
    assert job.found == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_hinted_each_file_is_found_once(tmp_path: Path, seed: int) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.jsonl").write_text('{"a": 1}\n')
    job, drawn = HintedJob(tmp_path), random.Random(seed)
    job.begin()
    there, unsaid = ["0.jsonl"], list[str]()
    for number in range(1, 15):
        chance = drawn.random()
        if chance < 0.5:
            job.write(f"{number}.jsonl")
            there.append(f"{number}.jsonl")
            unsaid.append(there[-1])  # late, or never
        elif chance < 0.6:
            job.fail()
            job.be_due()
            if job.queue.answers.empty() and drawn.random() < 0.5:
                job.write(f"{number}.jsonl")
                there.append(f"{number}.jsonl")
        else:
            some = drawn.sample(there, drawn.randint(0, len(there)))
            drawn.shuffle(unsaid)
            some += [unsaid.pop() for _ in range(drawn.randint(0, len(unsaid)))]
            job.named(*some, "gone.jsonl", receipts=[number])
        if drawn.random() < 0.2:
            job.be_due()
            job.hint()
            job.context.finish_work()
    job.be_due()
    job.hint()
    job.context.finish_work()
    assert sorted(job.found) == sorted(there)
    assert job.figures["files_found"] <= len(there)
    names = [Path(split.path).name for split in job.enumeration.pending]
    assert sorted(names) == sorted(there)
    job.end()
