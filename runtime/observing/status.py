"""The status of a job, from what lies beside its checkpoints: while it runs, or after the fact.

Decides what the history and the claim to the checkpoint directory come to. A run that has told no
end and whose driver does not hold the directory's lock any more was killed; the operating system
drops the lock with the process. Changes nothing, and needs no Spark.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Any, Final, Literal

from epochgate.errors import UsageError
from epochgate.runtime.filesystem import FILE_MODE
from epochgate.runtime.observing.history import FOLDER, read_history
from epochgate.runtime.observing.run_summary import RunSummary
from epochgate.runtime.store.claim import CLAIM_NAME, Holder, holder_of

State = Literal[
    "starting", "running", "restarting", "finished", "failed", "canceled", "killed", "not begun"
]
CHECKPOINTS: Final = "checkpoints"


class NothingToSee(UsageError):
    """There are no checkpoints, and there is no history, where a job's were expected."""


@dataclass(frozen=True)
class RunStatus:
    """A job at one moment.

    directory: of its checkpoints. state: of the newest run, "killed" if its driver has died without
    telling an end, "starting" also while a driver that has told nothing yet holds the directory,
    "not begun" if there was no run. run: the newest; none if there was none. earlier: those before
    it that the history holds, the newest first. at: seconds since 1970.
    """

    directory: str
    state: State
    run: RunSummary | None
    earlier: list[RunSummary]
    holder: Holder
    at: float

    def is_well(self) -> bool:
        """Return whether it runs, or has ended as it should."""
        return self.state not in ("failed", "killed", "canceled")

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        claim = self.holder.claim
        return {
            "state": self.state,
            "at": self.at,
            "checkpoint_directory": self.directory,
            "is_held": self.holder.is_held,
            "holder": None if claim is None else {"pid": claim.pid, "host": claim.host},
            "run": None if self.run is None else self.run.to_json(),
            "earlier_runs": [one.to_json() for one in self.earlier],
        }


def checkpoint_directory_in(path: str) -> str:
    """Return the directory of the checkpoints that belong to `path`: an ingestion's target, the
    working directory beside it, or the directory of checkpoints itself. Raises NothingToSee.
    """
    if "://" in path:
        raise NothingToSee(
            f"{path} is a URL: a job whose checkpoints are in an object store keeps no history. "
            "Its log, and its page of metrics (--metrics-port), tell how it is, and `epochgate "
            "checkpoints list URL` which checkpoints it keeps. If these are in a directory "
            "(--checkpoint-dir), name that"
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


def status_of(directory: str, *, now: float) -> RunStatus:
    """Return the status of the job whose checkpoints `directory` holds. Raises
    HistoryFormatUnknown, OSError.
    """
    # The claim first: a run that ends in between is then seen as ended, and not as killed.
    holder = holder_of(directory)
    runs = read_history(os.path.join(directory, FOLDER))
    state = _state_of(runs[-1] if runs else None, holder)
    is_new = state == "starting" and runs and not _is_own(runs[-1], holder)
    run = None if is_new or not runs else runs.pop()
    return RunStatus(directory, state, run, runs[::-1], holder, now)


def _state_of(run: RunSummary | None, holder: Holder) -> State:
    if holder.is_held and (run is None or not _is_own(run, holder)):
        return "starting"
    if run is None:
        return "not begun"
    if run.ended_at is None and not holder.is_held:
        return "killed"
    state: State = run.state  # type: ignore[assignment]  # it was read from a file
    return state


def _is_own(run: RunSummary, holder: Holder) -> bool:
    """Return whether the run is that of the last claim."""
    return holder.claim is None or run.epoch >= holder.claim.epoch
