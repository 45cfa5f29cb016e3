"""The status of a job, from what lies beside its checkpoints: while it runs, or after the fact.

Decides what the history and the claim to the checkpoint directory come to. A run that has told no
end and whose driver does not hold the directory's lock any more was killed; the operating system
drops the lock with the process. An object store has no such lock: there a run that has told no end
counts as running until a later driver claims the checkpoints, and the time of its last event is all
that is known. Changes nothing, and needs no Spark.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from epochgate.errors import UsageError
from epochgate.runtime.api.notebooks import fragment
from epochgate.runtime.filesystem import FILE_MODE
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.observing.history import recorded_runs
from epochgate.runtime.observing.history_files import FOLDER
from epochgate.runtime.observing.recorded_run import RecordedRun
from epochgate.runtime.observing.run_summary import RunSummary
from epochgate.runtime.store.claim import CLAIM_NAME, Holder, holder_of
from epochgate.runtime.store.errors import CheckpointStoreUnusable
from epochgate.runtime.store.inspection import last_epoch

State = Literal[
    "starting", "running", "restarting", "finished", "failed", "canceled", "killed", "not begun"
]
CHECKPOINTS: Final = "checkpoints"


class NothingToSee(UsageError):
    """There are no checkpoints, and there is no history, where a job's were expected."""


@dataclass(frozen=True)
class RunStatus:
    """A job at one moment.

    directory: of its checkpoints, or their URL. state: of the newest run, "killed" if its driver
    has died without telling an end, "starting" also while a driver that has told nothing yet holds
    the directory, "not begun" if there was no run. record: of the newest run; none if there was
    none. earlier_records: those before it that the history holds, the newest first. holder: of a
    directory. at: seconds since 1970.
    """

    directory: str
    state: State
    record: RecordedRun | None
    earlier_records: list[RecordedRun]
    holder: Holder | None
    at: float

    @property
    def run(self) -> RunSummary | None:
        """The newest run, summed up."""
        return None if self.record is None else self.record.summary

    @property
    def earlier(self) -> list[RunSummary]:
        """The runs before it, summed up."""
        return [record.summary for record in self.earlier_records]

    def is_well(self) -> bool:
        """Return whether it runs, or has ended as it should."""
        return self.state not in ("failed", "killed", "canceled")

    def _repr_html_(self) -> str:
        run = self.run
        if run is None:
            return fragment("RunStatus", self.state, [("checkpoints", self.directory)])
        figures = [
            ("job", run.job_id),
            ("checkpoints completed", run.checkpoints_completed),
            ("checkpoints aborted", run.checkpoints_aborted),
            ("resumes from checkpoint", run.resumes_from),
            ("failovers of one subtask", run.regional_restarts),
            ("failovers of all", run.global_restarts),
            ("warnings", run.warnings_count),
            *((name.replace("_", " "), value) for name, value in sorted(run.committed.items())),
        ]
        rows = [
            (f"{one['checkpoint_id']}", one["outcome"], f"{one['duration_s']:.2f} s")
            for one in reversed(run.checkpoints)
        ]
        head = ("checkpoint", "outcome", "duration")
        return fragment("RunStatus", self.state, figures, run.reason, head, rows)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        claim = None if self.holder is None else self.holder.claim
        return {
            "state": self.state,
            "at": self.at,
            "checkpoint_directory": self.directory,
            "is_held": None if self.holder is None else self.holder.is_held,
            "holder": None if claim is None else {"pid": claim.pid, "host": claim.host},
            "run": None if self.run is None else self.run.to_json(),
            "earlier_runs": [one.to_json() for one in self.earlier],
        }


def checkpoints_in(path: str) -> str:
    """Return the place of the checkpoints that belong to `path`.

    That is an ingestion's target as its command names it, the working directory beside it, or the
    checkpoints themselves, in a directory or in an object store.

    Raises NothingToSee, ObjectStoreUnusable, and CheckpointStoreUnusable if an object store cannot
    be asked.
    """
    path = path.removeprefix("delta:")
    if not is_url(path):
        return checkpoint_directory_in(path)
    beside = f"{path.rstrip('/')}.{CHECKPOINTS}"
    try:
        return beside if last_epoch(beside) else path
    except (OSError, ValueError) as error:
        raise CheckpointStoreUnusable(f"cannot list the checkpoints in {path}: {error}") from error


