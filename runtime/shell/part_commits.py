"""One try of the tasks' step of a commit, by the sinks of one task, and the message that says what
has come of it.

Decides nothing: which sink a committable belongs to is said by its label. What belongs to a sink
without a step in the tasks goes on as it is. Runs on the task's only thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from epochgate.runtime.api.committing import Share, StepOutcome
from epochgate.runtime.api.operator import FatalTaskError, Operator
from epochgate.runtime.api.sink_operator import SinkOperator
from epochgate.runtime.api.transport import Message


def commit_part(
    operators: Iterable[Operator], checkpoint_id: int, tries: int, part: list[Any]
) -> Message:
    """Commit a subtask's part of a checkpoint, as far as it goes; `part`: its shares as they
    travel. Raises what user code raises.
    """
    shares = [Share(*flat) for flat in part]
    sinks = [one for one in operators if isinstance(one, SinkOperator) and one.commits_in_task]
    whole = StepOutcome([])
    parts = []
    for sink in sinks:
        outcome = sink.commit(checkpoint_id, tries, [_of(sink, share) for share in shares])
        parts.append(outcome.shares)
        whole.before += outcome.before
        whole.reason = outcome.reason or whole.reason
        whole.warnings += outcome.warnings
    for number, share in enumerate(shares):
        _rejoin(share, sinks, [of_sink[number] for of_sink in parts])
    if not any(share.rest for share in shares):
        _pass_on(checkpoint_id, sinks, shares)
    said = [checkpoint_id, tries, [share.flat() for share in shares], whole.before, whole.warnings]
    if any(share.rest for share in shares):
        return ["commit_later", *said, whole.reason]
    return ["committed", *said]


def insist_on_step(operators: Iterable[Operator], *, is_asked: bool) -> None:
    """Raise FatalTaskError where the job asks its tasks to commit and no sink of this program does,
    or the other way round.
    """
    sinks = [one for one in operators if isinstance(one, SinkOperator) and one.commits_in_task]
    if is_asked == bool(sinks):
        return
    fault = (
        "the job asks its tasks to commit, and no sink of this program does"
        if is_asked
        else "a sink of this program commits in the tasks, and the job does not ask for that"
    )
    raise FatalTaskError(
        f"{fault}: give JobConfiguration(topology=CommitTopology.of(sink, committer)) with the "
        "sink of the program's SinkOperator"
    )


def _of(sink: SinkOperator, share: Share) -> Share:
    """Return the part of a share that is this sink's."""
    return Share(
        share.subtask,
        [one for one in share.rest if sink.owns(one)],
        share.is_prepared,
        [one for one in share.done if sink.owns(one)],
        share.failed,
    )


def _rejoin(share: Share, sinks: list[SinkOperator], parts: list[Share]) -> None:
    """Put together what the sinks have made of their parts of a share, and what is of none."""
    others = [one for one in share.done if not any(sink.owns(one) for sink in sinks)]
    if not share.is_prepared:
        others += [one for one in share.rest if not any(sink.owns(one) for sink in sinks)]
    share.failed += sum(part.failed - share.failed for part in parts)
    share.rest = [one for part in parts for one in part.rest]
    share.done = [one for part in parts for one in part.done] + others
    share.is_prepared = True


def _pass_on(checkpoint_id: int, sinks: list[SinkOperator], shares: list[Share]) -> None:
    """Say of each share what has come out of the step, once all of it is committed."""
    for share in shares:
        share.passed = [one for one in share.done if not any(sink.owns(one) for sink in sinks)]
    for sink in sinks:
        parts = [_of(sink, share) for share in shares]
        sink.pass_on(checkpoint_id, parts)
        for share, part in zip(shares, parts, strict=True):
            assert share.passed is not None, "each share was given its list above"
            share.passed += part.passed or []
    for share in shares:
        share.settle()
