"""Ready bodies for the usual parts: what is done to them, and what they must hold, is the same for
every coordinator with its operator, and for every source. A test says the rest.

    @simulate
    def test_numbers(world):
        read_once(world, Numbers(10), range(10))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from epochgate.runtime.api.committer import Committables, Committer
from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.operator import Operator, OperatorContext, Work
from epochgate.runtime.api.plain_values import insist_on_plain
from epochgate.runtime.api.sink import SinkWriter
from epochgate.runtime.api.sink_operator import SinkOperator
from epochgate.runtime.pipeline.program import MAP, SINK, SOURCE, MapOperator, PipelineProgram
from epochgate.runtime.pipeline.record_sink import RecordSink, RecordWriter
from epochgate.runtime.pipeline.waiting import IN_FLIGHT
from epochgate.runtime.source import (
    Fetched,
    ReaderContext,
    Source,
    SourceOperator,
    SourceProvider,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from epochgate.runtime.testing.worlds.job import WorldJob
from epochgate.runtime.testing.worlds.rig import lead
from epochgate.runtime.testing.worlds.world import World

SHOWN_MAX: Final = 20
LOOKS: Final = 4
"""How often a source's job is looked at, and asked for a checkpoint, while it reads."""
PACED: Final = 6
"""How many pieces of records an attempt reads one after the other, `PACE_S` apart, before it reads
as fast as it can: so that checkpoints and failures come between any two of them.
"""
PACE_S: Final = 1.0
HESITATION_S: Final = 0.01
"""Until the sink is ready for a batch."""


def agree(
    world: World,
    provider: CoordinatorProvider | Callable[[], CoordinatorProvider],
    operators: Callable[[], Operator],
    *,
    act: Callable[[Any, Any], Any],
    agrees: Callable[[Any, Sequence[Any]], Any],
    values: Sequence[Any] | Any = (1, 2, 3),
    subtasks: int = 2,
) -> WorldJob:
    """Claim that a coordinator and its operators agree in the end, whatever fails.

    `act(coordinator, value)` is called once for each value, on the job's event queue; a checkpoint
    is taken after each call, and completes in a run in which nothing fails. `agrees(coordinator,
    operators)` must be true once the faults have ended. `values` is a list, or a strategy of
    Hypothesis for a list. Raise ClaimBroken if a claim fails, and NotSimulated if no job can be
    made of the arguments.
    """
    requested: list[Future[int]] = []
    job = world.job(provider, operators=operators, subtasks=subtasks)
    world.eventually(
        "every checkpoint completes in a run without faults",
        lambda: bool(world.deviations or world.struck) or not _incomplete(requested),
        shows=lambda: "\n".join(_incomplete(requested)),
    )
    world.eventually(
        "coordinator and tasks agree",
        lambda: len(job.operators) == subtasks and agrees(job.coordinator, job.operators),
    )
    drawn = values if isinstance(values, Sequence) else world.draw(values, "values")
    for value in drawn:
        job.tell(act, value)
        requested.append(job.checkpoint())
    return job


def _incomplete(requested: Sequence[Future[int]]) -> list[str]:
    """The requests whose checkpoint did not complete, each with the reason."""
    told = []
    for number, future in enumerate(requested, 1):
        if not future.done():
            told.append(f"checkpoint request {number} has not completed")
        elif (error := future.exception()) is not None:
            told.append(f"checkpoint request {number} has failed: {error}")
    return told


def read_once(
    world: World, source: Source, expected: Iterable[Any], *, subtasks: int = 2
) -> WorldJob:
    """Claim that each record of a source is committed exactly once, whatever fails, and that a map
    between source and sink is called once for each record in an attempt.

    The sink is not ready when it is first asked for a batch. `expected` are all records of the
    source, in any order; the source must end. In some run a reader must continue inside a split.
    Raise ClaimBroken if a claim fails.
    """
    due = Counter(map(repr, expected))
    pages: dict[int, Committables] = {}
    positions: list[Any] = []
    mapped: list[Counter[str]] = []

    def opened(subtask: int, split: SourceSplit, position: Any) -> None:
        where = "its beginning" if position is None else f"position {position!r}"
        world.note(f"task {subtask}", f"opens split {split.split_id!r} at {where}")
        if position is not None:
            positions.append(position)

    def returned(enumerator: SplitEnumerator, splits: list[SourceSplit], subtask: int) -> None:
        ids = [split.split_id for split in splits]
        told = f"{type(enumerator).__name__}.add_splits_back({ids}, {subtask})"
        world.note_call(SOURCE, told)

    def committed() -> Counter[str]:
        return Counter(
            repr(record)
            for committables in pages.values()
            for records in committables.values()
            for record in records
        )

    if due:
        world.sometimes("a reader continues inside a split", lambda: bool(positions))
    world.always(
        "no record is committed twice, or one that the source does not have",
        lambda: committed() <= due,
        shows=lambda: f"too much: {_told(committed() - due)}",
    )
    world.always(
        "a map is called once for each record in an attempt",
        lambda: all(records <= due for records in mapped),
        shows=lambda: "\n".join(f"too often: {_told(each - due)}" for each in mapped if each - due),
    )
    job = world.job(
        SourceProvider(SOURCE, WatchedSource(source, opened, returned)),
        program=lambda subtask: PacedProgram(
            SourceOperator(WatchedSource(source, opened)),
            WatchedMap(mapped),
            SinkOperator(HesitantSink(None)),
        ),
        subtasks=subtasks,
        committer=lambda: Pages(pages),
        checkpoint_every_s=5.0,
        task_operators=(SOURCE, MAP, IN_FLIGHT, SINK),
    )
    world.eventually(
        "every record is committed",
        lambda: committed() == due,
        within_s=60.0,
        shows=lambda: f"missing: {_told(due - committed())}",
    )
    for _ in range(LOOKS):
        world.move(PACE_S)
        job.checkpoint()
    return job


