"""A value that the driver changes while the job runs; all tasks change over between the same two
checkpoints.

The coordinator sends the value to each subtask that becomes ready, and to all of them when it
changes. Coordinator and tasks keep it in their states, so that all states of a checkpoint have the
same value: events that are sent between two snapshots of the coordinator arrive between the same
two snapshots of every task (rules G1 to G5 in docs/protocol.md).

Leaves to the machine `changes` when a client is told that its change has been made, and what is
applied again after a restore, and with which value a start begins (rules U1 to U3, and U5).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar, Protocol

import msgpack

from epochgate.errors import EpochgateError, UsageError
from epochgate.fsm import Handles
from epochgate.models.setting_change import SettingChanges
from epochgate.runtime.api.coordinator import (
    CoordinatorContext,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.api.operator import Operator, OperatorContext
from epochgate.runtime.api.plain_values import kind_of, mismatch
from epochgate.runtime.pipeline.coordinated_operator import CoordinatedOperator
from epochgate.runtime.shell.futures import reject, resolve
from epochgate.runtime.shell.send_window import GatewayFull

GET, SET = "get", "set"


class SettingRefused(UsageError):
    """The value or the name is not valid for the setting."""


class SettingNotDurable(EpochgateError):
    """The job ended, or its coordinator was made again, before a completed checkpoint held the
    change of the setting.
    """


class _Job(Protocol):
    def request(self, operator_id: str, request: Any) -> Future[Any]: ...


class Setting(CoordinatedOperator):
    """A named value for the map of a pipeline, which gets it as the argument with this name.

    value: a plain value for the first start; a later start restores the value of its checkpoint.
    operator_id: the id of its state in checkpoints, by default the name. After renaming a setting,
    give the old name here to restore its value.
    """

    is_of_options: ClassVar[bool] = False
    """Whether a start with another value than the one before has that value."""

    def __init__(self, name: str, value: Any, *, operator_id: str | None = None) -> None:
        """Raises SettingRefused if the name is no identifier, or the value is no plain value."""
        if not name.isidentifier():
            raise SettingRefused(
                f"{name!r} is no identifier, so it cannot name an argument of the map"
            )
        self.name, self.initial = name, value
        self._operator_id = name if operator_id is None else operator_id
        self.check(value)

    @property
    def operator_id(self) -> str:
        """The id of its state in checkpoints."""
        return self._operator_id

    def check(self, value: Any) -> None:
        """Raise SettingRefused if the value is no plain value, or of another type than the initial
        one; an initial None takes any type.
        """
        try:
            msgpack.packb(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise SettingRefused(
                f"{self.name}={value!r} is no plain value and cannot be sent to the tasks: {error}"
            ) from None
        if (problem := mismatch(self.name, self.initial, value)) is not None:
            raise SettingRefused(
                f"the setting has {problem}: the map would fail with it at every attempt. Give "
                f"{kind_of(self.initial)}; or change the type of Setting({self.name!r}, "
                f"{self.initial!r}), which a None leaves open"
            )

    def set(self, job: _Job, value: Any) -> Future[Any]:
        """Change the value in a running job, and return a future that completes with the value when
        a completed checkpoint holds it. No failure after that undoes the change.

        The value is in force before that, and failovers keep it. A job without periodic checkpoints
        completes the future with the next checkpoint on request, or with its last one. The future
        fails with SettingNotDurable if the job ends before that, and with the errors of
        `JobHandle.request`. If the driver dies, the future stays open, and the next start has the
        value of its checkpoint.

        Raises SettingRefused.
        """
        self.check(value)
        return job.request(self.operator_id, [SET, value])

    def get(self, job: _Job) -> Future[Any]:
        """Return a future of the driver's current value, in a running job."""
        return job.request(self.operator_id, [GET])

    def create(self, context: CoordinatorContext) -> SettingCoordinator:
        """Create the coordinator."""
        return SettingCoordinator(self, context.fail_job)

    def create_operator(self) -> SettingOperator:
        """Create the operator of one attempt."""
        return SettingOperator(self.initial)

    def redistribute(self, states: Mapping[int, bytes], parallelism: int) -> Mapping[int, bytes]:
        """Give every new subtask the value of the checkpoint, which is the same in all states."""
        return dict.fromkeys(range(parallelism), next(iter(states.values())))


