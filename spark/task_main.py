"""What runs in a Spark Python worker: one attempt of one subtask, from its hello to its end.

Decides how messages and work take turns, and how the task ends towards Spark: it returns only when
the driver told it to finish, since Spark never runs a returned task again; in every other case it
raises, and Spark starts the next attempt. Leaves to `Worker` what the messages mean.

Runs on the task's only thread; the channel adds one for heartbeats. Workers are reused by Spark, so
nothing about an attempt is kept in this module.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn

from epochgate.errors import EpochgateError
from epochgate.fsm import Journal
from epochgate.models.task import TaskSystem
from epochgate.runtime.api.operator import FatalTaskError, Program, Work, metrics_of
from epochgate.runtime.api.own_frames import own_frames
from epochgate.runtime.api.plain_values import ValueNotPlain, insist_on_plain
from epochgate.runtime.api.transport import Message
from epochgate.runtime.shell.clock import MonotonicClock
from epochgate.runtime.shell.handing_over import insist_on_plain_events
from epochgate.runtime.shell.worker import Worker
from epochgate.spark.wire import (
    CannotConnect,
    ChannelClosed,
    HandshakeTimedOut,
    MessageNotPlain,
    MessageTooLarge,
    TaskChannel,
)

CONNECTION_TRIES_MAX: Final = 3
CONNECTION_RETRY_S: Final = 0.2
CONNECTION_TIMEOUT_S: Final = 4.0
"""Of one try; a packet that was lost is sent again after 1 and 3 s. Then another host may do."""
METRICS_INTERVAL_S: Final = 1.0
SUMMED_UP: Final = ("acknowledge", "ended", "finished")
"""Messages before which the figures are sent, so that a checkpoint's and the end's are right."""
IDLE_WAIT_S: Final = 1.0
FAREWELL_WAIT_S: Final = 5.0
_log = logging.getLogger(__name__)


class AttemptOver(EpochgateError):
    """This attempt ends without having been told to finish; Spark is to start another."""


def run_task(settings: Mapping[str, Any], *, subtask: int, identity: int) -> None:
    """Connect, do as the driver says, and return once it says that the job is over.

    `settings`: "host", "port", "key", "certificate" (of a private wire, or None), "run_id",
    "parallelism", "coordinators" (operator ids),
    "program" (a pickled callable from the subtask to its `Program`; it came with Spark's own task,
    never over our socket), "heartbeat_interval_s", "silence_timeout_s", "frame_bytes_max", and
    perhaps "tracing" (the fields of a `Tracing`, where the trace is written). Raises AttemptOver,
    and what `TaskChannel.connect` raises.
    """
    channel = _connected(settings, subtask, identity)
    attempt = Attempt(channel, settings, subtask, identity)
    try:
        attempt.run()
    except ChannelClosed as error:
        if attempt.is_finished:
            return
        raise AttemptOver(f"attempt of subtask {subtask} is over: {error}") from None
    finally:
        channel.close("the task's process leaves")


def run_partition(settings: Mapping[str, Any], subtask: int, rows: Iterator[Any]) -> Iterator[Any]:
    """Run the resident task of a partition of Spark's; raises what `run_task` raises."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "Spark runs this"
    # 0 stands for "no process" on the driver, and Spark counts from 0.
    run_task(settings, subtask=subtask, identity=context.taskAttemptId() + 1)
    return iter(())


def _connected(settings: Mapping[str, Any], subtask: int, identity: int) -> TaskChannel:
    hello = {
        "run_id": settings["run_id"],
        "subtask": subtask,
        "identity": identity,
        "pid": os.getpid(),
        "host": socket.gethostname(),
    }
    for tries in range(1, CONNECTION_TRIES_MAX + 1):
        try:
            return TaskChannel.connect(
                (settings["host"], settings["port"]),
                settings["key"],
                hello,
                certificate=settings["certificate"],
                timeout_s=CONNECTION_TIMEOUT_S,
                heartbeat_interval_s=settings["heartbeat_interval_s"],
                silence_timeout_s=settings["silence_timeout_s"],
                frame_bytes_max=settings["frame_bytes_max"],
            )
        except (CannotConnect, HandshakeTimedOut):
            if tries == CONNECTION_TRIES_MAX:
                raise
            # A driver that is busy is given longer each time.
            time.sleep(CONNECTION_RETRY_S * tries)
    raise AssertionError("unreachable")


