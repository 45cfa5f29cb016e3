"""The tasks' step of a sink's commits: the operators in front of the committer, the committer, and
those behind it, for one subtask's part of a checkpoint.

Decides in which order they run, and how the signals of a commit are read. What is asked, and when
again, is decided by the machine `SubtaskCommitter`. Runs on the task's only thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgpack

from epochgate.runtime.api.commit_topology import (
    CommittableBatch,
    CommittableOperator,
    operators_in_task,
)
from epochgate.runtime.api.committer import Committables, FailedForKnownReason, RetryLater
from epochgate.runtime.api.operator import FatalTaskError, OperatorContext
from epochgate.runtime.api.sink import Sink
from epochgate.runtime.api.task_committer import (
    BEFORE,
    FAILED,
    LATER,
    CommitRequest,
    CommittableSummary,
    TaskCommitter,
)
from epochgate.runtime.closing import Closeable, close_all

COUNTED: Final = {
    "": "committed",
    BEFORE: "already_committed",
    LATER: "retried",
    FAILED: "failed",
}
"""Signal of a committable -> the counter of it."""
SAID_MAX: Final = 3
"""Failed committables whose reasons are told, of each call."""


@dataclass
class Share:
    """The committables that one subtask handed over for a checkpoint, on their way through the
    tasks' step.

    subtask: which handed it over. is_prepared: the operators in front of the committer have
    processed it. rest: what is to be committed. done: what is. failed: how much has failed for a
    known reason. passed: what has come out of the step, once `rest` is empty. settled: how much was
    committed for it, of which nothing is kept.
    """

    subtask: int
    rest: list[Any]
    is_prepared: bool = False
    done: list[Any] = field(default_factory=list)
    failed: int = 0
    passed: list[Any] | None = None
    settled: int = 0

    def flat(self) -> list[Any]:
        """As it travels and is stored."""
        told = [self.subtask, self.rest, self.is_prepared, self.done, self.failed, self.passed]
        return [*told, self.settled]

    def settle(self) -> None:
        """Keep no longer what was committed; what has come of it is in `passed`."""
        self.settled, self.done = self.settled + len(self.done), []

    @property
    def summary(self) -> tuple[int, int]:
        """The number of committables that there are and were, and how many of them have failed."""
        return len(self.rest) + len(self.done) + self.settled + self.failed, self.failed


@dataclass
class StepOutcome:
    """The result of one try of the tasks' step. shares: one of each subtask whose part it was.
    before: how many were committed before. reason: why some are to be tried again; "" if none.
    warnings: what a person should know.
    """

    shares: list[Share]
    before: int = 0
    reason: str = ""
    warnings: list[str] = field(default_factory=list)


class TasksStep:
    """The tasks' step of one sink in one attempt."""

    def __init__(self, sink: Sink, context: OperatorContext) -> None:
        self._committer = sink.create_task_committer(context) if sink.has_task_committer else None
        self._first, self._then = operators_in_task(sink)
        self.counters = dict.fromkeys(COUNTED.values(), 0) if self._committer else {}
        """How many commits of a committable ended with each signal since the attempt began."""

    @property
    def has_operators(self) -> bool:
        """True if there are operators with a state."""
        return bool(self._first or self._then)

    def open(self, states: list[bytes] | None) -> None:
        """Restore the operators. Raises FatalTaskError for states of other operators."""
        operators = [*self._first, *self._then]
        if states is not None and len(states) != len(operators):
            raise FatalTaskError(
                f"the checkpoint holds states of {len(states)} operators between the commits in "
                f"the tasks, and the sink has {len(operators)}: start with the operators that the "
                "checkpoint was taken with"
            )
        for number, operator in enumerate(operators):
            operator.open(None if states is None else states[number])

    def snapshot(self) -> list[bytes]:
        """The states of the operators."""
        return [one.snapshot() for one in (*self._first, *self._then)]

    def commit(self, checkpoint_id: int, tries: int, shares: list[Share]) -> StepOutcome:
        """Commit the shares, as far as that goes. Raises what user code raises."""
        fresh = [share for share in shares if not share.is_prepared]
        for share, values in _processed(self._first, checkpoint_id, fresh, "rest"):
            share.rest, share.is_prepared = values, True
        outcome = StepOutcome(shares)
        if self._committer is None:
            for share in shares:
                share.done, share.rest = share.done + share.rest, []
        else:
            self._ask(self._committer, checkpoint_id, tries, outcome)
        return outcome

    def pass_on(self, checkpoint_id: int, shares: list[Share]) -> None:
        """Let the operators behind the committer process what is committed of the shares. Raises
        what user code raises.
        """
        for share, values in _processed(self._then, checkpoint_id, shares, "done"):
            share.passed = values

    def _ask(
        self, committer: TaskCommitter, checkpoint_id: int, tries: int, outcome: StepOutcome
    ) -> None:
        asked = [
            (share, CommitRequest(value, checkpoint_id, share.subtask, tries))
            for share in outcome.shares
            for value in share.rest
        ]
        if not asked:
            return
        requests = [request for _, request in asked]
        try:
            committer.commit(requests)
        except (RetryLater, FailedForKnownReason) as error:
            for request in requests:
                if not request.signal and isinstance(error, RetryLater):
                    request.retry_later(str(error))
                elif not request.signal:
                    request.failed(str(error))
        for share in outcome.shares:
            share.rest = []
        for share, request in asked:
            self.counters[COUNTED[request.signal]] += 1
            _read_signal(share, request, outcome)

    def close(self) -> None:
        """Release all resources; the first error is raised after all were closed."""
        held: list[Closeable] = [*self._first, *self._then]
        if self._committer is not None:
            held.append(self._committer)
        close_all(held)