class RateLimit(Setting):
    """Limits the records a second that the job takes from its source; None: no limit.

    Each subtask has an equal share. A subtask that waits for its share uses no processor time.
    """

    def __init__(
        self,
        records_per_s: float | None,
        *,
        name: str = "rate_limit",
        operator_id: str | None = None,
    ) -> None:
        """Raises SettingRefused unless the rate is a number above 0, or None."""
        super().__init__(name, records_per_s, operator_id=operator_id)

    def check(self, value: Any) -> None:
        """Raise SettingRefused unless the rate is a number above 0, or None."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and math.isfinite(value) and value > 0):
            raise SettingRefused(
                f"{self.name}={value!r} is no rate; give records a second, a number above 0, or "
                "None for no limit"
            )


class _Change:
    """A change that a client waits for."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.made: Future[Any] = Future()


class SettingCoordinator(OperatorCoordinator):
    """Holds the value on the driver, and the changes that no completed checkpoint holds."""

    def __init__(self, setting: Setting, fail_job: Callable[[BaseException], None]) -> None:
        self._setting, self.value, self._kept = setting, setting.initial, setting.initial
        self._fail_job = fail_job
        self._gateways: dict[int, SubtaskGateway] = {}
        self._numbers = itertools.count(1)
        self._pending: dict[int, _Change] = {}
        self._system = Handles(SettingChanges)
        self._system.bind("changes", "setting", self)
        self._changes = self._system.changes

    def start(self) -> None:
        """Do nothing: the value is sent when a subtask becomes ready."""

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Send the current value; the attempt's checkpoint may have an older one."""
        self._gateways[subtask] = gateway
        gateway.send_event(self.value)

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """Send nothing more to this attempt."""
        self._gateways.pop(subtask, None)

    def handle_client_request(self, request: Any) -> Any:
        """Return the value; or set it, send it to all subtasks, and return a future that completes
        when a completed checkpoint holds it.
        """
        if request[0] == GET:
            return self.value
        self._setting.check(request[1])
        number, change = next(self._numbers), _Change(request[1])
        self._pending[number] = change
        self._changes.set(number)
        self._system.settle()
        return change.made

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Complete at once; events sent from now on belong to the next checkpoint."""
        self._changes.snapshot(checkpoint_id)
        state = [self.value, self._setting.initial] if self._setting.is_of_options else self.value
        result.set_result(msgpack.packb(state))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Acknowledge the changes that the checkpoint holds."""
        self._changes.completed(checkpoint_id)
        self._system.settle()

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Restore the value of the checkpoint or of the options, and apply the changes that the
        checkpoint lacks.
        """
        self._gateways.clear()
        configured = self._setting.initial
        if state is not None:
            self._kept = msgpack.unpackb(state)
            if self._setting.is_of_options:
                self._kept, configured = self._kept
        self._changes.resume(state is not None, configured == self._setting.initial)
        self._changes.restored(checkpoint_id)
        self._system.settle()

    def close(self) -> None:
        """Fail the changes that no completed checkpoint holds."""
        name = self._setting.name
        for change in self._pending.values():
            error = SettingNotDurable(
                f"{name}={change.value!r} is in no completed checkpoint that the coordinator knows "
                f"of, and the coordinator is closed: the job is over, or the coordinator could not "
                f"start and is made again. Ask for the value with get(job), after the next start "
                f"if the job is over; if it is not {change.value!r}, call set again"
            )
            reject(change.made, error)

    # port `setting` of the machine

    def apply(self, change: int) -> None:
        """Put the value of a change into force, and send it to the subtasks that are ready. If one
        of them cannot be sent it, all go back: the states of a checkpoint have the same value.
        """
        self.value = self._pending[change].value
        try:
            for gateway in self._gateways.values():
                gateway.send_event(self.value)
        except GatewayFull as error:
            self._fail_job(error)

    def keep(self) -> None:
        """Put the value of the checkpoint into force."""
        self.value = self._kept

    def configure(self) -> None:
        """Put the value that the job was started with into force."""
        self.value = self._setting.initial

    def acknowledge(self, change: int) -> None:
        """Tell its client that a completed checkpoint holds it."""
        made = self._pending.pop(change)
        resolve(made.made, made.value)


class SettingOperator(Operator):
    """Holds the value in a task."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Restore the value of the checkpoint."""
        super().open(context, state)
        if state is not None:
            self.value = msgpack.unpackb(state)

    def handle_event(self, event: Any) -> None:
        """Take the driver's new value."""
        self.value = event

    def snapshot(self, checkpoint_id: int) -> bytes:
        """Return the value."""
        return bytes(msgpack.packb(self.value))
