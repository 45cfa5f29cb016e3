"""The worker's side of a job: drives one program by the messages of the driver, through the task
machine.

The shell around it (a Spark task, or a simulated process) hands messages in, sends what comes out,
and calls `work` in between. It runs on the task's only thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NoReturn

import msgpack

from epochgate.errors import EpochgateError
from epochgate.fsm import Clock, Handles, Journal, System, drive
from epochgate.models.task import TaskSystem
from epochgate.runtime.api.committer import RetryLater
from epochgate.runtime.api.dropped_state import insist_on_operators
from epochgate.runtime.api.operator import (
    FatalTaskError,
    Operator,
    OperatorContext,
    Program,
    Work,
    operators_of,
)
from epochgate.runtime.api.plain_values import insist_on_plain
from epochgate.runtime.api.raised import in_words, let_pass
from epochgate.runtime.api.receipts import AwaitedReceipts, Receipt
from epochgate.runtime.api.send_future import SendFuture, Together
from epochgate.runtime.api.state_versions import FIRST, Versioned, parted, upgraded
from epochgate.runtime.api.transport import Message
from epochgate.runtime.closing import close_all
from epochgate.runtime.shell.part_commits import commit_part, insist_on_step
from epochgate.runtime.shell.wake_up import WakeUp

DRIVER_TAGS = ("restore", "event", "barrier", "commit", "complete", "aborted", "finish")


class Worker:
    """One attempt of one subtask.

    `coordinators` lists the operator ids of the job's coordinators in the job's order;
    `commits_in_tasks` says whether the driver asks the task to commit; `send` takes messages to the
    driver; `clock` is that of the operators' wake-ups and of the journal; `journal` makes what the
    machine's events are recorded in.
    """

    def __init__(
        self,
        program: Program,
        *,
        subtask: int,
        parallelism: int,
        run_id: str,
        coordinators: list[str],
        send: Callable[[Message], None],
        clock: Clock,
        journal: Callable[[System], Journal] | None = None,
        commits_in_tasks: bool = False,
    ) -> None:
        self.program = program
        self.clock, self.wake_up = clock, WakeUp(clock)
        self.subtask, self.parallelism, self.run_id = subtask, parallelism, run_id
        self.coordinators, self._commits_in_tasks = coordinators, commits_in_tasks
        self.send = send
        self.is_over = False
        self.completed = 0
        """The last checkpoint of which the operators were told that it is completed."""
        self._may_work = False
        self._operators = operators_of(program)
        self._unconfirmed: dict[int, int] = {}
        system = Handles(TaskSystem, coordinators=len(coordinators))
        system.bind("task", "operators", self)
        self.task = system.task
        self._queue = drive(system, clock, journal)
        self._journal = self._queue.journal
        self._triggers = {tag: getattr(self.task, tag) for tag in DRIVER_TAGS}
        self._triggers["receipt"] = self._receive
        self._triggers["events"] = self._receive_together
        self._receipts = [AwaitedReceipts() for _ in coordinators]

    def handle(self, messages: list[Message]) -> None:
        """Process messages of the driver, in order, and confirm the events among them."""
        post, triggers = self._queue.post, self._triggers
        for message in messages:
            tag = message[0]
            if tag not in triggers:
                raise ValueError(f"the driver sent {tag!r}, which this version does not know")
            post(triggers[tag], *message[1:])
        try:
            self._queue.drain()
        except BaseException as error:  # noqa: BLE001  # user code may raise anything; the driver decides what follows
            self._fail(error)
        for coordinator, number in self._unconfirmed.items():
            self.send(["confirm", coordinator, number])
        self._unconfirmed.clear()

    def work(self) -> Work:
        """Let the program do one piece of work, if it may; IDLE when there is nothing to do now."""
        if self._journal is not None:
            self._journal.between_events()
        if not self._may_work:
            return Work.IDLE
        self.wake_up.pass_by()
        try:
            outcome = self._work()
        except BaseException as error:  # noqa: BLE001  # as in `handle`
            self._fail(error)
            return Work.IDLE
        if outcome is Work.ENDED:
            self._process(self.task.end_input)
        return outcome

    def _work(self) -> Work:
        outcome: Any = self.program.work()
        if not isinstance(outcome, Work):
            program = type(self.program)
            raise FatalTaskError(
                f"{program.__module__}.{program.__qualname__}.work() returned {outcome!r}, and "
                "must return Work.DONE (more may be done at once), Work.IDLE (not before the next "
                "message or wake-up) or Work.ENDED (the input has ended)"
                + ("; is a `return` missing?" if outcome is None else "")
            )
        work: Work = outcome
        return work

    def close(self) -> None:
        """Close the operators, whatever state the attempt is in, and the journal; the first error
        is raised after all were closed.
        """
        try:
            close_all(self._operators.values())
        finally:
            if self._journal is not None:
                self._journal.close()

    def _fail(self, error: BaseException) -> None:
        let_pass(error)
        is_own = isinstance(error, FatalTaskError | EpochgateError)
        is_fatal = is_own and not isinstance(error, RetryLater)
        reason = in_words(error)
        self._queue.abandon()  # no operator is called after one has raised
        self._process(self.task.fail, reason, is_fatal)

    def _process(self, trigger: Callable[..., Any], *arguments: Any) -> None:
        self._queue.post(trigger, *arguments)
        self._queue.drain()

    # port `operators`

    def restore(self, attempt: int, checkpoint: int, restored: dict[str, Versioned] | None) -> None:
        self.send(["initialize"])
        states = self._own_states(checkpoint, restored or {})
        for operator_id, operator in self._operators.items():
            context = OperatorContext(
                operator_id=operator_id,
                subtask=self.subtask,
                attempt=attempt,
                parallelism=self.parallelism,
                run_id=self.run_id,
                send_to_coordinator=self._sender(operator_id),
                send_with_receipt=self._registrar(operator_id),
                wake_after=self.wake_up.after,
                now_s=self.clock.now_s,
            )
            operator.open(context, states.get(operator_id))
        insist_on_step(self._operators.values(), is_asked=self._commits_in_tasks)
        self.send(["run"])
        self._may_work = True

    def _own_states(self, checkpoint: int, restored: dict[str, Versioned]) -> dict[str, bytes]:
        """The operators' states in the versions of their code."""
        what = f"checkpoint {checkpoint} of subtask {self.subtask}"
        states, versions = parted(restored)
        insist_on_operators(what, states, self._operators)
        return {
            name: upgraded(
                f"the state of operator {name!r} in {what}",
                versions.get(name, FIRST),
                operator.state_version,
                states[name],
                operator.upgrade_state,
            )
            for name, operator in self._operators.items()
            if name in states
        }

    def _sender(self, operator_id: str) -> Callable[[Any], None]:
        if operator_id not in self.coordinators:
            return partial(_refuse, operator_id)
        coordinator = self.coordinators.index(operator_id)
        return lambda event: self.send(["event", coordinator, event])

    def _registrar(self, operator_id: str) -> Callable[[Any], SendFuture]:
        if operator_id not in self.coordinators:
            return partial(_refuse, operator_id)
        coordinator = self.coordinators.index(operator_id)

        def send_with_receipt(event: Any) -> SendFuture:
            number, future = self._receipts[coordinator].register(event)
            self.send(["registered_event", coordinator, number, event])
            return future

        return send_with_receipt

    def _receive(self, coordinator: int, number: int, receipt: int) -> None:
        self.task.event(coordinator, number, Receipt(receipt))

    def _receive_together(self, coordinator: int, number: int, events: list[Any]) -> None:
        self.task.event(coordinator, number, Together(events))

    def event(self, coordinator: int, number: int, event: Any) -> None:
        if isinstance(event, Receipt):
            self._receipts[coordinator].arrived(event)
        elif isinstance(event, Together):
            handle_event = self._operators[self.coordinators[coordinator]].handle_event
            for one in event:
                handle_event(one)
        else:
            self._operators[self.coordinators[coordinator]].handle_event(event)
        self._unconfirmed[coordinator] = number

    def gap(self, coordinator: int, number: int) -> None:
        raise RuntimeError(
            f"event {number} of {self.coordinators[coordinator]!r} arrived, one before it did not"
        )

    def snapshot(self, checkpoint: int, is_final: bool) -> None:
        committables = _committables_of(self._operators, checkpoint)
        states = _states_of(self._operators, checkpoint)
        self.send(["acknowledge", checkpoint, is_final, states, committables])

    def commit(self, checkpoint: int, tries: int, part: list[Any]) -> None:
        self.send(commit_part(self._operators.values(), checkpoint, tries, part))

    def complete(self, checkpoint: int) -> None:
        self.completed = checkpoint
        for operator in self._operators.values():
            operator.notify_checkpoint_complete(checkpoint)

    def aborted(self, checkpoint: int) -> None:
        for operator in self._operators.values():
            operator.notify_checkpoint_aborted(checkpoint)

    def ended(self) -> None:
        self._work_no_more()
        self.send(["ended"])

    def finish(self) -> None:
        self._leave(["finished"])

    def failed(self, reason: str, is_fatal: bool) -> None:
        self._leave(["failed", reason, is_fatal])

    def _leave(self, message: Message) -> None:
        self._work_no_more()
        self.is_over = True
        self.send(message)

    def _work_no_more(self) -> None:
        self._may_work = False
        self.wake_up.cancel()


