"""The loop in a Spark Python worker: one attempt of one subtask, from its hello to its end.

Decides how messages and work take turns. Leaves to `Worker` what the messages mean, and to
`task_main` what comes after the attempt.

Runs on the task's only thread; the channel adds one for heartbeats. Spark reuses workers, and
attempts follow each other in one, so nothing about an attempt is kept in this module.
"""

from __future__ import annotations

import logging
import pickle
import sys
import time
from collections.abc import Callable
from typing import Final, NoReturn, Protocol

from epochgate.errors import EpochgateError
from epochgate.fsm import Journal, System
from epochgate.runtime.api.operator import FatalTaskError, Program, Work, metrics_of
from epochgate.runtime.api.plain_values import (
    ValueNotPlain,
    insist_on_plain,
    insist_on_plain_events,
)
from epochgate.runtime.api.raised import in_words
from epochgate.runtime.api.transport import Message
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.shell.worker import Worker
from epochgate.spark.operator_watch import OPERATOR_WARN_S, OperatorWatch
from epochgate.spark.task_settings import TaskSettings
from epochgate.spark.wire import ChannelClosed, MessageNotPlain, MessageTooLarge, TaskChannel

METRICS_INTERVAL_S: Final = 1.0
SUMMED_UP: Final = ("acknowledge", "ended", "finished")
"""Messages before which the figures are sent, so that a checkpoint's and the end's are right."""
RELEASE: Final[Message] = ["release"]
FAILED: Final = "failed"
IDLE_WAIT_S: Final = 1.0
FAREWELL_WAIT_S: Final = 5.0
_log = logging.getLogger(__name__)


class AttemptOver(EpochgateError):
    """This attempt ends without having been told to finish; another is to follow."""


class Released(AttemptOver):
    """The driver has taken the attempt back; its process may begin the next."""


class Listener(Protocol):
    """Hears how an attempt gets on; on its thread."""

    def checkpointed(self) -> None:
        """A checkpoint is completed in which it took part."""

    def failed(self) -> None:
        """It tells the driver that it cannot go on."""


def _idle_s(worker: Worker) -> float:
    """Return the seconds for which a worker with nothing to do may wait for messages."""
    wake_up_s = worker.wake_up.in_s()
    return IDLE_WAIT_S if wake_up_s is None else min(IDLE_WAIT_S, wake_up_s)


