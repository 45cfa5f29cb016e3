"""The changes of a setting: the job of `ChangedSetting` has a `SettingCoordinator`, and an operator
of the setting in each of two tasks.

Job and store are played. A gateway has room for two events between two checkpoints, as long as the
closed system lets the job fail: a send that finds none makes the coordinator fail the job. Events
arrive when a barrier comes, and the second task is ready when the next checkpoint begins.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar, Final
from unittest import mock

import msgpack

from epochgate.fsm.machine import Machine
from epochgate.models.closed.setting import ChangedSetting
from epochgate.models.closed.surroundings.setting import DOWN, RUNNING, TAKING
from epochgate.runtime.api.operator import OperatorContext
from epochgate.runtime.pipeline import setting
from epochgate.runtime.pipeline.setting import GET, SET, Setting, SettingNotDurable
from epochgate.runtime.shell.send_window import GatewayFull
from tests.playing.gates import Lie, Process, gated, the_truth
from tests.playing.stage import Act


class Number(Setting):
    """The value is the number of the newest change; that of the options is below 1, and other with
    each.
    """

    is_of_options: ClassVar[bool] = True


NUMBER: Final = Number("number", 0)
SUBTASKS: Final = 2
ROOM: Final = 2
"""The events that a gateway has room for."""


def shown(value: int) -> int:
    """The value as the closed system has it."""
    return max(0, value)


def held(state: bytes) -> int:
    """The same of the coordinator's state."""
    return shown(msgpack.unpackb(state)[0])


class Task:
    """An attempt of a subtask, and the gateway to it."""

    def __init__(self, world: Settings, subtask: int) -> None:
        self._world, self.subtask, self.is_over = world, subtask, False
        self._on_wire: list[Any] = []
        self._operator = NUMBER.create_operator()
        where = NUMBER.operator_id, subtask, 0, SUBTASKS, "run"
        state = world.stored_state and msgpack.packb(msgpack.unpackb(world.stored_state)[0])
        self._operator.open(OperatorContext(*where, lambda event: None), state)

    def send_event(self, event: Any) -> None:
        """Send the value, if there is room for it."""
        assert not self.is_over, "an attempt that has failed is sent nothing"
        if len(self._on_wire) == ROOM and self._world.may_fail():
            raise GatewayFull("the gateway has no room")
        self._on_wire.append(event)

    def value(self) -> Any:
        """The value once every event has arrived."""
        while self._on_wire:
            self._operator.handle_event(self._on_wire.pop(0))
        return shown(msgpack.unpackb(self._operator.snapshot(0)))


