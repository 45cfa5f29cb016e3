"""Our committer behind the line protocol of the committers (README.md beside this folder).

What runs is a whole simulated job, by the interfaces that users have: a sink whose writer hands
over what a command says, a committer that answers what a command says, checkpoints, a store and a
driver that dies. One subtask more than the schedule has hands over nothing, and takes each barrier
last: so a checkpoint is completed, or expires, when the schedule says so. Nothing here decides what
is committed.

    Shell().run(["new 1 0", "barrier 0 1 a", "complete 1"])
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from epochgate.models.committer import COMMITTING
from epochgate.models.committing_job import CommittingJob
from epochgate.models.job import Job
from epochgate.models.lifecycle import RUNNING
from epochgate.models.subtask_committer import PAUSING
from epochgate.runtime.api.commit_topology import CommitTopology
from epochgate.runtime.api.committer import (
    Committables,
    Committer,
    FailedForKnownReason,
    UpdateAndRetryLater,
)
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.operator import Operator, OperatorContext, Program, Work
from epochgate.runtime.api.restart_strategies import NoRestart
from epochgate.runtime.api.sink import Sink, SinkStart, SinkWriter
from epochgate.runtime.api.sink_operator import SinkOperator
from epochgate.runtime.api.task_committer import CommitRequest, TaskCommitter
from epochgate.runtime.testing.simulation import SimulatedJob

EXPIRES_AFTER_S = 60.0
CHECKPOINTS_MOST = 1_000


class Script:
    """The answers of one of the sink's committers for each committable."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._answers: dict[str, deque[str]] = {}

    def say(self, name: str, said: str) -> None:
        """The next answer of a committable."""
        self._answers.setdefault(name, deque()).append(said)

    def answers(self, words: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Each name with its answer, and a line that begins with `words` and tells of the call.

        Raises CommitRefused at an error.
        """
        told = [words]
        try:
            for name in names:
                queue = self._answers.get(name)
                said = queue.popleft() if queue else "ok"
                told += [name, said]
                if said == "error":
                    raise CommitRefused(name)
                yield name, said
        finally:
            self._target.lines.append(" ".join(told))


class Target:
    """The answers of the sink, and the lines that tell of them."""

    def __init__(self) -> None:
        self.of_tasks, self.globally = Script(self), Script(self)
        self.ready: dict[int, list[str]] = {}
        """Of each subtask: what it hands over with its next barrier."""
        self.newest = 0
        """The checkpoint whose barrier came last."""
        self.lines: list[str] = []


class CommitRefused(Exception):
    """The sink says that a committable cannot be committed."""


class ScriptedCommitter(Committer):
    """Answers for each committable of a checkpoint, in the order of subtasks."""

    def __init__(self, target: Target, words: str) -> None:
        self._target, self._words = target, words

    def commit(self, checkpoint_id: int, committables: Committables) -> bool | None:
        """Commit what can be; ask for another try of what is to be tried again."""
        of = {name: subtask for subtask in sorted(committables) for name in committables[subtask]}
        if not of:
            return None
        said = dict(self._target.globally.answers(self._words, of))
        rest: Committables = {}
        for name in (name for name in of if said[name] == "retry"):
            rest.setdefault(of[name], []).append(name)
        if rest:
            raise UpdateAndRetryLater(rest)
        if "known" in said.values():
            raise FailedForKnownReason("the schedule says so")
        return False if set(said.values()) == {"again"} else None


class ScriptedTaskCommitter(TaskCommitter):
    """Signals for each committable of one subtask."""

    def __init__(self, target: Target, subtask: int) -> None:
        self._target, self._subtask = target, subtask

    def commit(self, requests: Sequence[CommitRequest]) -> None:
        """Commit what can be."""
        of = {request.committable: request for request in requests}
        for name, said in self._target.of_tasks.answers(f"commit {self._subtask}", of):
            if said == "retry":
                of[name].retry_later()
            elif said == "known":
                of[name].failed("the schedule says so")
            elif said == "again":
                of[name].already_committed()


class ScriptedWriter(SinkWriter):
    """Hands over what its subtask is told to."""

    def __init__(self, target: Target, subtask: int) -> None:
        self._target, self._subtask = target, subtask

    def write(self, batch: Any) -> None:
        """There are no records: committables come with commands."""
        raise NotImplementedError

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        """Return what came since the last barrier."""
        self._target.newest = checkpoint_id
        return self._target.ready.pop(self._subtask, [])


class ScriptedSink(Sink):
    """Both sides, for one target."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def create_writer(self, context: OperatorContext, state: bytes | None) -> SinkWriter:
        """Of one attempt."""
        return ScriptedWriter(self._target, context.subtask)

    def create_committer(self, start: SinkStart) -> Committer:
        """Of one driver."""
        return ScriptedCommitter(self._target, "commit")


class UpstreamSink(ScriptedSink):
    """With a committer in each task."""

    def create_committer(self, start: SinkStart) -> Committer:
        """Of one driver."""
        return ScriptedCommitter(self._target, "global")

    def create_task_committer(self, context: OperatorContext) -> TaskCommitter:
        """Of one attempt."""
        return ScriptedTaskCommitter(self._target, context.subtask)


class SinkProgram(Program):
    """A sink and no source."""

    def __init__(self, sink: Sink, operator: Callable[[Sink], SinkOperator]) -> None:
        self._sink = operator(sink)

    @property
    def operators(self) -> Mapping[str, Operator]:
        """The sink alone."""
        return {"sink": self._sink}

    def work(self) -> Work:
        """There is nothing to read."""
        return Work.IDLE


class Shell:
    """One schedule's job; `job` and `operator` may be variants of what runs."""

    def __init__(
        self,
        job: Callable[..., Job] = Job,
        operator: Callable[[Sink], SinkOperator] = SinkOperator,
    ) -> None:
        self._machines, self._operator = job, operator
        self._target = Target()
        self._job: SimulatedJob | None = None
        self._subtasks = 0
        self._ids: dict[int, int] = {}
        """Of the schedule -> of the job, whose ids have no gaps of the same kind."""
        self._is_failed = self._has_task_committers = False

    def run(self, commands: Sequence[str]) -> list[list[str]]:
        """The lines of each command."""
        answers = []
        for command in commands:
            self._target.lines = []
            word, *arguments = command.split()
            if word == "new" or word == "restart" or not self._is_failed:
                getattr(self, f"_do_{word}")(*arguments)
                self._tell_failure()
            answers.append(self._target.lines)
        return answers

    def _tell_failure(self) -> None:
        if self.job.is_over:
            self._is_failed = True
            self._target.lines.append("failed")

    @property
    def job(self) -> SimulatedJob:
        """The job of the last `new`."""
        assert self._job is not None, "a schedule begins with `new`"
        return self._job

    def _do_new(self, subtasks: str, tries: str, topology: str = "") -> None:
        self._subtasks, self._target, self._ids = int(subtasks), Target(), {}
        self._is_failed, self._has_task_committers = False, bool(topology)
        sink = (UpstreamSink if topology else ScriptedSink)(self._target)

        def configure(start: int) -> JobConfiguration:
            return JobConfiguration(
                "committing",
                self._subtasks + 1,
                (),
                checkpoint_interval_s=None,
                checkpoint_timeout_s=EXPIRES_AFTER_S,
                tolerable_checkpoint_failures=CHECKPOINTS_MOST,
                commit_retries_max=int(tries),
                restart_strategy=NoRestart(),
                topology=CommitTopology.of(sink),
            )

        start = SinkStart("committing", "run", None)
        self._job = SimulatedJob(
            configure,
            lambda _: SinkProgram(sink, self._operator),
            committer=lambda: sink.create_committer(start),
            job=self._machines,
            retained=CHECKPOINTS_MOST,
        )
        self._job.rest()

    def _do_barrier(self, subtask: str, checkpoint: str, names: str) -> None:
        if int(checkpoint) not in self._ids:
            if self._has_task_committers:
                self._commit()
            self.job.master.request_checkpoint()
            self.job.drain()
        self._target.ready.setdefault(int(subtask), []).extend(parts(names))
        self.job.flow(only=int(subtask))
        self._ids[int(checkpoint)] = self._target.newest

    def _do_end(self, subtask: str, names: str) -> None:
        self._target.ready.setdefault(int(subtask), []).extend(parts(names))

    def _do_answer(self, name: str, said: str, whose: str = "") -> None:
        is_global = bool(whose) or not self._has_task_committers
        script = self._target.globally if is_global else self._target.of_tasks
        script.say(name, said)

    def _do_complete(self, checkpoint: str, how: str = "") -> None:
        self._let_move(self._last)
        while self.job.run_blocking("store"):
            self.job.drain()
        stored = self.job.store.load(self._ids[int(checkpoint)])
        held: dict[int, list[str]] = {}
        for flat in (*stored.uncommitted.values(), stored.committables.items()):
            for subtask, values in flat:
                held.setdefault(subtask, []).extend(values)
        self._target.lines.append(state_line(checkpoint, held))
        if not how:
            self._commit()
            self.job.rest()

    def _do_told(self, checkpoint: str, only: str = "") -> None:
        self._commit(*([int(only)] if only else []))

    def _commit(self, *only: int) -> None:
        """Let what is to be committed be committed: in the tasks, or in those that are named, one
        after the other, as Flink's are told, and then globally. While barriers are out there is
        nothing in the tasks: that came before.
        """
        if self._has_task_committers and self.job.machines.checkpoint.is_over():
            for subtask in only or range(self._last):
                self._let_move(subtask)
            self._let_move(self._last)
        while self.job.machines.committer.state == COMMITTING:
            if not self.job.run_blocking("commit"):
                self.job.advance()
            self.job.drain()
        if self.job.machines.lifecycle.state != RUNNING:
            self.job.rest()

    def _let_move(self, subtask: int) -> None:
        """Let a task hear and say what is on its way, and try again what it commits."""
        self.job.flow(only=subtask)
        while self._has_task_committers and self._is_pausing(subtask):
            self.job.advance()
            self.job.flow(only=subtask)

    def _is_pausing(self, subtask: int) -> bool:
        machines = self.job.machines
        assert isinstance(machines, CommittingJob), "the sink has a committer in each task"
        return machines.subtask_committer[subtask].state == PAUSING

    @property
    def _last(self) -> int:
        """The subtask that the schedule does not have."""
        return self._subtasks

    def _do_abort(self, checkpoint: str) -> None:
        if int(checkpoint) in self._ids:
            self.job.wait(EXPIRES_AFTER_S)
            self.job.flow(held=("blocking",))

    def _do_restart(self) -> None:
        self._is_failed = False
        self._target.ready.clear()
        self.job.crash_driver()
        for subtask in range(self._last):
            self._let_move(subtask)
        self._commit()
        self.job.rest()


def parts(names: str) -> list[str]:
    """The committables of a command; `-` is none."""
    return [] if names == "-" else names.split(",")


def state_line(checkpoint: str, held: Mapping[int, Sequence[str]]) -> str:
    """Return what a stored checkpoint holds of committables, by subtask."""
    told = [f"{subtask}:{','.join(held[subtask])}" for subtask in sorted(held) if held[subtask]]
    return " ".join([f"state {checkpoint}", *told])
