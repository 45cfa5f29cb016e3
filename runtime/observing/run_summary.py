"""One start of a job, summed up from what it has told.

Decides what is kept of a run that may go on for months: counts, the newest of each list, and the
latest figures. It is made of events in their plain form, so that the driver, while the job runs,
and a reader of the history, long after, come to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from epochgate.runtime.api.reports import one_line

OF_THE_START: Final = (
    "job_id",
    "run_id",
    "epoch",
    "pid",
    "host",
    "parallelism",
    "topology",
    "commit_on_input",
)
KEPT_MAX: Final = 10
"""How many of the newest checkpoints, failures and warnings are kept."""
ATTEMPTS_MAX: Final = 1000
"""Of how many subtasks that have failed the attempt is kept."""
Plain = Mapping[str, Any]


@dataclass
class RunSummary:
    """The summary of one start. Times are in seconds since 1970.

    state: "starting" until all subtasks are up, "running", "restarting", or how it ended.
    resumed_from: the checkpoint it began from, 0 for none. epoch: of the claim to the checkpoint
    directory under which it ran. topology: the steps of its commits in words, "" without a
    committer; commit_on_input: the committer on the driver waits for no notice. attempts: of the
    subtasks that have failed. last_checkpoint: the last that was completed; committed: the figures
    of the committer after the last commit.
    """

    job_id: str = ""
    run_id: str = ""
    epoch: int = 0
    pid: int = 0
    host: str = ""
    parallelism: int = 0
    topology: str = ""
    commit_on_input: bool = False
    resumed_from: int = 0
    started_at: float = 0.0
    last_at: float = 0.0
    ended_at: float | None = None
    state: str = "starting"
    reason: str | None = None
    checkpoints_completed: int = 0
    checkpoints_aborted: int = 0
    last_checkpoint: dict[str, Any] | None = None
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    savepoints: list[dict[str, Any]] = field(default_factory=list)
    committed_upto: int = 0
    committed: dict[str, Any] = field(default_factory=dict)
    commit_failures: int = 0
    regional_restarts: int = 0
    global_restarts: int = 0
    attempts: dict[str, int] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    warnings_count: int = 0
    warnings: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    coordinators: dict[str, dict[str, Any]] = field(default_factory=dict)

    def apply(self, told: Plain) -> None:
        """Take in one event, in its plain form; kinds that are not known are passed over."""
        self.last_at = max(self.last_at, float(told.get("at", 0.0)))
        take = TAKES.get(str(told.get("event")))
        if take is not None:
            take(self, told)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Plain) -> RunSummary:
        """Inverse of `to_json`; names that are not known are passed over."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})

    @property
    def resumes_from(self) -> int:
        """The checkpoint from which another start would go on; 0 for none."""
        last = 0 if self.last_checkpoint is None else int(self.last_checkpoint["checkpoint_id"])
        return max(last, self.resumed_from)

    # one method for each kind

    def _job_started(self, told: Plain) -> None:
        for name in OF_THE_START:
            if name in told:
                setattr(self, name, told[name])
        self.resumed_from = self.committed_upto = told["checkpoint_id"]
        self.started_at = told["at"]

    def _subtasks_up(self, told: Plain) -> None:
        self.state = "running"

    def _checkpoint_ended(self, told: Plain) -> None:
        one = {key: value for key, value in told.items() if key not in ("event", *SUMS)}
        if told["outcome"] == "completed":
            self.checkpoints_completed += 1
            self.last_checkpoint = one
        else:
            self.checkpoints_aborted += 1
        _keep(self.checkpoints, {**one, "reason": one_line(str(told.get("reason", "")))})
        self._take_figures(told)

    def _savepoint_written(self, told: Plain) -> None:
        _keep(self.savepoints, {key: told[key] for key in ("at", "checkpoint_id", "path")})

    def _committed(self, told: Plain) -> None:
        self.committed_upto = max(told["checkpoint_ids"], default=self.committed_upto)
        if "figures" in told:
            self.committed = dict(told["figures"])

    def _commit_failed(self, told: Plain) -> None:
        self.commit_failures += 1
        _keep(self.failures, _failure(told, "the commit"))

    def _subtask_failed(self, told: Plain) -> None:
        self.regional_restarts += told["delay_s"] is not None
        _keep(self.failures, _failure(told, f"subtask {told['subtask']}"))

    def _subtask_restarted(self, told: Plain) -> None:
        subtask = str(told["subtask"])
        self.attempts.pop(subtask, None)  # the one that has changed last stands last
        self.attempts[subtask] = told["attempt"]
        while len(self.attempts) > ATTEMPTS_MAX:
            del self.attempts[next(iter(self.attempts))]

    def _job_restarts(self, told: Plain) -> None:
        self.global_restarts += told["delay_s"] is not None
        self.state = "restarting"
        _keep(self.failures, _failure(told, "the job"))

    def _warned(self, told: Plain) -> None:
        self.warnings_count += 1
        _keep(self.warnings, told["text"])

    def _job_ended(self, told: Plain) -> None:
        self.state, self.reason, self.ended_at = told["state"], told["reason"], told["at"]
        self._take_figures(told)

    def _take_figures(self, told: Plain) -> None:
        if told.get("figures"):
            self.figures = dict(told["figures"])
        if told.get("coordinators"):
            self.coordinators = {name: dict(one) for name, one in told["coordinators"].items()}


SUMS: Final = ("figures", "coordinators")
TAKES: Final[Mapping[str, Callable[[RunSummary, Plain], None]]] = {
    "JobStarted": RunSummary._job_started,
    "SubtasksUp": RunSummary._subtasks_up,
    "CheckpointEnded": RunSummary._checkpoint_ended,
    "SavepointWritten": RunSummary._savepoint_written,
    "Committed": RunSummary._committed,
    "CommitFailed": RunSummary._commit_failed,
    "SubtaskFailed": RunSummary._subtask_failed,
    "SubtaskRestarted": RunSummary._subtask_restarted,
    "JobRestarts": RunSummary._job_restarts,
    "Warned": RunSummary._warned,
    "JobEnded": RunSummary._job_ended,
}


def _keep(kept: list[Any], one: Any) -> None:
    kept.append(one)
    del kept[:-KEPT_MAX]


def _failure(told: Plain, who: str) -> dict[str, Any]:
    """Of what failed: when, in which attempt if that is known, and why in one line."""
    return {
        "at": told["at"],
        "who": who,
        "attempt": told.get("attempt"),
        "reason": one_line(str(told["reason"])),
    }
