"""One committer for all sinks of a job: gives each of them its own part of a checkpoint.

Decides how a committable tells whose it is. A job has one committer, and its commit of a checkpoint
is done when every sink's is; one that fails is repeated as a whole, which a committer allows
anyway. Readers may see one sink's part shortly before another's. Runs on the job's commit thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from epochgate.runtime.api.commit_topology import TopologyRefused
from epochgate.runtime.api.committer import (
    CombiningCommitter,
    Committables,
    Committer,
    FailedForKnownReason,
    UpdateAndRetryLater,
)
from epochgate.runtime.closing import close_all

_LABEL: Final = "epochgate.sink"


class UnknownSink(ValueError):
    """A committable is labelled with the name of a sink that the job does not have."""


def labelled(label: str, committables: Iterable[Any]) -> list[Any]:
    """Each committable with the name of its sink.

    >>> labelled("orders", [[1, 2]])
    [{'epochgate.sink': 'orders', 'committable': [1, 2]}]
    """
    return [{_LABEL: label, "committable": value} for value in committables]


def label_of(committable: Any, first: str) -> tuple[str, Any]:
    """The name of a committable's sink, and what that sink handed over; without a label it is of
    `first`.

    >>> label_of({"epochgate.sink": "orders", "committable": [1, 2]}, "rows")
    ('orders', [1, 2])
    >>> label_of([1, 2], "rows")
    ('rows', [1, 2])
    """
    if isinstance(committable, dict) and _LABEL in committable:
        return str(committable[_LABEL]), committable["committable"]
    return first, committable


def newest_by_label(held: Iterable[tuple[int, Committables]]) -> dict[str, int]:
    """Label, "" without one -> the newest of these checkpoints with committables of that sink.

    >>> newest_by_label([(4, {0: labelled("good", ["a"])}), (5, {0: ["b"]}), (6, {0: []})])
    {'good': 4, '': 5}
    """
    found: dict[str, int] = {}
    for checkpoint, committables in held:
        for values in committables.values():
            for value in values:
                label = label_of(value, "")[0]
                found[label] = max(found.get(label, checkpoint), checkpoint)
    return found


class CommitterOfSinks(Committer):
    """Commits to several sinks. `committers`: the label of each `SinkOperator` -> its committer.

    Committables without a label, from a start with a single sink, belong to the first committer.
    """

    def __init__(self, committers: Mapping[str, Committer]) -> None:
        """Raises ValueError without any, and TopologyRefused for one that combines."""
        if not committers:
            raise ValueError("a CommitterOfSinks needs at least one committer")
        for label, one in committers.items():
            if isinstance(one, CombiningCommitter):
                raise TopologyRefused(
                    f"the committer of sink {label!r} is a CombiningCommitter, {one!r}: the job "
                    "combines the committables of all its sinks in one. Give this sink a job of "
                    "its own, or a Committer that makes its manifest in `commit`"
                )
        self.committers = dict(committers)

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        """Open each committer with its own part. Raises UnknownSink, and errors of committers."""
        parts = {checkpoint: self._parts(flat) for checkpoint, flat in restored.items()}
        for label, committer in self.committers.items():
            committer.open(run_id, {number: part[label] for number, part in parts.items()})

    def check(self, committables: Committables) -> None:
        """Let each committer check its own part. Raises UnknownSink."""
        for label, part in self._parts(committables).items():
            self.committers[label].check(part)

    def commit(self, checkpoint_id: int, committables: Committables) -> bool:
        """Commit each part. Return False if all of them were committed before. Raises UnknownSink,
        and any error of a committer: FailedForKnownReason once the others have committed theirs,
        and UpdateAndRetryLater with the parts of all, since the others commit theirs again.
        """
        parts = self._parts(committables)
        failed: list[str] = []
        done = False
        for label in self.committers:
            try:
                done = (
                    self.committers[label].commit(checkpoint_id, parts[label]) is not False or done
                )
            except FailedForKnownReason as error:
                failed.append(f"sink {label!r}: {error}")
            except UpdateAndRetryLater as error:
                rest = _joined({**parts, label: error.rest})
                raise UpdateAndRetryLater(rest, f"sink {label!r}: {error}") from error
        if failed:
            raise FailedForKnownReason("; ".join(failed))
        return done

    def metrics(self) -> dict[str, int | float]:
        """Return the metrics of all committers, named `LABEL.NAME`."""
        return {
            f"{label}.{name}": value
            for label, committer in self.committers.items()
            for name, value in committer.metrics().items()
        }

    def close(self) -> None:
        """Close all committers, also one that was not opened; then raise the first error."""
        close_all(self.committers.values())

    def _parts(self, committables: Committables) -> dict[str, Committables]:
        first = next(iter(self.committers))
        parts: dict[str, Committables] = {label: {} for label in self.committers}
        for subtask, values in committables.items():
            for value in values:
                label, own = label_of(value, first)
                if label not in parts:
                    raise UnknownSink(
                        f"a committable of subtask {subtask} is for sink {label!r}, and this job "
                        f"has {', '.join(parts)}. Start the job with all sinks that it had at its "
                        "last checkpoint, or with a new checkpoint directory and new targets"
                    )
                parts[label].setdefault(subtask, []).append(own)
        return parts


def _joined(parts: Mapping[str, Committables]) -> Committables:
    """Join what each sink has to commit, as one."""
    found: Committables = {}
    for label, part in parts.items():
        for subtask, values in part.items():
            found.setdefault(subtask, []).extend(labelled(label, values))
    return found