def _read_signal(share: Share, request: CommitRequest, outcome: StepOutcome) -> None:
    if request.signal == LATER:
        share.rest.append(request.committable)
        outcome.reason = request.reason
    elif request.signal == FAILED:
        share.failed += 1
        if len(outcome.warnings) < SAID_MAX:
            outcome.warnings.append(
                f"checkpoint {request.checkpoint_id} goes on without committable "
                f"{str(request.committable)[:200]!r} of subtask {share.subtask}, whose rows are "
                f"lost: {request.reason}"
            )
        elif len(outcome.warnings) == SAID_MAX:
            outcome.warnings.append(
                f"checkpoint {request.checkpoint_id} goes on without further committables"
            )
    else:
        share.done.append(request.committable)
        outcome.before += request.signal == BEFORE


def _processed(
    operators: list[CommittableOperator], checkpoint_id: int, shares: list[Share], of: str
) -> list[tuple[Share, list[Any]]]:
    """Each share with what the operators make of it, one after the other."""
    values = {share.subtask: list(getattr(share, of)) for share in shares}
    if not shares:
        return []
    summaries = {
        share.subtask: CommittableSummary(checkpoint_id, share.subtask, *share.summary)
        for share in shares
    }
    for operator in operators:
        values = processed(operator, CommittableBatch(checkpoint_id, values, summaries))
        if foreign := set(values) - set(summaries):
            raise FatalTaskError(
                f"process of {_named(operator)} returned committables of subtasks "
                f"{sorted(foreign)}, and got those of {sorted(summaries)}; return them by the "
                "subtasks that it got"
            )
    return [(share, values.get(share.subtask, [])) for share in shares]


def processed(operator: CommittableOperator, batch: CommittableBatch) -> Committables:
    """Run one operator on a batch. Raises FatalTaskError unless the result is a dict of lists of
    plain values, and what the operator raises.
    """
    return by_subtask(f"process of {_named(operator)}", operator.process(batch))


def by_subtask(what: str, values: Any) -> Committables:
    """Committables that user code has returned. Raises FatalTaskError, which names `what`, unless
    they are a dict of lists of plain values.
    """
    is_by_subtask = isinstance(values, dict) and all(
        type(subtask) is int and isinstance(held, list) for subtask, held in values.items()
    )
    if not is_by_subtask:
        raise FatalTaskError(
            f"{what} is {values!r:.200}, and must be a dict of subtasks and lists of plain values"
            + ("; is a `return` missing?" if values is None else "")
        )
    try:
        msgpack.packb(values)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise FatalTaskError(f"{what} has values that are not plain: {error}") from error
    return dict(values)


def _named(operator: CommittableOperator) -> str:
    return f"{type(operator).__module__}.{type(operator).__qualname__}"