class Attempt:
    """The loop of one attempt."""

    def __init__(
        self,
        channel: TaskChannel,
        settings: TaskSettings,
        subtask: int,
        identity: int,
        listener: Listener,
    ) -> None:
        self._channel, self._settings, self._listener = channel, settings, listener
        self._subtask, self._identity = subtask, identity
        self._outgoing: list[Message] = []
        self._made: Program | None = None
        self.is_finished = False
        """The driver has been told that this process leaves as it was told to."""

    def run(self) -> None:
        """Run to the end, and close the operators; Released, AttemptOver or ChannelClosed unless
        told to finish.
        """
        messages = self._first_messages()
        if messages[0] == ["finish"]:
            self._say(["finished"])
            self._flush()
            return
        with OperatorWatch(self._warn, OPERATOR_WARN_S) as watch:
            self._attempt(messages, watch)
        if not self.is_finished:
            self._give_up_quietly()

    def _attempt(self, messages: list[Message], watch: OperatorWatch) -> None:
        watch.enter("the making of the program")
        program = self._made = self._program()
        worker = self._worker(program)
        watch.leave()
        try:
            self._loop(worker, program, messages, watch)
        except (MessageNotPlain, MessageTooLarge, ValueNotPlain) as error:
            self._give_up(str(error), is_fatal=True)
        except (ChannelClosed, AttemptOver):
            raise
        except BaseException as error:  # noqa: BLE001  user code may raise anything
            self._give_up_for(error)
        finally:
            watch.enter("the close of an operator")
            self._close(worker)
            watch.leave()

    def _journal(self) -> Callable[[System], Journal] | None:
        if self._settings["tracing"] is None:
            return None
        from epochgate.runtime.tracing.file_journal import Tracing

        return Tracing(**self._settings["tracing"]).task(self._subtask, self._identity)

    def _first_messages(self) -> list[Message]:
        # Nothing of the user is made before the driver wants this process.
        messages: list[Message] = []
        while not messages:
            messages = self._receive(IDLE_WAIT_S)
        return messages

    def _receive(self, timeout_s: float) -> list[Message]:
        messages = self._channel.receive(timeout_s)
        # It is the last that the driver says to this attempt.
        if messages and messages[-1] == RELEASE:
            raise Released(f"the driver has taken back the attempt of subtask {self._subtask}")
        return messages

    def _program(self) -> Program:
        try:
            factory: Callable[[int], Program] = pickle.loads(self._settings["program"])  # noqa: S301  from Spark's own task
            return factory(self._subtask)
        except ModuleNotFoundError as error:
            self._give_up(
                f"the program needs the module {error.name!r}, which the workers' Python, "
                f"{sys.executable}, lacks: {error}; if another Python has it, set PYSPARK_PYTHON "
                "to that one before the session starts; else install it there, send it with "
                "SparkContext.addPyFile, or name it in by_value",
                is_fatal=True,
            )
        except BaseException as error:  # noqa: BLE001  user code may raise anything
            self._give_up_for(error)

    def _worker(self, program: Program) -> Worker:
        try:
            return Worker(
                program,
                subtask=self._subtask,
                parallelism=self._settings["parallelism"],
                run_id=self._settings["run_id"],
                coordinators=list(self._settings["coordinators"]),
                send=self._say,
                clock=MonotonicClock(),
                journal=self._journal(),
                commits_in_tasks=self._settings["commits_in_tasks"],
            )
        except BaseException as error:  # noqa: BLE001  it asks the program for its operators
            self._made = None
            self._give_up_for(error)

    def _warn(self, text: str) -> None:
        """Tell the driver, on another thread than the task's."""
        self._channel.send(["warning", text])

    def _loop(
        self, worker: Worker, program: Program, messages: list[Message], watch: OperatorWatch
    ) -> None:
        is_busy, completed = False, 0
        metrics_at_s = time.monotonic() + METRICS_INTERVAL_S
        while True:
            if messages:
                watch.enter(f"an operator's call for the message {messages[0][0]!r}")
                worker.handle(messages)
                watch.leave()
                if worker.completed > completed:
                    completed = worker.completed
                    self._listener.checkpointed()
                # An acknowledgement must not wait for the next piece of work.
                self._flush()
            watch.enter("a piece of work")
            is_busy = worker.work() is Work.DONE
            watch.leave()
            now_s = time.monotonic()
            if now_s >= metrics_at_s:
                self._say_metrics(program)
                metrics_at_s = now_s + METRICS_INTERVAL_S
            self._flush()
            if worker.is_over:
                return
            messages = self._receive(0.0 if is_busy else _idle_s(worker))

    def _say(self, message: Message) -> None:
        if self._made is not None and message[0] in SUMMED_UP:
            self._say_metrics(self._made)
        if message[0] == FAILED:
            self._listener.failed()
        self._outgoing.append(message)

    def _say_metrics(self, program: Program) -> None:
        self._outgoing.append(["metrics", metrics_of(program)])

    def _flush(self) -> None:
        if self._outgoing:
            messages, self._outgoing = self._outgoing, []
            try:
                self._channel.send_many(messages)
            except MessageNotPlain:
                self._blame(messages)
                raise
            self.is_finished = self.is_finished or ["finished"] in messages

    def _blame(self, messages: list[Message]) -> None:
        """Raise ValueNotPlain, which names the operator, for an event of user code, or figures."""
        insist_on_plain_events(messages, self._settings["coordinators"])
        for tag, *arguments in messages:
            if tag == "metrics":
                insist_on_plain("what the program's metrics() returned", arguments[0])

    def _give_up_for(self, error: BaseException) -> NoReturn:
        is_fatal = isinstance(error, FatalTaskError | EpochgateError)
        self._give_up(in_words(error), is_fatal=is_fatal)

    def _give_up(self, reason: str, *, is_fatal: bool) -> NoReturn:
        self._outgoing = []
        self._say([FAILED, reason, is_fatal])
        self._give_up_quietly()

    def _give_up_quietly(self) -> NoReturn:
        """Wait until the driver has heard why, and takes the attempt back or closes; then end."""
        self._flush()
        deadline_s = time.monotonic() + FAREWELL_WAIT_S
        while time.monotonic() < deadline_s:
            self._receive(FAREWELL_WAIT_S)
        raise AttemptOver(f"the attempt of subtask {self._subtask} has failed; the driver knows")

    def _close(self, worker: Worker) -> None:
        try:
            worker.close()
        except BaseException:  # noqa: BLE001  the attempt is over; its outcome is decided
            _log.exception("an operator of subtask %d failed to close", self._subtask)
