"""The production job on which a schedule is played: what is there to happen, and how it is made to
happen.

Job master, transport, queue, store and clock are those of `SimulatedJob`; messages move, timers
fire and saves end only when an action says so. Which step is which action is `actions`' affair.

Simplifications of the closed job are taken over: a commit takes no time, unless commits are slow; a
restore arrives as soon as it is sent, and so does the word to leave for a process that comes too
late; an event is handled in the step in which its confirmation is heard, after all that the process
said before. Notices of completed and aborted checkpoints decide nothing; they arrive together with
the message behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import msgpack

from epochgate.fsm import Timer
from epochgate.fsm.inside import machine_behind
from epochgate.models.attempt import STARTING
from epochgate.models.closed.job import ClosedJob
from epochgate.models.job import Job
from epochgate.models.task import CREATED, UP
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.operator import FatalTaskError
from epochgate.runtime.api.restart_strategies import FixedDelay
from epochgate.runtime.api.transport import Message
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.testing.fuzzing.actors import (
    Orders,
    TableCommitter,
    WorkAfterCommits,
    providers_of,
)
from epochgate.runtime.testing.fuzzing.record import InvariantViolated, Record, operator_id
from epochgate.runtime.testing.in_process import InProcessTransport, Process
from epochgate.runtime.testing.playing.actors import (
    BYTES,
    MEMORY,
    PlayedCoordinator,
    PlayedProgram,
    PlayedScript,
)
from epochgate.runtime.testing.playing.late import Late
from epochgate.runtime.testing.playing.renaming import Renaming
from epochgate.runtime.testing.simulation import SimulatedJob

NOTICES = ("complete", "aborted")
CONFIRMED = ("event", "receipt")
NEVER = 10**9
Prepare = Callable[[JobMaster], None]
ROUNDS_MAX = 10_000
"""What follows from one step takes a few dozen."""


class ScriptedJob:
    """One production job with the constants of a closed one, before the driver begins.

    `job` is the class of its machines, which may be a variant; `prepare` sees each job master.
    """

    def __init__(
        self, system: ClosedJob, job: type[Job] = Job, prepare: Prepare | None = None
    ) -> None:
        self.constants = dict(system.constants)
        self.subtasks, self.coordinators = system.subtasks, system.coordinators
        self.orders = Orders()
        self.record = self._record()
        self.scripts = [PlayedScript() for _ in range(self.coordinators)]
        self.simulated = SimulatedJob(
            self._configuration,
            self._program,
            committer=lambda: TableCommitter(self.record, self.orders),
            after_commit=self._work_after_commits,
            job=job,
            prepare=prepare,
            retained=NEVER,
        )
        self.beginning = self.master.queue.abandon()
        """What the job master does first, until the schedule has it begin."""
        self._before: list[Callable[[], Any]] = []
        """What has happened before that."""
        self.identities: list[list[int]] = [[] for _ in range(self.subtasks)]
        """For each subtask the processes that have connected, oldest first."""
        self._asked_for = [0] * self.subtasks
        self._acknowledged: dict[tuple[int, int], Message] = {}
        self.failures = 0
        """How much of the budget of failures is spent."""
        self.is_person_done = False
        self.starting: set[int] = set()
        """Coordinators whose start has ended, which the driver has not heard yet."""
        self.questions: dict[int, list[Future[Any]]] = {c: [] for c in range(self.coordinators)}
        """What clients have asked each coordinator."""
        self.snapshots: dict[int, list[Future[bytes]]] = {c: [] for c in range(self.coordinators)}
        """The snapshots without checkpoints that they have asked for."""
        self.hanging: list[Callable[[], None]] = []
        """Saves that have exceeded their limit, and may answer after all."""
        self.late, self.renaming = Late(self), Renaming(self)

    def _configuration(self, start: int) -> JobConfiguration:
        made = JobConfiguration(
            "replayed",
            self.subtasks,
            providers_of(self.scripts, PlayedCoordinator, run=f"run-{start}", record=self.record),
            tolerable_checkpoint_failures=self.constants["tolerable_failures"],
            commit_retries_max=self.constants["commit_retries"],
            restart_strategy=FixedDelay(NEVER, 1.0),
        )
        made = made if self.is_periodic else replace(made, checkpoint_interval_s=None)
        events_max = self.constants.get("unconfirmed_bytes_max")
        return made if not events_max else replace(made, unconfirmed_bytes_max=events_max * BYTES)

    def _record(self) -> Record:
        return Record(self.coordinators, self.subtasks, self._read_store)

    def _program(self, subtask: int) -> PlayedProgram:
        return PlayedProgram(self.record, self.constants["said"])

    def _work_after_commits(self) -> WorkAfterCommits | None:
        is_there = self.constants["after_commit"]
        return WorkAfterCommits(self.record, self.orders) if is_there else None

    @property
    def is_periodic(self) -> bool:
        """True if there is a timer for checkpoints; where clients ask, only if `periodic` is 1."""
        return not self.constants.get("asks") or self.constants["periodic"] > 0

    @property
    def master(self) -> JobMaster:
        """The job master."""
        return self.simulated.master

    @property
    def transport(self) -> InProcessTransport:
        """The transport that moves messages and processes."""
        return self.simulated.transport

    @property
    def job(self) -> Job:
        """The machines."""
        return self.simulated.machines

    def coordinator(self, number: int) -> PlayedCoordinator:
        """The user's coordinator."""
        coordinator = self.scripts[number].coordinator
        assert isinstance(coordinator, PlayedCoordinator)
        return coordinator

    def batch_futures(self, number: int) -> list[Future[bytes]]:
        """Those of a coordinator's snapshots without checkpoints that are not completed."""
        return self.scripts[number].batch_futures

    def fail_job(self, number: int, is_fatal: bool = False) -> None:
        """Let a coordinator fail the job, or end it."""
        cause = FatalTaskError("the schedule says so") if is_fatal else "the schedule says so"
        self.coordinator(number).context.fail_job(cause)

    # the driver's begin

    def note(self, call: Callable[[], Any]) -> None:
        """Remember what has happened, while the driver has not begun."""
        if self.beginning:
            self._before.append(call)

    def find(self, checkpoint: CompletedCheckpoint) -> None:
        """Let the driver find a checkpoint in the store: what it has is that of a start from there,
        with all that has happened before.
        """
        self.simulated.store.save(checkpoint)
        self.scripts = [PlayedScript() for _ in range(self.coordinators)]
        self.simulated.crash_driver()
        self.beginning = self.master.queue.abandon()
        before, self._before = self._before, []
        for call in before:
            call()

    # processes

    def process(self, subtask: int) -> Process | None:
        """The process that connected last, as long as anything of it is left."""
        identities = self.identities[subtask]
        return self.transport.processes.get(identities[-1]) if identities else None

    def living(self, subtask: int) -> Process | None:
        """The same, if it lives."""
        process = self.process(subtask)
        return process if process is not None and process.is_alive else None

    def newcomer(self, subtask: int) -> int | None:
        """The newest process that was asked for since one connected, and has not connected."""
        last = self.identities[subtask][-1] if self.identities[subtask] else 0
        found = [
            identity
            for identity, process in self.transport.processes.items()
            if process.subtask == subtask and not process.is_connected and identity > last
        ]
        return max(found, default=None)

    def connect(self, subtask: int) -> None:
        """A process speaks for the subtask, one that was not asked for if need be."""
        identity = self.newcomer(subtask) or self.transport.launch(subtask)
        self.identities[subtask].append(identity)
        self.transport.step("connect", identity)

    def may_come_back(self, subtask: int) -> bool:
        """True if the driver has released the last process, and has heard all but its loss."""
        released, words = self.transport.released.get(subtask), self.words(subtask)
        return released is not None and words in (None, ("lose", released))

    def come_back(self, subtask: int) -> None:
        """The released process connects again, before the driver hears of its loss or after it."""
        loss = self.words(subtask)
        self.connect(subtask)
        if loss is not None:
            self.transport.step(*loss)

    def restored(self, subtask: int) -> Process | None:
        """The living process, if it has begun to work and has not said that it cannot go on."""
        process = self.living(subtask)
        if (
            process is None
            or process.worker.is_over
            or machine_behind(process.worker.task).state not in UP
        ):
            return None
        return process

    def next_message(self, subtask: int) -> Message | None:
        """Return what the restored process is told next, notices aside."""
        process = self.restored(subtask)
        messages = () if process is None else process.to_task
        return next((message for message in messages if message[0] not in NOTICES), None)

    def may_be_told(self, subtask: int) -> bool:
        """Return whether there is such a message; an event has to wait until the driver has heard
        everything that was said before.
        """
        message, process = self.next_message(subtask), self.living(subtask)
        if message is None or process is None:
            return False
        return not (message[0] in CONFIRMED and process.to_driver)

    def tell(self, subtask: int) -> None:
        """The next message arrives; what confirms it is heard."""
        message, process = self.take_notices(subtask), self.living(subtask)
        if process is not None:
            self.transport.step("tell", process.identity)
            self._note_said(subtask, process)
            if message[0] in CONFIRMED and process.to_driver:
                self.transport.step("hear", process.identity)

    def take_notices(self, subtask: int) -> Message:
        """Let the notices before the next message arrive; returns that one."""
        message, process = self.next_message(subtask), self.living(subtask)
        assert message is not None
        assert process is not None
        while process.to_task[0] is not message:
            self.transport.step("tell", process.identity)
        return message

    def fail(self, subtask: int, is_fatal: bool = False) -> None:
        """The process says that it cannot go on, or that none could, and waits for its end."""
        process = self.living(subtask)
        assert process is not None
        process.worker.is_over = True
        process.to_task.clear()
        process.to_driver.append(["failed", "the schedule says so", is_fatal])

    def _note_said(self, subtask: int, process: Process) -> None:
        for message in process.to_driver:
            if message[0] == "acknowledge":
                self._acknowledged[subtask, message[1]] = message
            elif message[0] == "failed":
                account = f"the process of subtask {subtask} cannot go on: {message[1].strip()}"
                raise InvariantViolated("I1", account)

    def words(self, subtask: int) -> tuple[str, int] | None:
        """Return what the transport can do to let the driver hear the process that connected last:
        the oldest message, or at last that it is gone.
        """
        identity = self.identities[subtask][-1] if self.identities[subtask] else 0
        kinds = ("hear", identity), ("lose", identity)
        return next((step for step in self.transport.steps() if step in kinds), None)

    def say(self, subtask: int, identity: int, message: Message) -> None:
        """Let the driver hear a message that has been said before, or could have been."""
        if message[0] == "lost":
            self.transport.inbox.lost(subtask, identity, "its connection broke")
        else:
            self.transport.inbox.received(subtask, identity, [message])

    def acknowledgement(self, subtask: int, checkpoint: int, is_final: bool = False) -> Message:
        """An acknowledgement as some process of the subtask has made it, or of an empty state."""
        empty = {operator_id(c): msgpack.packb([]) for c in range(self.coordinators)}
        said = self._acknowledged.get((subtask, checkpoint), ["acknowledge", 0, False, empty, []])
        return ["acknowledge", checkpoint, is_final, said[3], said[4]]

    # timers, store and commits

    def timers(self, owner: object, name: str = "") -> list[Timer]:
        """The timers that wait to call this machine, or part of the job master; with a name, those
        that fire this trigger.
        """
        return [
            timer
            for timer in self.master.queue.timers()
            if getattr(timer.trigger, "__self__", None) is owner
            and name in ("", timer.trigger.__name__)
        ]

    def start_timers(self, subtask: int) -> list[Timer]:
        """The timer within which the subtask's attempt has to run, while it does not."""
        attempt = self.job.attempt[subtask]
        if attempt.state not in STARTING:
            return []
        timers = self.timers(attempt, "expire_start")
        return [timer for timer in timers if timer.arguments[0] == attempt.number]

    def fire(self, timers: list[Timer]) -> None:
        """Time passes for these."""
        for timer in timers:
            self.master.queue.hasten(timer)

    def is_under_way(self, lane: str) -> bool:
        """Return whether a save (`store`), a commit (`commit`) or work after one (`after-commit`)
        waits to be run, or is put off. A job that has ended takes no answer of a save.
        """
        if lane == "store" and self.master.is_over:
            return False
        return lane in self.simulated.blocking.lanes() or bool(self._put_off(lane))

    def _put_off(self, lane: str) -> list[Timer]:
        owners = self.owners()
        return self.timers(owners[lane]) if lane in owners else []

    def owners(self) -> dict[str, object]:
        """Return the owners of work that is put off, by the lane of it."""
        return {"commit": self.master.commits, "after-commit": self.master.post_commits}

    def run(self, lane: str) -> None:
        """Run the oldest work of a lane, whatever waits before it."""
        self._take_up(lane)
        self.simulated.run_blocking(lane)

    def _take_up(self, lane: str) -> None:
        for timer in self._put_off(lane):
            timer.cancel()
            timer.trigger(*timer.arguments)  # it makes work, and is no event of a machine

    def hang(self, lane: str) -> None:
        """The oldest work of a lane exceeds its limit."""
        self._take_up(lane)
        work = self.simulated.exceed_limit(lane)
        if lane == "store":
            self.hanging.append(work)

    def answer_late(self) -> None:
        """Answer now what hung."""
        self.hanging.pop()()

    def settle(self) -> None:
        """Let happen what a step of the closed job includes, and look at what it came to."""
        for _ in range(ROUNDS_MAX):
            if not self.process_event():
                break
        else:
            raise InvariantViolated("I6", f"a step has no end in {ROUNDS_MAX} rounds")
        self.look()

    def process_event(self) -> bool:
        """Process one event, and what takes no time in the closed job; False if none waited."""
        has_processed = self.master.queue.step()
        self.note(self.process_event)
        while self._restore() or self._commit():
            has_processed = True
        self._hold_starts()
        return has_processed

    def look(self) -> None:
        """Take note of what has come about, and hold it against the record."""
        self.late.note_timers()
        for subtask in range(self.subtasks):
            self._forget_back_off(subtask)
        self._read_store()
        self.record.check()

    def _forget_back_off(self, subtask: int) -> None:
        """A process was asked for: what the attempts before were to wait for makes no difference
        any more, and the closed job does not let it elapse.
        """
        newcomer = self.newcomer(subtask)
        if newcomer is not None and newcomer != self._asked_for[subtask]:
            self._asked_for[subtask] = newcomer
            for timer in self.timers(self.job.attempt[subtask], "restart"):
                timer.cancel()

    def _hold_starts(self) -> None:
        """Let starts take their time: keep how one ended for later."""
        if self.constants["slow_starts"]:
            ends = {holder.started: c for c, holder in enumerate(self.job.holder)}
            for trigger, arguments in self.master.queue.abandon():
                if trigger in ends:
                    self.starting.add(ends[trigger])
                else:
                    self.master.queue.post(trigger, *arguments)

    def _restore(self) -> bool:
        for subtask in range(self.subtasks):
            process = self.living(subtask)
            if process is not None and process.to_task and self._is_at_once(process):
                return self.transport.step("tell", process.identity)
        return False

    def _is_at_once(self, process: Process) -> bool:
        """True if it takes no time to tell a process to begin, or to leave before that."""
        tag, state = process.to_task[0][0], machine_behind(process.worker.task).state
        return tag == "restore" or (tag == "finish" and state == CREATED)

    def _commit(self) -> bool:
        """Run a commit, or work after one, where it takes no time."""
        lanes = () if self.constants.get("slow_commits") else ("commit", "after-commit")
        return any(self.simulated.run_blocking(lane) for lane in lanes)

    def _read_store(self) -> None:
        store: Any = self.simulated.store
        for number in store.ids():
            if number not in self.record.stored:
                self.record.note_stored(store.load(number))
                self._check_receipts(store.load(number))

    def _check_receipts(self, stored: CompletedCheckpoint) -> None:
        """I7: what an operator has a receipt for is in its coordinator's snapshot."""
        for c, s in self.record.pairs:
            heard = max(self.record.heard(stored, c)[s], default=0)
            receipts = msgpack.unpackb(stored.subtasks.get(s, {}).get(MEMORY, b"\x80"))
            if receipts.get(operator_id(c), 0) > heard:
                account = (
                    f"in checkpoint {stored.checkpoint_id} subtask {s} has receipts {receipts}"
                )
                self.record.note("I7", f"{account}, and coordinator {c} had heard {heard} events")
