"""The rig of one world: a simulated job with the user's code in it, the places at which faults
strike user code, and the record of what machines and user code did in each step.

User code runs as it is: of its objects only the methods at which a fault can strike are led
through here. Decides nothing about when; `World` does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from epochgate.errors import UsageError
from epochgate.fsm import Machine, Row, System
from epochgate.fsm.inside import machine_behind, machines_behind
from epochgate.runtime.api.committer import Committables, Committer, RetryLater
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.coordinator import (
    CoordinatorContext,
    OperatorCoordinator,
)
from epochgate.runtime.api.operator import Operator, Program, Work
from epochgate.runtime.api.sink import SinkStart
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.shell.post_commits import AfterCommit
from epochgate.runtime.shell.worker import Worker
from epochgate.runtime.source import SplitEnumerator
from epochgate.runtime.source.coordinator import SourceCoordinator
from epochgate.runtime.store import CheckpointShelf
from epochgate.runtime.testing.faulty_transport import FaultyTransport
from epochgate.runtime.testing.in_process import InProcessTransport
from epochgate.runtime.testing.simulation import Prepared, SimulatedJob

Commit: TypeAlias = Callable[[int, Committables], bool | None]

INJECTED: Final = "a fault of the simulation"
"""What every error says that is no fault of user code."""
LATE_S: Final = 0.5
"""How much later a coordinator is asked for its snapshot."""


class FaultInjected(Exception):
    """An error that a world has put into user code's way."""


class NotSimulated(UsageError):
    """The objects that a world was given cannot be made into a job."""


@dataclass(frozen=True)
class RowTaken:
    """A row that a machine took: on the driver, or in the task of a subtask."""

    instance: str
    trigger: str
    source: str
    dest: str
    because: str

    def __str__(self) -> str:
        arrow = f" → {self.dest}" if self.dest != self.source else ""
        return f"{self.instance}.{self.trigger}: {self.source}{arrow} ({self.because})"


@dataclass(frozen=True)
class Call:
    """A call of the user's coordinator or enumerator; `text` says it as it was made."""

    operator_id: str
    text: str


@dataclass(frozen=True)
class Parts:
    """The parts of one start."""

    configuration: JobConfiguration
    program: Callable[[int], Program]
    committer: Committer | None = None
    after_commit: AfterCommit | None = None


@dataclass(frozen=True)
class Setup:
    """The setup of a test: how many subtasks, and what prepares each start of the driver."""

    subtasks: int
    prepare: Callable[[SinkStart], Prepared]


class PlainProgram(Program):
    """Operators that wait for events."""

    def __init__(self, operators: Mapping[str, Operator]) -> None:
        self._operators = operators

    @property
    def operators(self) -> Mapping[str, Operator]:
        return self._operators

    def work(self) -> Work:
        return Work.IDLE


@dataclass
class Strikes:
    """The strikes that the next calls of user code meet."""

    snapshots: deque[str] = field(default_factory=deque)
    """`fail` or `late`."""
    commits: deque[str] = field(default_factory=deque)
    """`before` or `after`: a RetryLater before anything is done, or after all of it."""


