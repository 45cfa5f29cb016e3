"""The shell around checkpoints: gathers their parts, stores them off the queue, and holds the last
completed one.

Handler of the ports of checkpoint and request. It decides nothing: the machines say which part
counts, when to store, and which checkpoint to go back to.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from epochgate.errors import EpochgateError, InvariantBroken
from epochgate.fsm import Timer
from epochgate.runtime.api.committer import Committables
from epochgate.runtime.api.job_events import CheckpointEnded, Outcome
from epochgate.runtime.api.raised import described, in_words, let_pass
from epochgate.runtime.api.reports import CheckpointReport, keep_recent, shortened, summed
from epochgate.runtime.api.state_versions import FIRST, Versioned, parted, rejoined
from epochgate.runtime.shell.blocking_work import in_lane
from epochgate.runtime.shell.client_requests import LATE, JobOver
from epochgate.runtime.shell.futures import reject, resolve
from epochgate.runtime.store import (
    CheckpointNotStorable,
    CheckpointOutcomeUnknown,
    CheckpointSaveFailed,
    CompletedCheckpoint,
    StoredInfo,
)
from epochgate.runtime.store.checkpoint import COMMITTED, DEBTS, GIVEN_UP, MISSING, flat_of
from epochgate.runtime.store.places import PLACES, STATES, Place

if TYPE_CHECKING:
    from epochgate.runtime.shell.job_master import JobMaster


STORE_LANE: Final = "store"
Number: TypeAlias = int | float
Figures: TypeAlias = tuple[Mapping[str, Number], Mapping[str, Mapping[str, Number]]]


class Answer(NamedTuple):
    """The trigger of the checkpoint that says how storing it has ended, and why."""

    trigger: str
    reason: str = ""
    stored: StoredInfo | None = None


class CheckpointAborted(EpochgateError):
    """A requested checkpoint was aborted; the message says why as far as that is known."""


@dataclass
class Parts:
    """The parts that have been gathered for the checkpoint under way."""

    checkpoint_id: int
    triggered_at_s: float
    timer: Timer
    coordinators: dict[str, bytes | None] = field(default_factory=dict)
    subtasks: dict[int, dict[str, bytes]] = field(default_factory=dict)
    versions: dict[int, dict[str, int]] = field(default_factory=dict)
    coordinator_versions: dict[str, int] = field(default_factory=dict)
    committables: Committables = field(default_factory=dict)
    uncommitted: dict[int, list[Any]] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)
    barriers_at_s: float | None = None
    """When the barriers went out; none before."""
    acknowledged_at_s: dict[int, float] = field(default_factory=dict)
    figures: dict[int, Mapping[str, Number]] = field(default_factory=dict)
    """Of each subtask, when it acknowledged."""
    stored: StoredInfo | None = None

    def without(self, parallelism: int) -> list[int]:
        """The subtasks whose part has not arrived."""
        return [subtask for subtask in range(parallelism) if subtask not in self.subtasks]


class Barriers:
    """The way of a checkpoint from the coordinators' parts, which it keeps, to the barriers, and
    what the tasks hear of its end; handler of the ports `results` and `tasks`.
    """

    def __init__(self, master: JobMaster, part: Callable[[int], Parts]) -> None:
        self._queue, self._places, self._part = master.queue, master.places, part
        self._operators = master.configuration.operator_ids
        self._versions = master.coordinators.versions
        master.job.bind("snapshot", "results", self)
        master.job.bind("checkpoint", "tasks", self)

    def keep(self, number: int, checkpoint: int, state: bytes | None) -> None:
        parts, operator_id = self._part(checkpoint), self._operators[number]
        parts.coordinators[operator_id] = state
        if self._versions[number] != FIRST:
            parts.coordinator_versions[operator_id] = self._versions[number]

    def barrier(self, subtask: int, identity: int, checkpoint: int) -> None:
        parts = self._part(checkpoint)
        if parts.barriers_at_s is None:
            parts.barriers_at_s = self._queue.now_s
        self._places.send(subtask, identity, ["barrier", checkpoint])

    def complete(self, subtask: int, identity: int, checkpoint: int) -> None:
        self._places.send(subtask, identity, ["complete", checkpoint])

    def aborted(self, subtask: int, identity: int, checkpoint: int) -> None:
        self._places.send(subtask, identity, ["aborted", checkpoint])


class Checkpoints:
    """The checkpoint under way, the last completed one, and those who wait for one."""

    def __init__(self, master: JobMaster, restored: CompletedCheckpoint | None) -> None:
        self._master = master
        self.latest = restored
        kept = {} if restored is None else restored.properties
        self._kept = {name: kept[name] for name in (GIVEN_UP, MISSING) if name in kept}
        self._begun_from = "" if restored is None else restored.begun_from
        self._parts: Parts | None = None
        self._saving: CompletedCheckpoint | None = None
        self._stored: StoredInfo | None = None
        self._requests: list[Future[int]] = []
        self._served: dict[int, list[Future[int]]] = {}
        self._figures: Figures | None = None
        self.told_completed: list[Callable[[], None]] = []
        self.told_aborted: list[Callable[[], None]] = []
        """Called when the checkpoint under way is completed, and when it never will be."""
        self.stage_states: dict[str, list[bytes]] | None = None
        """Of the operators with parallelism 1 between the commits, by their side; none where
        commits take one step.
        """
        master.job.bind("checkpoint", "driver", self)
        master.job.bind("request", "requester", self)
        Barriers(master, self.part)

    # what a restore needs

    def coordinator_state(self, operator_id: str, checkpoint: int) -> bytes | None:
        latest = self._restored(checkpoint)
        return None if latest is None else latest.coordinators.get(operator_id)

    def coordinator_version(self, operator_id: str, checkpoint: int) -> int:
        latest = self._restored(checkpoint)
        return FIRST if latest is None else latest.coordinator_versions.get(operator_id, FIRST)

    def subtask_states(self, subtask: int, checkpoint: int) -> dict[str, Versioned] | None:
        """As they travel to the tasks."""
        latest, subtask = self._restored(checkpoint), self._master.subtask_of[subtask]
        if latest is None or subtask not in latest.subtasks:
            return None
        states, versions = latest.subtasks[subtask], latest.versions.get(subtask)
        return rejoined(states, versions) if versions else dict(states)

    def _restored(self, checkpoint: int) -> CompletedCheckpoint | None:
        if checkpoint == 0:
            return None
        if self.latest is None or self.latest.checkpoint_id != checkpoint:
            raise InvariantBroken(f"checkpoint {checkpoint} is to be restored, not {self.latest}")
        return self.latest

    # requests

    def request(self, wanted: Future[int]) -> None:
        """Ask for a checkpoint on behalf of `wanted`."""
        self._requests.append(wanted)
        self._master.job.request.submit()

    def chosen(self, checkpoint: int) -> None:
        self._served[checkpoint] = self._requests
        self._requests = []

    def refused(self) -> None:
        requests, self._requests = self._requests, []
        for future in requests:
            reject(future, JobOver(LATE))

    def forget_requests(self, reason: str) -> None:
        """The job is over: no request will be served any more."""
        for number in list(self._served):
            self._requests += self._served.pop(number)
        while self._requests:  # one of whose callbacks hangs is not told again
            reject(self._requests.pop(0), CheckpointAborted(reason))

    # port of the checkpoint

    def started(self, checkpoint: int) -> None:
        queue = self._master.queue
        timeout_s = self._master.configuration.checkpoint_timeout_s
        timer = queue.post_later(timeout_s, self._expire, checkpoint)
        properties = dict(self._kept)
        self._parts = Parts(checkpoint, queue.now_s, timer, properties=properties)

    def _expire(self, checkpoint: int) -> None:
        timeout_s = self._master.configuration.checkpoint_timeout_s
        reason = f"it took longer than {timeout_s:g} s; {self._missing()}"
        self._master.job.checkpoint.expire(checkpoint, reason)

    def _missing(self) -> str:
        """Return whose part has not arrived; the timer of a checkpoint that is over finds none."""
        if self._parts is None:
            return "nothing is missing"
        operators = self._master.configuration.operator_ids
        if self._parts.barriers_at_s is None:
            is_on_wire = self._master.coordinators.is_on_wire
            late = [
                name
                for number, name in enumerate(operators)
                if name not in self._parts.coordinators or is_on_wire(number)
            ]
            return f"these coordinators have not completed it: {', '.join(late)}"
        missing = self._parts.without(self._master.configuration.parallelism)
        return f"these subtasks have not acknowledged it: {missing[:20]}"

    def keep(
        self, checkpoint: int, subtask: int, parts: tuple[dict[str, Versioned], list[Any]]
    ) -> None:
        subtask = self._master.subtask_of[subtask]
        whole = self.part(checkpoint)
        whole.subtasks[subtask], versions = parted(parts[0])
        if versions:
            whole.versions[subtask] = versions
        whole.acknowledged_at_s[subtask] = self._master.queue.now_s
        whole.figures[subtask] = self._master.report.metrics.get(subtask, {})
        if parts[1]:
            whole.committables[subtask] = parts[1]

    def keep_uncommitted(self, checkpoint: int, earlier: int, committables: Committables) -> None:
        """Store what an earlier checkpoint holds too, as plain values: [[subtask, values], ...]."""
        self.part(checkpoint).uncommitted[earlier] = flat_of(committables)

    def place(self, checkpoint: int, earlier: int, at: str) -> Place:
        """Return the place of an earlier checkpoint on its way to the global committer, to be
        filled in.
        """
        return self.part(checkpoint).places.setdefault(earlier, Place(at))

    def keep_debt(self, checkpoint: int, earlier: int, committables: Committables) -> None:
        """Store that the work after the commit of an earlier checkpoint is owed."""
        debts = self.part(checkpoint).properties.setdefault(DEBTS, {})
        debts[earlier] = flat_of(committables)

    def part(self, checkpoint: int) -> Parts:
        if self._parts is None or self._parts.checkpoint_id != checkpoint:
            raise InvariantBroken(f"checkpoint {checkpoint} is not under way: {self._parts}")
        return self._parts

    def save(self, checkpoint: int) -> None:
        parts, configuration = self.part(checkpoint), self._master.configuration
        if committed := self._master.commits.committed:
            parts.properties[COMMITTED] = dict(committed)
        if parts.places:
            parts.properties[PLACES] = {n: place.flat() for n, place in parts.places.items()}
        if self.stage_states is not None:
            parts.properties[STATES] = dict(self.stage_states)
        whole = CompletedCheckpoint(
            checkpoint_id=checkpoint,
            job_id=configuration.job_id,
            run_id=configuration.run_id,
            created_at=self._master.wall_clock(),
            parallelism=configuration.parallelism,
            coordinators=parts.coordinators,
            subtasks=parts.subtasks,
            committables=parts.committables,
            uncommitted=parts.uncommitted,
            properties=parts.properties,
            versions=parts.versions,
            coordinator_versions=parts.coordinator_versions,
            files=[],
            epoch=self._master.store.epoch,
            begun_from=self._begun_from,
        )
        self._saving = whole
        in_lane(
            self._master,
            STORE_LANE,
            lambda: self._check_and_save(whole),
            self._saved,
            checkpoint,
            what="the save of checkpoint {}",
            option="store_timeout_s",
            expired=self._save_expired,
        )

    def _save_expired(self, checkpoint: int, reason: str) -> None:
        unknown = f"it is unknown whether it is stored: {reason}"
        self._master.job.checkpoint.expire_save(checkpoint, unknown)

    def _check_and_save(self, whole: CompletedCheckpoint) -> Answer:
        checkpoint = whole.checkpoint_id
        try:
            if (committer := self._master.commits.committer) is not None:
                committer.check(whole.committables)
            self._note_files(whole)
        except BaseException as error:  # noqa: BLE001  # user code may raise anything
            let_pass(error)
            return Answer("refused", f"checkpoint {checkpoint} is refused: {described(error)}")
        try:
            return Answer("stored", stored=self._master.store.save(whole))
        except (CheckpointSaveFailed, CheckpointNotStorable) as error:
            return Answer("store_failed", f"checkpoint {checkpoint} could not be stored: {error}")

    def _note_files(self, whole: CompletedCheckpoint) -> None:
        """Let the checkpoint name what its coordinators' states refer to; on the store's thread."""
        named: set[str] = set()
        for provider in self._master.configuration.providers:
            state = whole.coordinators.get(provider.operator_id)
            if state is not None:
                named.update(provider.files_of(state))
        assert whole.files is not None, "it was made with none to name"
        whole.files[:] = sorted(named)

    def _saved(self, checkpoint: int, answer: Answer | None, error: BaseException | None) -> None:
        if answer is None:
            said = "" if error is None else f": {in_words(error)}"
            unknown = f"it is unknown whether checkpoint {checkpoint} is stored{said}"
            answer = Answer("store_unknown", unknown)
        machine = self._master.job.checkpoint
        if answer.trigger == "stored":
            self._stored = answer.stored
            machine.stored(checkpoint)
        else:
            self._master.warn(answer.reason)
            getattr(machine, answer.trigger)(checkpoint, answer.reason)

    def completed(self, checkpoint: int) -> None:
        parts = self.part(checkpoint)
        parts.stored, self._stored = self._stored, None
        self.latest, self._saving = self._saving, None
        now_s = self._end(parts, "completed")
        self._master.commits.hold(checkpoint, parts.committables)
        for tell in self.told_completed:
            tell()
        self._master.restarts.note_healthy(now_s)
        for future in self._served.pop(checkpoint, ()):
            resolve(future, checkpoint)

    def aborted(self, checkpoint: int, reason: str) -> None:
        error = CheckpointAborted(f"checkpoint {checkpoint}: {reason}")
        self._fail(checkpoint, "aborted", reason, error)

    def unknown(self, checkpoint: int, reason: str) -> None:
        self._fail(checkpoint, "unknown", reason, CheckpointOutcomeUnknown(reason))

    def _fail(self, checkpoint: int, outcome: Outcome, reason: str, error: EpochgateError) -> None:
        for tell in self.told_aborted:
            tell()
        self._end(self.part(checkpoint), outcome, reason)
        for future in self._served.pop(checkpoint, ()):
            reject(future, error)

    def _end(self, parts: Parts, outcome: Outcome, reason: str = "") -> float:
        """The time of the end."""
        now_s = self._master.queue.now_s
        parts.timer.is_cancelled = True
        self._parts = None
        report, is_completed = self._master.report, outcome == "completed"
        duration_s = now_s - parts.triggered_at_s
        stored_bytes = 0 if parts.stored is None else parts.stored.size_bytes
        report.checkpoints_completed += is_completed
        report.checkpoints_aborted += not is_completed
        keep_recent(
            report.checkpoints,
            CheckpointReport(parts.checkpoint_id, is_completed, duration_s, stored_bytes, reason),
        )
        if self._master.observers.are_there:
            self._tell(parts, outcome, duration_s, reason)
        return now_s

    def _tell(self, parts: Parts, outcome: Outcome, duration_s: float, reason: str) -> None:
        most, began_s = CheckpointEnded.SUBTASKS_MAX, parts.barriers_at_s
        slowest = heapq.nlargest(most, parts.acknowledged_at_s.items(), key=lambda one: one[1])
        missing: list[int] = []
        if outcome == "completed":
            self._figures = summed(parts.figures), self._master.coordinator_figures()
        figures, coordinators = self.figures()
        if outcome != "completed" and began_s is not None:
            missing = parts.without(self._master.configuration.parallelism)[:most]
        self._master.observers.tell(
            CheckpointEnded,
            checkpoint_id=parts.checkpoint_id,
            outcome=outcome,
            duration_s=duration_s,
            stored_bytes=0 if parts.stored is None else parts.stored.size_bytes,
            coordinators_s=0.0 if began_s is None else began_s - parts.triggered_at_s,
            subtasks_s={subtask: at_s - (began_s or 0.0) for subtask, at_s in slowest},
            missing=tuple(missing),
            store_s=0.0 if parts.stored is None else parts.stored.duration_s,
            reason=shortened(reason),
            figures=figures,
            coordinators=coordinators,
        )

    def figures(self) -> Figures:
        """Those of the tasks, summed over them, and of the coordinators, as of the last completed
        checkpoint of this run; as of now before the first.
        """
        if self._figures is not None:
            return self._figures
        return summed(self._master.report.metrics), self._master.coordinator_figures()