def checkpoint_directory_in(path: str) -> str:
    """Return the place of the checkpoints that belong to `path`: an ingestion's target, the working
    directory beside it, or the directory of checkpoints itself. Raises NothingToSee.
    """
    if "://" in path:
        raise NothingToSee(
            f"{path} is a URL of no object store that epochgate knows: name a directory, or the "
            "s3://, gs:// or abfss:// URL of a job's checkpoints"
        )
    path = os.path.abspath(path)
    parent, name = os.path.split(path)
    beside = os.path.join(parent, f".{name}.epochgate", CHECKPOINTS)
    for directory in (path, os.path.join(path, CHECKPOINTS), beside):
        refuse_unless_readable(directory)
        if any(os.path.exists(os.path.join(directory, one)) for one in (CLAIM_NAME, FOLDER)):
            return directory
    raise NothingToSee(
        f"{path} is no target of `epochgate ingest` with its checkpoints beside it, no working "
        "directory of one, and holds no checkpoints of a job. If they were kept elsewhere "
        "(--checkpoint-dir), name that directory"
    )


def refuse_unless_readable(directory: str) -> None:
    """Raise NothingToSee for a directory of another user, who keeps the checkpoints private."""
    for place in (os.path.dirname(directory), directory):
        if os.path.isdir(place) and not os.access(place, os.R_OK | os.X_OK, effective_ids=True):
            found = os.stat(place)
            raise NothingToSee(
                f"{place} may not be read by user {os.geteuid()}: it is of user {found.st_uid} and "
                f"has the permissions {stat.S_IMODE(found.st_mode):o}. Ask as that user, or as "
                f"root; {FILE_MODE}=640 in the job's environment lets its group read what is made "
                "from then on"
            )


def status_of(
    place: str, *, now: float, open_objects: Callable[[str], ObjectStore] | None = None
) -> RunStatus:
    """Tell the state of the job whose checkpoints are in the directory, or at the URL. Raises
    HistoryFormatUnknown, ObjectStoreUnusable, CheckpointStoreUnusable, OSError.
    """
    if is_url(place):
        try:
            return _in_objects(place, (open_objects or open_url)(place), now)
        except (OSError, ValueError) as error:
            raise CheckpointStoreUnusable(f"cannot read the history in {place}: {error}") from error
    # The claim first: a run that ends in between is then seen as ended, and not as killed.
    holder = holder_of(place)
    runs = recorded_runs(os.path.join(place, FOLDER))
    newest = runs[-1].summary if runs else None
    state = _state_of(newest, holder)
    is_new = state == "starting" and newest is not None and not _is_own(newest, holder)
    record = None if is_new or not runs else runs.pop()
    return RunStatus(place, state, record, runs[::-1], holder, now)


def _in_objects(place: str, objects: ObjectStore, now: float) -> RunStatus:
    epoch = last_epoch(place, lambda _: objects)
    runs = recorded_runs(objects)
    if not runs:
        return RunStatus(place, "not begun", None, [], None, now)
    if runs[-1].summary.epoch < epoch:
        return RunStatus(place, "starting", None, runs[::-1], None, now)
    record = runs.pop()
    return RunStatus(place, _state_in(record.summary), record, runs[::-1], None, now)


def _state_of(run: RunSummary | None, holder: Holder) -> State:
    if holder.is_held and (run is None or not _is_own(run, holder)):
        return "starting"
    if run is None:
        return "not begun"
    if run.ended_at is None and not holder.is_held:
        return "killed"
    return _state_in(run)


def _state_in(run: RunSummary) -> State:
    state: State = run.state  # type: ignore[assignment]  # it was read from a file
    return state


def _is_own(run: RunSummary, holder: Holder) -> bool:
    """Return whether the run is that of the last claim."""
    return holder.claim is None or run.epoch >= holder.claim.epoch