Opened = Callable[[int, SourceSplit, Any], None]
"""Hears of each split that a subtask opens, and of the position."""


Returned = Callable[[SplitEnumerator, list[SourceSplit], int], None]
"""Hears of the splits that an enumerator gets back from a subtask."""


class WatchedSource(Source):
    """A source whose readers say which splits they open, and where, and whose enumerators say which
    came back.
    """

    def __init__(self, source: Source, opened: Opened, returned: Returned | None = None) -> None:
        self._source, self._opened, self._returned = source, opened, returned

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        enumerator = self._source.create_enumerator(context, state)
        if self._returned is not None:
            lead(enumerator, "add_splits_back", partial(self._note_returned, enumerator))
        return enumerator

    def _note_returned(
        self,
        enumerator: SplitEnumerator,
        add_splits_back: Callable[[list[SourceSplit], int], None],
        splits: list[SourceSplit],
        subtask: int,
    ) -> None:
        assert self._returned is not None
        self._returned(enumerator, splits, subtask)
        add_splits_back(splits, subtask)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return WatchedReader(self._source.create_reader(context), context.subtask, self._opened)


class WatchedReader(SourceReader):
    """A reader that says which splits it opens."""

    def __init__(self, reader: SourceReader, subtask: int, opened: Opened) -> None:
        self._reader, self._subtask, self._opened = reader, subtask, opened

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        self._opened(self._subtask, split, position)
        fetching = self._reader.open_split(split, position)
        try:
            for fetched in fetching:
                for record in () if fetched is None else fetched.records:
                    insist_on_plain(
                        f"a record of split {split.split_id!r}, which read_once sends to a sink,",
                        record,
                    )
                yield fetched
        finally:
            if isinstance(fetching, Generator):
                fetching.close()

    def handle_source_event(self, event: Any) -> None:
        self._reader.handle_source_event(event)

    def snapshot_state(self) -> Any:
        return self._reader.snapshot_state()

    def restore_state(self, state: Any) -> None:
        self._reader.restore_state(state)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._reader.notify_checkpoint_complete(checkpoint_id)

    def close(self) -> None:
        self._reader.close()


class WatchedMap(MapOperator):
    """Counts the records that each attempt maps."""

    def __init__(self, mapped: list[Counter[str]]) -> None:
        self._mapped: Counter[str] = Counter()
        mapped.append(self._mapped)

    def map(self, batch: Sequence[Any]) -> Sequence[Any]:
        self._mapped.update(map(repr, batch))
        return batch


class HesitantSink(RecordSink):
    """A sink that is not ready when it is first asked for a batch."""

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        return HesitantWriter(context)


class HesitantWriter(RecordWriter):
    """Is ready when it is asked for the second time."""

    is_ready = True

    def __init__(self, context: OperatorContext) -> None:
        super().__init__()
        self._context = context

    def may_write(self, batch: Any) -> bool:
        self.is_ready = not self.is_ready
        if not self.is_ready:
            self._context.wake_after(HESITATION_S)
        return self.is_ready


class PacedProgram(PipelineProgram):
    """A pipeline that reads its first pieces of records slowly."""

    pieces = 0
    due_s = 0.0

    def work(self) -> Work:
        """Read, or wait until the next piece is due."""
        context = self.operators[SOURCE].context
        wait_s = self.due_s - context.now_s()
        if wait_s > 0:
            context.wake_after(wait_s)
            return Work.IDLE
        outcome = super().work()
        if outcome is Work.DONE and self.pieces < PACED:
            self.pieces += 1
            self.due_s = context.now_s() + PACE_S
        return outcome


def _told(records: Counter[str]) -> str:
    """The first of some records."""
    return ", ".join(list(records.elements())[:SHOWN_MAX]) + ", ..." * (len(records) > SHOWN_MAX)


class Pages(Committer):
    """Keeps the records of each checkpoint, where every driver finds them."""

    def __init__(self, pages: dict[int, Committables]) -> None:
        self.pages = pages

    def commit(self, checkpoint_id: int, committables: Committables) -> None:
        """Committing again changes nothing."""
        self.pages[checkpoint_id] = committables
