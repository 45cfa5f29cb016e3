"""The attempts of one subtask: each of Spark's tasks in `ResidentTask` runs a `ResidentProcess`.

The channel to the driver is played, and so is the look at what an attempt has left; the attempts
with their worker and operators are those that run in production. Spark and the driver are played.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, Final, cast
from unittest import mock

from epochgate.fsm.machine import Machine
from epochgate.models.closed.residing import ResidentTask
from epochgate.models.closed.surroundings.residing import AWAY, GONE, HERE, REPLACED
from epochgate.spark import task_main
from epochgate.spark.attempt_loop import AttemptOver
from epochgate.spark.identities import identity_of, task_attempt_of
from epochgate.spark.task_settings import TaskSettings
from epochgate.spark.wire import ChannelClosed
from tests.playing.gates import WELL, Lie, Process, gated, the_truth
from tests.playing.stage import Act
from tests.runtime.transport_contract import EchoProgram

HELLO, LISTEN, CLEAR = "hello", "listen", "clear"
"""Where a process stands: it has connected, it waits for the driver, it looks what is left."""
CLOSED: Final = "closed"
LITTERED: Final = "littered"
"""Outcomes of what it waits for, beside messages of the driver by their names."""
MESSAGES: Final[Mapping[str, list[Any]]] = {
    "fail": ["event", 0, 1, "poison"],
    "release": ["release"],
    "complete": ["complete", 1],
    "finish": ["finish"],
}
LEFT: Final = "thread 'left'"
SETTINGS: Final[TaskSettings] = {
    "host": "",
    "port": 0,
    "key": b"",
    "certificate": None,
    "run_id": "",
    "parallelism": 1,
    "coordinators": ["echo"],
    "commits_in_tasks": False,
    "program": pickle.dumps(EchoProgram),
    "heartbeat_interval_s": 1.0,
    "silence_timeout_s": 1.0,
    "detection": {},
    "message_bytes_max": 1,
    "tracing": None,
}


class Channel:
    """A process's connection to the driver; says what the schedule tells."""

    def __init__(self, task: Task, identity: int) -> None:
        self._task, self._is_new = task, True
        task.identity, task.is_looking = identity, False

    def receive(self, timeout_s: float = 0.0) -> list[Any]:
        """Return what the driver says. Raises ChannelClosed."""
        task = self._task
        if not task.is_looking:
            task.stand(HELLO if self._is_new else LISTEN, ())
        if task.outcome == CLOSED or task.leaving:
            raise ChannelClosed("the driver has closed it")
        if self._is_new:
            self._is_new = False
            return [["restore", 1, 0, None]]
        return [MESSAGES[task.outcome]] if task.outcome in MESSAGES else []

    def send(self, message: list[Any]) -> None:
        """Hear why the process leaves."""
        if message[0] == "leaving":
            self._task.leaving = message[1]

    def send_many(self, messages: list[list[Any]]) -> None:
        """Hear nothing else: the schedule knows."""

    def close(self, reason: str) -> None:
        """There is nothing to close."""


class Task(Process):
    """One of Spark's tasks, and its process."""

    at_once: ClassVar[frozenset[str]] = frozenset(("begin",))

    def __init__(self, world: Residing, number: int) -> None:
        super().__init__()
        self._world, self.number = world, number
        self.state, self.identity, self.failures = AWAY, 0, 0
        self.is_looking = False
        """It looks what is left, and whether the driver still waits."""
        self.leaving = ""
        """Why it leaves, as the driver is told."""

    def launch(self) -> None:
        """Let Spark start it."""
        self.state = HERE
        self.call(self._runs)

    def stand(self, message: str, arguments: tuple[Any, ...]) -> None:
        super().stand(message, arguments)
        self.is_looking = message == CLEAR

    def _runs(self) -> None:
        settings, number = cast(TaskSettings, SETTINGS | {"host": self}), self.number
        process = task_main.ResidentProcess(settings, 0, number, self._world.system.attempts)
        process.run()


def connected(address: tuple[Task, object], key: object, hello: Any, **options: object) -> Channel:
    """Return what stands in for a connection."""
    return Channel(address[0], hello["identity"])