class Rig:
    """One job under test; `machines` may be a variant of the job's machines."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.strikes = setup, Strikes()
        self.rows: list[RowTaken] = []
        """Of the step under way."""
        self.calls: list[Call] = []
        """Of the step under way."""
        self.sent: list[tuple[int, Any]] = []
        """The events that coordinators have sent in the step under way, each with its subtask."""
        self.taken: set[tuple[str, str, Row]] = set()
        """Every row of the driver's machines that was taken, for the feedback."""
        self._heard: set[System] = set()
        self.errors: list[str] = []
        """What user code has raised, each as the runtime reports it."""
        self.contexts: dict[str, CoordinatorContext] = {}
        self.coordinators: dict[str, OperatorCoordinator] = {}
        self.enumerators: dict[str, SplitEnumerator] = {}
        """The last one of each source, also once its job is over."""
        self.watches_operators = False
        """Whether calls of operators are kept: of the one run that a report shows."""
        self.seen: dict[int, Mapping[str, Operator]] = {}
        """The operators of each subtask that were last open, where calls are kept."""
        self.committers: list[Committer] = []
        self.shelf = CheckpointShelf()
        self._parts: Prepared
        self.simulated = SimulatedJob(
            self._configure,
            lambda subtask: self._parts.program(subtask),
            committer=self._committer,
            after_commit=lambda: self._parts.after_commit,
            prepare=self._prepare,
            shelf=self.shelf,
        )

    def _configure(self, start: int) -> JobConfiguration:
        restored = max(self.shelf.checkpoints, default=None)
        this = SinkStart("simulated", f"run-{start}", restored, epoch=start + 1)
        self._parts = self.setup.prepare(this)
        self.contexts.clear()
        self.coordinators.clear()
        for provider in self._parts.configuration.providers:
            lead(provider, "create", partial(self._create, provider.operator_id))
        return self._parts.configuration

    def _create(
        self,
        operator_id: str,
        create: Callable[[CoordinatorContext], OperatorCoordinator],
        context: CoordinatorContext,
    ) -> OperatorCoordinator:
        coordinator = create(context)
        self.contexts[operator_id], self.coordinators[operator_id] = context, coordinator
        called = partial(self._called, operator_id, coordinator)
        _Snapshots(coordinator, context, self.strikes, called)
        for method in CALLS:
            lead(coordinator, method, partial(self._lead_call, called, method))
        return coordinator

    def _called(self, operator_id: str, user_code: Any, method: str, *arguments: Any) -> None:
        if not type(user_code).__module__.startswith("epochgate."):
            told = ", ".join(short(each) for each in arguments if isinstance(each, PLAIN))
            self.calls.append(Call(operator_id, f"{type(user_code).__name__}.{method}({told})"))

    def _lead_call(
        self, called: Callable[..., None], method: str, call: Callable[..., Any], *arguments: Any
    ) -> Any:
        called(method, *arguments)
        return call(*arguments)

    def _committer(self) -> Committer | None:
        committer = self._parts.committer
        if committer is not None:
            lead(committer, "commit", self._commit)
            self.committers.append(committer)
        return committer

    def _commit(self, commit: Commit, checkpoint: int, values: Committables) -> bool | None:
        fate = self.strikes.commits.popleft() if self.strikes.commits else ""
        if fate == "before":
            raise RetryLater(INJECTED)
        answer = commit(checkpoint, values)
        if fate:
            raise RetryLater(INJECTED)
        return answer

    # what the machines do

    def _prepare(self, master: JobMaster) -> None:
        machines_behind(master.job).observer = self._driver_row
        transport = self._inner(master)
        transport.on_broken = partial(self._broken, transport.on_broken)
        transport.on_unreadable = self.errors.append

    def _inner(self, master: JobMaster) -> InProcessTransport:
        faulty = master.transport
        assert isinstance(faulty, FaultyTransport)
        assert isinstance(faulty.inner, InProcessTransport)
        return faulty.inner

    def _broken(self, end: Callable[[str], None], reason: str) -> None:
        self.errors.append(reason)
        end(reason)

    def look_around(self) -> None:
        """See the enumerators and the processes that came up in the last step."""
        for operator_id, coordinator in self.coordinators.items():
            if isinstance(coordinator, SourceCoordinator) and coordinator.enumerator is not None:
                self.enumerators[operator_id] = coordinator.enumerator
        self._watch_tasks()

    def _watch_tasks(self) -> None:
        """Hear of the rows that are taken in processes, those that came up since included."""
        for process in self.simulated.transport.processes.values():
            system = machine_behind(process.worker.task).system
            if system not in self._heard:
                self._heard.add(system)
                system.observer = partial(self._task_row, process.subtask)
                if self.watches_operators:
                    heard = _HeardOperators(process.worker, self._called)
                    system.bind("task", "operators", heard)
        if self.watches_operators:
            opened = {n: self.operators(n) for n in range(self.setup.subtasks)}
            self.seen |= {subtask: each for subtask, each in opened.items() if each is not None}

    def _driver_row(
        self, machine: Machine, source: str, row: Row, arguments: tuple[Any, ...]
    ) -> None:
        name = _name(machine)
        self.taken.add((name, source, row))
        self._note(name, machine, source, row)
        if row.trigger == "send" and name == "gateway":
            self.sent.append((machine.index[1], arguments[1].event))
        is_of_user = (name, row.trigger) in RAISED
        reason = next((a for a in arguments if isinstance(a, str)), "") if is_of_user else ""
        if reason and INJECTED not in reason:
            self.errors.append(reason)

    def _task_row(
        self, subtask: int, machine: Machine, source: str, row: Row, arguments: tuple[Any, ...]
    ) -> None:
        self._note(f"task {subtask}", machine, source, row)

    def _note(self, name: str, machine: Machine, source: str, row: Row) -> None:
        index = "".join(f"[{i}]" for i in machine.index)
        dest = row.dest if isinstance(row.dest, str) else source
        self.rows.append(RowTaken(f"{name}{index}", row.trigger, source, dest, row.because))

    # what a fault or a claim looks for

    def process_of(self, subtask: int) -> int | None:
        """The process of a subtask that lives and can be reached; the newest one of several."""
        transport = self.simulated.transport
        found = [one for one in transport.living() if transport.processes[one].subtask == subtask]
        return found[-1] if found else None

    def operators(self, subtask: int) -> Mapping[str, Operator] | None:
        """The operators of a subtask's process, once they were opened."""
        identity = self.process_of(subtask)
        if identity is None:
            return None
        worker = self.simulated.transport.processes[identity].worker
        is_open = machine_behind(worker.task).state in ("running", "ended", "finished")
        return worker.program.operators if is_open else None


