"""A user's enumerator asked for one batch after the other, instead of by readers that run.

Decides when work that the enumerator has asked for is done: before splits are taken, on the same
thread, the first time that its delay is over; where only what is there now is wanted, the first
time at once, since there is no other. Decides too that a batch has as many splits as its limit
allows, and at least one, without those that its filter prunes: splits whose rows cannot match, by
what the source knows of them, which judges as many at a time as the batch could still take. To the
enumerator it looks like a job with one reader that asks again whenever it was given something. What
is given out belongs to a plan; nothing ever comes back, because an enumerator whose plan did not
come about is closed, and another made of the state before.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from epochgate.runtime.api.coordinator_metrics import CoordinatorMetrics
from epochgate.runtime.api.raised import let_pass
from epochgate.runtime.api.send_future import SendFuture
from epochgate.runtime.source.batches.planned import SplitFilter
from epochgate.runtime.source.batches.planning import Taken
from epochgate.runtime.source.enumerator import ReaderInfo, SplitEnumerator
from epochgate.runtime.source.errors import (
    EnumeratorReplaced,
    ReaderNotRegistered,
    SplitsAfterNoMore,
    UnknownSubtask,
)
from epochgate.runtime.source.source import Source
from epochgate.runtime.source.split import SourceSplit, pack_splits

READER: Final = 0
PRUNED_MAX: Final = 10_000
"""Splits that are pruned by one plan, which names them; those behind are for the next plan."""


@dataclass
class _Work:
    """A piece of work that an enumerator has asked for, and from when on it is to be done."""

    work: Callable[[], Any]
    then: Callable[[Any], None]
    on_error: Callable[[BaseException], None] | None
    every_s: float | None
    due_s: float

    def do(self) -> None:
        """Once; what it raises goes where the enumerator has said."""
        try:
            result = self.work()
        except BaseException as error:  # what the user's code raises is the enumerator's to judge
            let_pass(error)
            if self.on_error is None:
                raise
            self.on_error(error)
        else:
            self.then(result)


class BatchEnumerator:
    """Runs the enumerator of a source, which implements `Choosing` for `Planning`.

    `begun`: version and state of a plan, none for nothing. `limit`: how many splits a batch may
    have; it is asked before each. `matching`: whether each of some splits may have rows that match
    a filter, in their order.
    """

    def __init__(
        self,
        source: Source,
        begun: tuple[int, Any] | None,
        limit: Callable[[Sequence[SourceSplit]], bool],
        matching: Callable[[Sequence[SourceSplit], SplitFilter], Iterable[bool]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._is_full, self._matching = source, limit, matching
        self.operator_id, self.parallelism, self._now = "source", 1, now
        self.metrics = CoordinatorMetrics()
        self.looks = True
        """Whether new splits are looked for; not where only what is there now is wanted."""
        self._has_looked = False
        self._works: list[_Work] = []
        self._posted: deque[Callable[[], None]] = deque()
        self._given: deque[SourceSplit] = deque()
        self._is_over = self._has_no_more = self._has_asked = False
        state = None
        if begun is not None:
            version, (state, rest) = begun
            self._given.extend(SourceSplit(*plain) for plain in rest)
            if version != source.state_version:
                state = source.upgrade_state(version, state)
        self._enumerator: SplitEnumerator = source.create_enumerator(self, state)
        self._enumerator.start()
        self._enumerator.add_reader(READER)

    # what `Planning` asks

    def take(self, by: SplitFilter | None) -> Taken:
        """The splits of the next batch, and the ids of those that the filter prunes."""
        self.look()
        taken = Taken()
        while some := self._next(taken):
            verdicts = [True] * len(some) if by is None else self._matching(some, by)
            for split, may_match in zip(some, verdicts, strict=True):
                if may_match:
                    taken.splits.append(split)
                else:
                    taken.pruned.append(split.split_id)
        return taken

    def _next(self, taken: Taken) -> list[SourceSplit]:
        """Those that the batch takes if none of them is pruned; none if it is full, or there are no
        more.
        """
        some: list[SourceSplit] = []
        while (
            not self._is_full([*taken.splits, *some]) and len(taken.pruned) + len(some) < PRUNED_MAX
        ):
            if not self._given and not self._has_asked:
                self._ask()
            if not self._given:
                break
            some.append(self._given.popleft())
        return some

    def _ask(self) -> None:
        """Once, and again when it was given something; not after it has said that it has none."""
        if not self._has_no_more:
            self._has_asked = True
            self._enumerator.handle_split_request(READER)
            self._run_posted()

    def look(self) -> None:
        """Do the work that is due."""
        is_only = not self.looks and not self._has_looked
        self._has_looked = True
        asked, self._works = self._works, []
        for work in asked:
            if not is_only and work.due_s > self._now():
                self._works.append(work)
                continue
            work.do()
            if self.looks and work.every_s is not None:
                self._works.append(replace(work, due_s=self._now() + work.every_s))
            self._run_posted()

    def state(self, batch: int) -> tuple[int, Any]:
        """Return the state of the enumerator, and what it has given out beyond the limit."""
        rest = [[split.split_id, split.value] for split in self._given]
        return self._source.state_version, [self._enumerator.snapshot_state(batch), rest]

    def forgotten(self, batch: int) -> None:
        """The plans up to this one are gone, as checkpoints that were subsumed."""
        self._enumerator.notify_checkpoint_complete(batch)
        self._run_posted()

    def close(self) -> None:
        """The enumerator has no say any more."""
        self._is_over = True
        self._enumerator.close()

    # SplitEnumeratorContext

    @property
    def registered_readers(self) -> Mapping[int, ReaderInfo]:
        return {READER: ReaderInfo(READER, 0, "localhost")}

    @property
    def registered_attempts(self) -> Mapping[int, Mapping[int, ReaderInfo]]:
        return {READER: {0: ReaderInfo(READER, 0, "localhost")}}

    def assign_split(self, split: SourceSplit, subtask: int) -> None:
        self.assign_splits({subtask: [split]})

    def assign_splits(self, assignment: Mapping[int, Sequence[SourceSplit]]) -> None:
        self._require_current("assign splits")
        for subtask, splits in assignment.items():
            self._require_known(subtask)
            if self._has_no_more:
                raise SplitsAfterNoMore(
                    f"the enumerator of {self.operator_id!r} assigned {len(splits)} splits after "
                    "it had said that there are no more"
                )
            pack_splits(splits)  # what is not plain is refused before anything is assigned
            self._given.extend(splits)
            self._has_asked = False

    def signal_no_more_splits(self, subtask: int) -> None:
        self._require_current("say that there are no more splits")
        self._require_known(subtask)
        self._has_no_more = True

    def send_event_to_source_reader(
        self, subtask: int, event: Any, *, attempt: int | None = None
    ) -> SendFuture:
        raise ReaderNotRegistered(
            f"the enumerator of {self.operator_id!r} sent {event!r} to a reader; in a streaming "
            "query readers come and go with each batch, and can be sent nothing. Put what they "
            "need into the split"
        )

    def call_async(
        self,
        work: Callable[[], Any],
        then: Callable[[Any], None],
        *,
        on_error: Callable[[BaseException], None] | None = None,
        delay_s: float = 0.0,
        every_s: float | None = None,
    ) -> None:
        if not self._is_over:
            self._works.append(_Work(work, then, on_error, every_s, self._now() + delay_s))

    def post(self, call: Callable[..., None], *arguments: Any) -> None:
        self._posted.append(lambda: call(*arguments))

    def fail_job(self, cause: BaseException | str) -> None:
        def fail() -> None:
            raise cause if isinstance(cause, BaseException) else RuntimeError(cause)

        self._posted.append(fail)

    def _run_posted(self) -> None:
        while self._posted:
            call = self._posted.popleft()
            if not self._is_over:
                call()

    def _require_current(self, what: str) -> None:
        if self._is_over:
            raise EnumeratorReplaced(
                f"an enumerator of {self.operator_id!r} wanted to {what} after it was closed"
            )

    def _require_known(self, subtask: int) -> None:
        if subtask != READER:
            raise UnknownSubtask(
                f"the enumerator of {self.operator_id!r} named subtask {subtask!r}; in a streaming "
                f"query there is {READER} alone"
            )