class Residing:
    """The world of `ResidentTask`."""

    def __init__(self, system: ResidentTask, lie: Lie = the_truth) -> None:
        self.system, self.lie = system, lie
        self.tasks = [Task(self, number) for number in range(system.tasks)]
        self.speaking = self.newest = self.launched = self.running = self.failures = 0
        self.has_finished = self.has_replaced = False
        self._acting = self.tasks[0]
        """The process that goes on, until it stands again or has ended."""
        self._patches = ExitStack()
        for name, value in {
            "Handles": lambda *made, **given: gated(self._acting, lie)(*made, **given),
            "TaskChannel": mock.Mock(connect=connected),
            "Inventory": mock.Mock(),
            "left_since": lambda before: [LEFT] if self._acting.outcome == LITTERED else [],
        }.items():
            self._patches.enter_context(mock.patch.object(task_main, name, value))

    def close(self) -> None:
        """End what is under way."""
        for task in self.tasks:
            task.kill()
        self._patches.close()

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        for task in self.tasks:
            if task.state in {HERE, REPLACED}:
                yield "resident", (task.number,), task.system.resident

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        driver = self.system.driver
        for task in self.tasks:
            process = self.system.process[task.number]
            told = process.state, process.identity
            yield f"process {task.number}", told, (task.state, self.counted(task.identity))
            yield f"why process {task.number} leaves", self._reason(task), task.leaving
        known = driver.speaking, driver.newest, driver.launched, driver.running
        real = self.counted(self.speaking), self.counted(self.newest), self.launched, self.running
        yield "whom the driver knows", known, real
        ends = driver.has_finished, driver.has_replaced
        yield "what was ended", ends, (self.has_finished, self.has_replaced)

    def counted(self, identity: int) -> int:
        """An identity as the model counts."""
        if identity == 0:
            return 0
        task = task_attempt_of(identity)
        return task * self.system.attempts + identity - identity_of(task, 1) + 1

    def _reason(self, task: Task) -> str:
        """Tell what the driver hears of a process that has left at the end of an attempt."""
        resident = self.system.resident[task.number]
        if not task.leaving:
            return ""
        if self.system.process[task.number].is_littered:
            return f"something of the attempt is left in it: {LEFT}"
        if resident.number == self.system.attempts:
            return "it has had as many attempts as a process may have"
        return "two attempts failed in it, and no checkpoint was completed since"

    def launch(self, number: int) -> None:
        self.launched += 1
        self.running = number + 1
        self._acting = self.tasks[number]
        self._acting.launch()
        self._look(number)

    def _look(self, number: int) -> None:
        """Go on where a process stands now, or has ended."""
        task = self.tasks[number]
        if task.asked == HELLO:
            if task.identity > self.newest:
                for other in self.tasks:
                    if self.speaking and other.identity == self.speaking:
                        self.answer(other.number, CLOSED)
                self.newest = self.speaking = task.identity
                self.answer(number, WELL)
            else:
                self.answer(number, CLOSED)
        elif not task.is_busy and task.state == HERE:
            self._ended(task)

    def _ended(self, task: Task) -> None:
        if task.error is None:
            task.state, self.has_finished = GONE, True
            return
        if not isinstance(task.error, AttemptOver):
            raise task.error
        assert str(task.error) == (task.leaving or str(task.error)), "Spark is told the same"
        task.state = REPLACED
        self.has_replaced = self.has_replaced or task.leaving != ""
        self._hang_up(task)

    def _hang_up(self, task: Task) -> None:
        if self.speaking == task.identity:
            self.speaking = 0
        if self.running == task.number + 1:
            self.running = 0

    def answer(self, number: int, outcome: str) -> None:
        """Answer what a process waits for."""
        self._acting = self.tasks[number]
        self._acting.answer(outcome)
        self._look(number)

    def fail(self, number: int) -> None:
        self.failures += 1
        self.tasks[number].failures += 1
        self.answer(number, "fail")
        self._release(number)

    def take_back(self, number: int) -> None:
        self.failures += 1
        self._release(number)

    def _release(self, number: int) -> None:
        self.speaking = 0
        self.answer(number, "release")

    def complete(self, number: int) -> None:
        self.tasks[number].failures = 0
        self.answer(number, "complete")

    def spend(self, number: int, outcome: str) -> None:
        """Answer by a failure."""
        self.failures += 1
        self.answer(number, outcome)

    def die(self, number: int) -> None:
        self.failures += 1
        task = self.tasks[number]
        task.kill()
        task.state = GONE
        self._hang_up(task)

    def lose_sight(self) -> None:
        self.failures += 1
        self.running = 0

    def may_fail(self) -> bool:
        return self.failures < self.system.F

    def speaks(self, number: int) -> bool:
        task = self.tasks[number]
        return task.asked == LISTEN and self.speaking == task.identity

    def clears(self, number: int) -> bool:
        return self.tasks[number].asked == CLEAR

    acts: ClassVar[Mapping[str, Act]] = {
        "process.launch": Act(
            launch,
            lambda world, n: n == world.launched and world.running == 0 and not world.has_finished,
            "a task runs, or none is left",
        ),
        "process.fail": Act(
            fail,
            lambda world, n: world.speaks(n) and world.may_fail(),
            "another process speaks",
        ),
        "process.take_back": Act(
            take_back,
            lambda world, n: world.speaks(n) and world.may_fail(),
            "another process speaks",
        ),
        "process.complete": Act(
            complete,
            lambda world, n: world.speaks(n) and world.tasks[n].failures > 0,
            "nothing has failed here",
        ),
        "process.finish": Act(
            lambda world, n: world.answer(n, "finish"), speaks, "another process speaks"
        ),
        "process.tidy": Act(
            lambda world, n: world.answer(n, WELL), clears, "the process does not look what is left"
        ),
        "process.litter": Act(
            lambda world, n: world.spend(n, LITTERED),
            lambda world, n: world.clears(n) and world.may_fail(),
            "the process does not look what is left",
        ),
        "process.expire": Act(
            lambda world, n: world.spend(n, CLOSED),
            lambda world, n: world.clears(n) and world.may_fail(),
            "the process does not look what is left",
        ),
        "process.die": Act(
            die,
            lambda world, n: world.tasks[n].state == HERE and world.may_fail(),
            "no process runs",
        ),
        "driver.lose_sight": Act(
            lose_sight, lambda world: world.running > 0 and world.may_fail(), "no task runs"
        ),
    }
