"""User code that does what a test says and keeps what it is told: a coordinator, an operator, and
the program around it.

Each stands in for user code that is not under test: a scripted coordinator speaks to operators of
one's own, a scripted operator to a coordinator of one's own. A `Script` says what they do, and
knows no protocol: whether a call was due is for the test to say. Scripted operators are for
simulated jobs, since the processes of a Spark job share no script with the test. Threads: those on
which the job calls user code; nothing here is locked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import msgpack

from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.coordinator import (
    NO_CHECKPOINT,
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.api.operator import Operator, OperatorContext, Program, Work
from epochgate.runtime.api.send_future import SendFuture

METHODS = frozenset(
    name
    for user_code in (CoordinatorProvider, OperatorCoordinator, Operator, Program, Committer)
    for name, member in vars(user_code).items()
    if callable(member) and not name.startswith("_")
)

Events = list[list[Any]]
"""Subtask -> its events, oldest first."""


@dataclass
class Script:
    """The script of user code: what it does, and what it was told.

    A place is a method as `calls` spells it: `rules.checkpoint` is the coordinator of the operator
    id `rules`, `rules[0].snapshot` the operator in subtask 0, `program.work` any program (which is
    in no record, since it is called again and again). One script may serve several coordinators
    and operators, and all starts of a job. Raises ValueError for an error at a place that is none.
    """

    errors: dict[str, list[BaseException]] = field(default_factory=dict)
    """Place -> what is raised there, one error for each call; what was raised is taken off."""
    is_completing: bool = True
    """Whether coordinators complete their checkpoints at once; otherwise `complete` does."""
    state: bytes | None = None
    """What coordinators save, and never read; none: what they have sent and heard."""
    answer: Callable[[Any], Any] | None = None
    """What a client's request is answered with; none: coordinators handle no requests."""
    has_batch_snapshots: bool = False
    """Whether coordinators support snapshots without checkpoints."""
    work: Work = Work.IDLE
    """What each piece of a program's work comes to."""
    record: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    """Place and arguments of each call, in order."""
    coordinators: list[ScriptedCoordinator] = field(default_factory=list)
    """All that were made, oldest first."""
    operators: dict[tuple[str, int], ScriptedOperator] = field(default_factory=dict)
    """Operator id and subtask -> the operator that was opened last."""

    def __post_init__(self) -> None:
        self._hangs: dict[str, threading.Event] = {}
        for place in self.errors:
            _check(place)

    @property
    def coordinator(self) -> ScriptedCoordinator:
        """The coordinator that was made last; raises IndexError before the first."""
        return self.coordinators[-1]

    @property
    def calls(self) -> list[str]:
        """The calls of user code, in order: `rules.execution_attempt_ready(0, 0)`."""
        return [f"{place}({', '.join(map(repr, told))})" for place, told in self.record]

    def told(self, place: str) -> list[tuple[Any, ...]]:
        """Return the arguments of each call at `place`; raises ValueError for no place."""
        _check(place)
        return [told for where, told in self.record if where == place]

    def raise_at(self, place: str, *errors: BaseException) -> None:
        """Let the next calls at `place` raise `errors`, one each; ValueError for no place."""
        _check(place)
        self.errors.setdefault(place, []).extend(errors)

    def hang_at(self, place: str) -> threading.Event:
        """Let the next call at `place` last until the returned event is set; raises ValueError for
        no place. Not in simulation, where the test's own thread would wait for itself.
        """
        _check(place)
        return self._hangs.setdefault(place, threading.Event())

    def at(self, place: str, *arguments: Any) -> None:
        """Keep a call of user code, then hang or raise if that is due."""
        self.record.append((place, arguments))
        self.obey(place)

    def obey(self, place: str) -> None:
        """Hang or raise if that is due."""
        if (hang := self._hangs.pop(place, None)) is not None:
            hang.wait()
        if errors := self.errors.get(place):
            error = errors.pop(0)
            if not errors:
                del self.errors[place]
            raise error


def _check(place: str) -> None:
    if place.rpartition(".")[2] not in METHODS:
        raise ValueError(f"{place!r} is no place; behind the dot stands one of {sorted(METHODS)}")