def _idle_s(worker: Worker) -> float:
    """How long a worker with nothing to do may wait for messages."""
    wake_up_s = worker.wake_up.in_s()
    return IDLE_WAIT_S if wake_up_s is None else min(IDLE_WAIT_S, wake_up_s)


class Attempt:
    """The loop of one attempt."""

    def __init__(
        self, channel: TaskChannel, settings: Mapping[str, Any], subtask: int, identity: int
    ) -> None:
        self._channel, self._settings = channel, settings
        self._subtask, self._identity = subtask, identity
        self._outgoing: list[Message] = []
        self._made: Program | None = None
        self.is_finished = False
        """The driver has been told that this process leaves as it was told to."""

    def run(self) -> None:
        """Run to the end; AttemptOver or ChannelClosed unless told to finish."""
        messages = self._first_messages()
        if messages[0] == ["finish"]:
            self._say(["finished"])
            self._flush()
            return
        program = self._made = self._program()
        worker = Worker(
            program,
            subtask=self._subtask,
            parallelism=self._settings["parallelism"],
            run_id=self._settings["run_id"],
            coordinators=list(self._settings["coordinators"]),
            send=self._say,
            clock=MonotonicClock(),
            journal=self._journal(),
        )
        try:
            self._loop(worker, program, messages)
        except (MessageNotPlain, MessageTooLarge, ValueNotPlain) as error:
            self._give_up(str(error), is_fatal=True)
        except (ChannelClosed, AttemptOver):
            raise
        except Exception:  # noqa: BLE001  user code may raise anything
            self._give_up(traceback.format_exc(limit=-6), is_fatal=False)
        finally:
            self._close(worker)
        if not self.is_finished:
            self._give_up_quietly()

    def _journal(self) -> Callable[[TaskSystem], Journal] | None:
        if self._settings.get("tracing") is None:
            return None
        from epochgate.runtime.tracing.file_journal import Tracing

        return Tracing(**self._settings["tracing"]).task(self._subtask, self._identity)

    def _first_messages(self) -> list[Message]:
        # Nothing of the user is made before the driver wants this process.
        messages: list[Message] = []
        while not messages:
            messages = self._channel.receive(IDLE_WAIT_S)
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
        except Exception as error:  # noqa: BLE001  user code may raise anything
            is_fatal = isinstance(error, FatalTaskError | EpochgateError)
            frames = own_frames(error)
            reason = str(error) if is_fatal else f"{type(error).__name__}: {error}{frames}"
            self._give_up(reason, is_fatal=is_fatal)

    def _loop(self, worker: Worker, program: Program, messages: list[Message]) -> None:
        is_busy = False
        metrics_at_s = time.monotonic() + METRICS_INTERVAL_S
        while True:
            if messages:
                worker.handle(messages)
                # An acknowledgement must not wait for the next piece of work.
                self._flush()
            is_busy = worker.work() is Work.DONE
            now_s = time.monotonic()
            if now_s >= metrics_at_s:
                self._say_metrics(program)
                metrics_at_s = now_s + METRICS_INTERVAL_S
            self._flush()
            if worker.is_over:
                return
            messages = self._channel.receive(0.0 if is_busy else _idle_s(worker))

    def _say(self, message: Message) -> None:
        if self._made is not None and message[0] in SUMMED_UP:
            self._say_metrics(self._made)
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

    def _give_up(self, reason: str, *, is_fatal: bool) -> NoReturn:
        self._outgoing = [["failed", reason, is_fatal]]
        self._give_up_quietly()

    def _give_up_quietly(self) -> NoReturn:
        """Wait until the driver has heard why, and closes; then end."""
        self._flush()
        deadline_s = time.monotonic() + FAREWELL_WAIT_S
        while time.monotonic() < deadline_s:
            self._channel.receive(FAREWELL_WAIT_S)
        raise AttemptOver(f"the attempt of subtask {self._subtask} has failed; the driver knows")

    def _close(self, worker: Worker) -> None:
        try:
            worker.close()
        except Exception:  # noqa: BLE001  the attempt is over; its outcome is decided
            _log.exception("an operator of subtask %d failed to close", self._subtask)