class Settings:
    """The world of `ChangedSetting`."""

    def __init__(self, system: ChangedSetting, lie: Lie = the_truth) -> None:
        self.system, self.lie = system, lie
        self.state, self.failures, self.idle = RUNNING, 0, 0
        self.number = self.stored_number = self.untold = 0
        self.options = 0
        self.saved_state: bytes = msgpack.packb([0, 0])
        self.stored_state: bytes = msgpack.packb([0, 0])
        self.changes: list[Future[Any]] = []
        """The changes that clients have asked for, of all drivers."""
        self.told: list[Any] = []
        """The values that clients were told are made."""
        self.must_fail = False
        """The coordinator has asked the job to fail, which it has not done yet."""
        self.tasks: list[Task] = []
        self._start()

    def _start(self) -> None:
        self.process = Process()
        with mock.patch.object(setting, "Handles", gated(self.process, self.lie)):
            self.coordinator = Number("number", -self.options).create(self)  # type: ignore[arg-type]  # a context
        # Numbers of changes go on in the closed system.
        self.coordinator._numbers = itertools.count(1 + len(self.changes))

    def fail_job(self, error: BaseException) -> None:
        """Note that the coordinator lets the job fail."""
        self.must_fail = True

    def machines(self) -> Iterator[tuple[str, tuple[int, ...], Machine]]:
        yield "changes", (), self.process.system.changes

    def facts(self) -> Iterator[tuple[str, Any, Any]]:
        job, client = self.system.job, self.system.client
        yield "the job", (job.state, job.number), (self.state, self.number)
        yield (
            "the value in force",
            job.in_force,
            shown(self.coordinator.handle_client_request([GET])),
        )
        yield "what a snapshot holds", job.saved, held(self.saved_state)
        stored = self.stored_number, held(self.stored_state)
        yield "the stored checkpoint", (job.stored_number, job.stored), stored
        yield "the newest change that was made", client.acknowledged, max(self.told, default=0)
        yield "the order of what is made", sorted(self.told), self.told
        open_changes = [n for n, made in enumerate(self.changes, 1) if not made.done()]
        yield "the changes that are owed", list(self.system.changes.pending), open_changes

    def may_fail(self) -> bool:
        """Return whether the closed system allows another failure."""
        return self.failures < self.system.F

    def is_needed(self) -> bool:
        """Return whether a checkpoint is needed for a client that waits."""
        return self.untold == 0 and any(not made.done() for made in self.changes)

    def ask(self) -> None:
        made = self.coordinator.handle_client_request([SET, len(self.changes) + 1])
        self.changes.append(made)
        made.add_done_callback(self._note_end)

    def _note_end(self, made: Future[Any]) -> None:
        if made.exception() is None:
            value = made.result()
            assert self.changes[value - 1] is made, "a client is told of its own value"
            self.told.append(value)

    def begin(self) -> None:
        self.idle += not self.is_needed()
        self.number, self.state = self.number + 1, TAKING
        self._let_come(SUBTASKS)
        saved = Future[bytes]()
        self.coordinator.checkpoint(self.number, saved)
        self.saved_state = saved.result(timeout=0)
        for task in self.tasks:
            assert task.value() == held(self.saved_state), (
                "all states of a checkpoint have the same value"
            )

    def _let_come(self, wanted: int) -> None:
        while len(self.tasks) < wanted:
            task = Task(self, len(self.tasks))
            self.tasks.append(task)
            self.coordinator.execution_attempt_ready(task.subtask, 0, task)  # type: ignore[arg-type]  # a gateway

    def abort(self) -> None:
        self.failures, self.state = self.failures + 1, RUNNING
        self._let_fail(self.tasks.pop())

    def _let_fail(self, task: Task) -> None:
        task.is_over = True
        self.coordinator.execution_attempt_failed(task.subtask, 0, "the task fails")

    def store(self) -> None:
        self.state, self.untold = RUNNING, self.number
        self.stored_number, self.stored_state = self.number, self.saved_state

    def tell(self) -> None:
        self.coordinator.notify_checkpoint_complete(self.untold)
        self.untold = 0

    def fail(self) -> None:
        self.failures, self.state, self.must_fail = self.failures + 1, DOWN, False
        while self.tasks:
            self._let_fail(self.tasks.pop())

    def restore(self) -> None:
        self.state, self.untold = RUNNING, 0
        self.coordinator.reset_to_checkpoint(
            self.stored_number, self.stored_state if self.stored_number else None
        )
        self._let_come(1)

    def crash(self) -> None:
        self.failures += 1
        self._start_again()

    def reconfigure(self) -> None:
        self.options += 1
        self.told.clear()
        self._start_again()

    def _start_again(self) -> None:
        self.must_fail = False
        self.coordinator.close()
        for made in self.changes:
            assert made.done(), "no client waits for a coordinator that is closed"
            assert isinstance(made.exception(), SettingNotDurable | None), "the error says why"
        self.tasks.clear()
        self._start()
        self.restore()

    def close(self) -> None:
        """Nothing is under way."""

    acts: ClassVar[Mapping[str, Act]] = {
        "client.ask": Act(
            ask, lambda world: len(world.changes) < world.system.E, "no change is left"
        ),
        "job.begin": Act(
            begin,
            lambda world: (
                world.state == RUNNING and (world.is_needed() or world.idle < world.system.K)
            ),
            "no checkpoint is needed, or one is taken",
            # The model leaves out that a send which finds no room fails the job.
            is_apart=lambda world: world.must_fail,
        ),
        "job.abort": Act(
            abort, lambda world: world.state == TAKING and world.may_fail(), "nothing is taken"
        ),
        "job.store": Act(store, lambda world: world.state == TAKING, "nothing is taken"),
        "job.tell": Act(
            tell,
            lambda world: world.state != DOWN and world.untold > 0,
            "no completed checkpoint is to be told",
        ),
        "job.fail": Act(
            fail, lambda world: world.state != DOWN and world.may_fail(), "the job is down"
        ),
        "job.restore": Act(restore, lambda world: world.state == DOWN, "the job runs"),
        "job.crash": Act(crash, lambda world: world.may_fail(), "no failure is left"),
        "job.reconfigure": Act(
            reconfigure, lambda world: world.options < world.system.R, "no options are left"
        ),
    }