def _refuse(operator_id: str, event: Any) -> NoReturn:
    raise FatalTaskError(f"operator {operator_id!r} has no coordinator to send {event!r} to")


def _committables_of(operators: Mapping[str, Operator], checkpoint_id: int) -> list[Any]:
    """Collect what all of them hand over to be committed. Raises ValueNotPlain, which names the
    row, and FatalTaskError for what is no list.
    """
    found: list[Any] = []
    for operator_id, operator in operators.items():
        rows: Any = operator.prepare_commit(checkpoint_id)
        if not isinstance(rows, Iterable):
            raise FatalTaskError(
                f"prepare_commit of operator {operator_id!r} returned {rows!r}, and must return a "
                "list of plain values, an empty one for nothing"
                + ("; is a `return` missing?" if rows is None else "")
            )
        rows = list(rows)
        _insist_on_plain_rows(operator_id, rows)
        found += rows
    return found


def _insist_on_plain_rows(operator_id: str, rows: list[Any]) -> None:
    try:
        msgpack.packb(rows)
    except (TypeError, ValueError, OverflowError, RecursionError):
        for number, row in enumerate(rows):
            insist_on_plain(f"row {number} of prepare_commit of operator {operator_id!r}", row)
        raise


def _states_of(operators: Mapping[str, Operator], checkpoint_id: int) -> dict[str, Versioned]:
    """The snapshots by operator id, with their versions. Raises FatalTaskError for one that is no
    bytes.
    """
    states = {}
    for operator_id, operator in operators.items():
        state: Any = operator.snapshot(checkpoint_id)
        if not isinstance(state, bytes | bytearray):
            raise FatalTaskError(
                f"snapshot of operator {operator_id!r} returned {state!r}, a "
                f"{type(state).__name__}, and must return bytes: pack it with msgpack or json, or "
                'return b"" for no state'
            )
        version, state = operator.state_version, bytes(state)
        states[operator_id] = state if version == FIRST else [version, state]
    return states