RAISED: Final = {("attempt", "fail"), ("holder", "fail_job"), ("holder", "start_failed")}
"""The triggers by which errors of user code reach the machines."""


CALLS: Final = (
    "start",
    "execution_attempt_ready",
    "execution_attempt_failed",
    "subtask_reset",
    "notify_checkpoint_complete",
    "handle_event_from_operator",
    "handle_client_request",
    "close",
)
"""The methods of a coordinator whose calls a report shows, beside those of `_Snapshots`."""
CALLS_OF_OPERATORS: Final = {
    "restore": "open",
    "snapshot": "snapshot",
    "complete": "notify_checkpoint_complete",
    "aborted": "notify_checkpoint_aborted",
}
"""What a task is told for its operators -> the call of each. That one gets an event, or is asked
for committables, goes without saying behind the message or its snapshot.
"""
PLAIN: Final = (type(None), bool, int, float, str, bytes, list, tuple, dict)
SHOWN_MAX: Final = 60


class _HeardOperators:
    """The operators of a task, as its machine speaks to them: each call is noted before it. The
    user's objects are left as they are, since a snapshot may be all that an object has.
    """

    def __init__(self, worker: Worker, called: Callable[..., None]) -> None:
        self._worker, self._called = worker, called

    def __getattr__(self, message: str) -> Any:
        call = getattr(self._worker, message)
        method = CALLS_OF_OPERATORS.get(message)
        return call if method is None else partial(self._lead, method, call)

    def _lead(self, method: str, call: Callable[..., None], *arguments: Any) -> None:
        for operator_id, operator in self._worker.program.operators.items():
            told = (arguments[2] or {}).get(operator_id) if method == "open" else arguments[0]
            self._called(operator_id, operator, method, told)
        call(*arguments)


class _Snapshots:
    """Leads a coordinator's checkpoint through the faults of the world.

    A coordinator that is asked late is one that answers late: what it hears of a checkpoint for
    which it was not asked is kept from it, since no coordinator hears of those.
    """

    def __init__(
        self,
        coordinator: OperatorCoordinator,
        context: CoordinatorContext,
        strikes: Strikes,
        called: Callable[..., None],
    ) -> None:
        self._context, self._strikes, self._called = context, strikes, called
        self._unasked: set[int] = set()
        lead(coordinator, "checkpoint", self._checkpoint)
        lead(coordinator, "reset_to_checkpoint", self._reset)
        lead(coordinator, "notify_checkpoint_aborted", self._aborted)

    def _checkpoint(
        self, checkpoint: Callable[..., None], checkpoint_id: int, result: Future[bytes]
    ) -> None:
        fate = self._strikes.snapshots.popleft() if self._strikes.snapshots else ""
        if fate == "late":
            self._unasked.add(checkpoint_id)
            self._context.post_later(LATE_S, self._ask, checkpoint, checkpoint_id, result)
        elif fate == "fail":
            self._called("checkpoint", checkpoint_id)
            checkpoint(checkpoint_id, Future())
            result.set_exception(FaultInjected(INJECTED))
        else:
            self._called("checkpoint", checkpoint_id)
            checkpoint(checkpoint_id, result)

    def _ask(
        self, checkpoint: Callable[..., None], checkpoint_id: int, result: Future[bytes]
    ) -> None:
        if checkpoint_id in self._unasked:
            self._unasked.discard(checkpoint_id)
            self._called("checkpoint", checkpoint_id)
            checkpoint(checkpoint_id, result)

    def _reset(self, reset: Callable[..., None], checkpoint_id: int, state: bytes | None) -> None:
        self._unasked.clear()
        self._called("reset_to_checkpoint", checkpoint_id, state)
        reset(checkpoint_id, state)

    def _aborted(self, aborted: Callable[[int], None], checkpoint_id: int) -> None:
        if checkpoint_id in self._unasked:
            self._unasked.discard(checkpoint_id)
        else:
            self._called("notify_checkpoint_aborted", checkpoint_id)
            aborted(checkpoint_id)


def lead(user_code: Any, method: str, through: Callable[..., Any]) -> None:
    """Let calls of a method of one object go through a function that gets the method first; an
    object that serves several starts is led once for each of them.
    """
    if method in getattr(user_code, "__dict__", ()):
        object.__delattr__(user_code, method)
    try:
        object.__setattr__(user_code, method, partial(through, getattr(user_code, method)))
    except AttributeError as error:
        raise NotSimulated(
            f"{type(user_code).__name__} has __slots__ without __dict__, so that faults cannot "
            f"strike its {method}: leave __slots__ out"
        ) from error


def _name(machine: Machine) -> str:
    names: dict[type[Machine], str] = {k: name for name, k in machine.system.MACHINES.items()}
    return names[type(machine)]


def short(value: Any) -> str:
    """A value in one line that is not too long."""
    text = repr(value).replace("\n", " ")
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"
