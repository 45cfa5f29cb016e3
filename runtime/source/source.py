"""A source as a user writes it: what makes its enumerator on the driver and its readers in tasks.

One object serves both sides and travels to the tasks with the program, so it holds settings, not
connections. Source: Apache Flink's Source and SourceReader.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from epochgate.runtime.api.operator import no_wake_up
from epochgate.runtime.api.rescaling import NotRescalable
from epochgate.runtime.source.enumerator import SplitEnumerator, SplitEnumeratorContext
from epochgate.runtime.source.errors import SourceStateRefused
from epochgate.runtime.source.split import SourceSplit


@dataclass(frozen=True)
class Fetched:
    """Some records of a split, and what is known after them.

    `position`: a plain value from which reading goes on behind these records, not none.
    `watermark`: no later record of this split is older; any unit, the same in the whole alignment
    group; none if the source has no notion of it. Raises ValueError for a position of none, which
    would stand for the beginning of the split.
    """

    records: Sequence[Any]
    position: Any
    watermark: int | None = None

    def __post_init__(self) -> None:
        if self.position is None:
            raise ValueError(
                f"{len(self.records)} records were fetched without a position behind them; give "
                "one from which open_split can go on"
            )


@dataclass(frozen=True)
class ReaderContext:
    """The surroundings of a reader; `send_source_event` sends a plain value to the enumerator. A
    reader that has nothing at the moment and knows when it will calls `wake_after`, as an operator
    does. `last_snapshot` returns the checkpoint for which `snapshot_state` was called last in this
    attempt; 0 before the first.
    """

    operator_id: str
    subtask: int
    attempt: int
    parallelism: int
    send_source_event: Callable[[Any], None]
    wake_after: Callable[[float], None] = no_wake_up
    now_s: Callable[[], float] = time.monotonic
    last_snapshot: Callable[[], int] = int


class SourceReader(ABC):
    """Reads splits, on the task's only thread."""

    @abstractmethod
    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        """Read the split from its beginning (position none) or behind what was read before.

        Each item is one bounded piece of work; none says that there is nothing at the moment, and
        is asked again within about a second, or when a `wake_after` of the reader's context is due.
        The split is read when the iterator ends; a generator is closed when the attempt ends
        before. Several splits are read in turns.
        """

    def handle_source_event(self, event: Any) -> None:
        """The enumerator has sent `event`, a plain value. Raises TypeError unless it is
        overridden, which fails the attempt.
        """
        raise TypeError(
            f"{type(self).__name__} got {event!r} from its enumerator but handles no source "
            "events; override handle_source_event"
        )

    def snapshot_state(self) -> Any:
        """Return what a checkpoint holds beside the splits and their positions: a plain value, or
        none.
        """
        return None

    def restore_state(self, state: Any) -> None:
        """Go on from what `snapshot_state` of another attempt returned; not called for none."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is durable."""

    def close(self) -> None:
        """Release everything; also called when the attempt fails."""


class Source(ABC):
    """A source of a user's own; `state_version` counts the forms of the enumerator's state."""

    state_version: ClassVar[int] = 1

    @abstractmethod
    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        """Make an enumerator that begins from `state`, what `snapshot_state` of another returned,
        or afresh when it is none. Raising fails the job.
        """

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Make the reader of one attempt; called in the task."""

    def may_match(self, split: SourceSplit, values: Mapping[str, Any]) -> bool:
        """Return whether rows of the split may matter under these values of a control, by what the
        split says. False prunes it: no batch of a streaming query reads it. True, unless it is
        overridden. Called where Spark asks for offsets, once for each split; raising fails the
        query, and the split is judged again at the next start.
        """
        return True

    def upgrade_state(self, version: int, state: Any) -> Any:
        """The state of another version in the form of `state_version`.

        Refuses every version unless it is overridden: raises SourceStateRefused.
        """
        raise SourceStateRefused(
            f"the checkpoint holds state of version {version} of {type(self).__name__}, which "
            f"reads version {self.state_version}. Resume with the code that wrote it, override "
            "upgrade_state, or start again with an empty checkpoint directory"
        )

    def files_of(self, version: int, state: Any) -> Collection[str]:
        """The names of the files beside the checkpoints that an enumerator's state of this version
        refers to; a savepoint takes copies of them with it. None, unless it is overridden.
        """
        return ()

    def redistribute_reader_states(self, states: list[Any], parallelism: int) -> list[Any]:
        """The states of the first readers of `parallelism`, made of what `snapshot_state` of those
        before returned; called on the driver when a start resumes with another parallelism. Splits
        and their positions are redistributed without it.

        Refuses unless it is overridden: raises NotRescalable if there is any.
        """
        if states:
            raise NotRescalable(
                f"{len(states)} readers have a state of their own; override "
                f"{type(self).__name__}.redistribute_reader_states"
            )
        return []