class ScriptedCoordinator(OperatorCoordinator):
    """A coordinator for tests: tell it what to do, and read what it was told.

    Put a `ScriptedProvider` with a `Script` into the job's configuration. Call `send` to send an
    event, and `complete` to complete a checkpoint that the script does not complete at once, both
    on the queue's thread; in simulation that is the test's own. Let the script raise or hang at a
    call. Compare `script.calls` with the calls that you expect, and `sent` and `heard` with the
    operators' states: a checkpoint keeps both, packed by msgpack as `[sent, heard]`, and a reset
    takes back what came after it.

    >>> from epochgate.runtime import JobConfiguration
    >>> from epochgate.testing import Script, ScriptedOperator, ScriptedProgram, ScriptedProvider
    >>> from epochgate.testing import SimulatedJob
    >>> script = Script()
    >>> job = SimulatedJob(
    ...     lambda start: JobConfiguration("job", 1, (ScriptedProvider("rules", script),)),
    ...     lambda subtask: ScriptedProgram({"rules": ScriptedOperator(script)}),
    ... )
    >>> job.settle()
    >>> sent = script.coordinator.send(0, "a")
    >>> job.transport.kill(1)
    >>> job.settle()
    >>> for call in script.calls:
    ...     print(call)
    rules.create()
    rules.start()
    rules[0].open(None)
    rules.execution_attempt_ready(0, 0)
    rules[0].close()
    rules.execution_attempt_failed(0, 0, 'killed')
    rules.subtask_reset(0, 0)
    rules[0].open(None)
    rules.execution_attempt_ready(0, 1)
    >>> script.coordinator.sent
    [[]]
    """

    def __init__(self, context: CoordinatorContext, script: Script | None = None) -> None:
        self.context = context
        self.script = Script() if script is None else script
        self.gateways: dict[int, SubtaskGateway] = {}
        """By subtask, of the attempt that is ready; the newest one of several."""
        self.all_gateways: dict[tuple[int, int], SubtaskGateway] = {}
        """By subtask and attempt, of all attempts that ever were."""
        self.results: dict[int, Future[bytes]] = {}
        """Checkpoint -> the future that is not completed."""
        self.sent, self.heard = self._nothing(), self._nothing()
        self.is_closed = False
        self._snapshots = {NO_CHECKPOINT: (self._nothing(), self._nothing())}
        self.script.coordinators.append(self)

    def _nothing(self) -> Events:
        return [[] for _ in range(self.context.parallelism)]

    def _at(self, method: str, *arguments: Any) -> None:
        self.script.at(f"{self.context.operator_id}.{method}", *arguments)

    def send(self, subtask: int, event: Any) -> SendFuture:
        """Send to the attempt that is ready; raises KeyError if none is."""
        future = self.gateways[subtask].send_event(event)
        self.sent[subtask].append(event)
        return future

    def complete(self, checkpoint_id: int, state: bytes | None = None) -> None:
        """Complete a checkpoint's future with `state`, or with the coordinator's own."""
        if state is None:
            state = self.script.state
        if state is None:
            state = msgpack.packb([self.sent, self.heard])
        self._snapshots[checkpoint_id] = _copied(self.sent), _copied(self.heard)
        self.results.pop(checkpoint_id).set_result(state)

    def start(self) -> None:
        self._at("start")

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self._at("checkpoint", checkpoint_id)
        self.results[checkpoint_id] = result
        if self.script.is_completing:
            self.complete(checkpoint_id)

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self._at("reset_to_checkpoint", checkpoint_id, state)
        self.gateways.clear()
        self.sent, self.heard = self._nothing(), self._nothing()
        if state is not None and self.script.state is None:
            self.sent, self.heard = msgpack.unpackb(state)
        self._snapshots = {
            NO_CHECKPOINT: (self._nothing(), self._nothing()),
            checkpoint_id: (_copied(self.sent), _copied(self.heard)),
        }

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        self._at("subtask_reset", subtask, checkpoint_id)
        sent, heard = self._snapshots[checkpoint_id]
        self.sent[subtask], self.heard[subtask] = list(sent[subtask]), list(heard[subtask])

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self._at("execution_attempt_ready", subtask, attempt)
        self.gateways[subtask] = self.all_gateways[subtask, attempt] = gateway

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self._at("execution_attempt_failed", subtask, attempt, reason)
        if subtask in self.gateways and self.gateways[subtask].attempt == attempt:
            del self.gateways[subtask]

    def handle_event_from_operator(
        self, subtask: int, attempt: int, event: Any
    ) -> Future[Any] | None:
        self._at("handle_event_from_operator", subtask, attempt, event)
        self.heard[subtask].append(event)
        return None

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._at("notify_checkpoint_complete", checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._at("notify_checkpoint_aborted", checkpoint_id)

    def handle_client_request(self, request: Any) -> Any:
        self._at("handle_client_request", request)
        if self.script.answer is None:
            return super().handle_client_request(request)
        return self.script.answer(request)

    def supports_batch_snapshot(self) -> bool:
        return self.script.has_batch_snapshots

    def close(self) -> None:
        self.is_closed = True
        self._at("close")


def _copied(events: Events) -> Events:
    return [list(of_one) for of_one in events]


class ScriptedProvider(CoordinatorProvider):
    """Makes scripted coordinators, or what `coordinator` makes of a context and a script."""

    def __init__(
        self,
        operator_id: str,
        script: Script | None = None,
        coordinator: Callable[[CoordinatorContext, Script], OperatorCoordinator] | None = None,
    ) -> None:
        self._operator_id = operator_id
        self.script = Script() if script is None else script
        self._make = coordinator or ScriptedCoordinator

    @property
    def operator_id(self) -> str:
        return self._operator_id

    def create(self, context: CoordinatorContext) -> OperatorCoordinator:
        self.script.at(f"{self._operator_id}.create")
        return self._make(context, self.script)


class ScriptedOperator(Operator):
    """An operator for tests, of simulated jobs: tell it what to do, and read what it was told.

    Put it into a `ScriptedProgram`, or into a program of your own. Call `send` to send an event to
    the coordinator. Its state is the events that it has `handled`; it hands over, to be committed,
    those that are in no completed checkpoint.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.script = Script() if script is None else script
        self.handled: list[Any] = []
        self._rows: list[Any] = []
        self._handed_over: dict[int, int] = {}
        self._is_open = False

    def _at(self, method: str, *arguments: Any) -> None:
        context = self.context
        self.script.at(f"{context.operator_id}[{context.subtask}].{method}", *arguments)

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self._is_open = True
        self.script.operators[context.operator_id, context.subtask] = self
        self._at("open", state)
        self.handled = [] if state is None else msgpack.unpackb(state)

    def send(self, event: Any) -> None:
        """Send to the coordinator."""
        self.context.send_to_coordinator(event)

    def handle_event(self, event: Any) -> None:
        self._at("handle_event", event)
        self.handled.append(event)
        self._rows.append(event)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self._at("prepare_commit", checkpoint_id)
        self._handed_over[checkpoint_id] = len(self._rows)
        return list(self._rows)

    def snapshot(self, checkpoint_id: int) -> bytes:
        self._at("snapshot", checkpoint_id)
        return bytes(msgpack.packb(self.handled))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._at("notify_checkpoint_complete", checkpoint_id)
        del self._rows[: self._handed_over.get(checkpoint_id, 0)]
        self._handed_over.clear()

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._at("notify_checkpoint_aborted", checkpoint_id)

    def close(self) -> None:
        if self._is_open:
            self._at("close")


class ScriptedProgram(Program):
    """A program for tests: runs `operators`, and its work comes to `script.work`."""

    def __init__(self, operators: Mapping[str, Operator], script: Script | None = None) -> None:
        self._operators = operators
        self.script = Script() if script is None else script

    @property
    def operators(self) -> Mapping[str, Operator]:
        return self._operators

    def work(self) -> Work:
        self.script.obey("program.work")
        return self.script.work
