"""A value that the driver changes while the job runs, and every task changes over at the same
checkpoint.

The coordinator sends the value to each subtask that comes up, and to all of them when it changes.
Both keep it in their parts of a checkpoint, so that all parts of one checkpoint agree on it: what
is sent between two snapshots of the coordinator arrives between the same two of every task (rules
G1 to G5 in docs/protocol.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

import msgpack

from epochgate.errors import UsageError
from epochgate.runtime.api.coordinator import (
    CoordinatorContext,
    OperatorCoordinator,
    SubtaskGateway,
)
from epochgate.runtime.api.operator import Operator, OperatorContext
from epochgate.runtime.pipeline.coordinated import CoordinatedOperator

GET, SET = "get", "set"


class SettingRefused(UsageError):
    """A value that the setting cannot have."""


class _Job(Protocol):
    def request(self, operator_id: str, request: Any) -> Future[Any]: ...


class Setting(CoordinatedOperator):
    """A named value for the map of a pipeline: the map gets it as the argument of that name.

    `value`: at the first start, a plain value; a later start goes on with that of its checkpoint.
    `operator_id`: by which its state is known in checkpoints, the name unless it is given; a
    setting that is renamed keeps its value with the name that it had at first.
    """

    def __init__(self, name: str, value: Any, *, operator_id: str | None = None) -> None:
        """Raises SettingRefused for a name that cannot be an argument's, or a value that cannot
        travel.
        """
        if not name.isidentifier():
            raise SettingRefused(f"{name!r} cannot be the name of an argument of the map")
        self.name, self.initial = name, value
        self._operator_id = name if operator_id is None else operator_id
        self.check(value)

    @property
    def operator_id(self) -> str:
        """By which its state is known."""
        return self._operator_id

    def check(self, value: Any) -> None:
        """Raise SettingRefused for a value that this setting cannot have."""
        try:
            msgpack.packb(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise SettingRefused(
                f"{self.name}={value!r} is no plain value, and cannot travel to the tasks: {error}"
            ) from None

    def set(self, job: _Job, value: Any) -> Future[Any]:
        """Change the value in a running job; the future is done once the driver has it. Raises
        SettingRefused.
        """
        self.check(value)
        return job.request(self.operator_id, [SET, value])

    def get(self, job: _Job) -> Future[Any]:
        """The value that the driver has, of a running job."""
        return job.request(self.operator_id, [GET])

    def create(self, context: CoordinatorContext) -> SettingCoordinator:
        """Make the coordinator."""
        return SettingCoordinator(self)

    def create_operator(self) -> SettingOperator:
        """Make the operator of one attempt."""
        return SettingOperator(self.initial)

    def redistribute(self, states: Mapping[int, bytes], parallelism: int) -> Mapping[int, bytes]:
        """Every subtask has the value of the checkpoint, on which all of its parts agree."""
        return dict.fromkeys(range(parallelism), next(iter(states.values())))


class RateLimit(Setting):
    """How many records a second the job takes from its source, in equal shares for its subtasks;
    none: as many as it can. A subtask that waits for its share uses no processor time.
    """

    def __init__(
        self,
        records_per_s: float | None,
        *,
        name: str = "rate_limit",
        operator_id: str | None = None,
    ) -> None:
        """Raises SettingRefused unless it is a number above 0, or none."""
        super().__init__(name, records_per_s, operator_id=operator_id)

    def check(self, value: Any) -> None:
        """Raise SettingRefused unless it is a number above 0, or none."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and math.isfinite(value) and value > 0):
            raise SettingRefused(
                f"{self.name}={value!r} is no rate; give records a second, a number above 0, or "
                "None for no limit"
            )


class SettingCoordinator(OperatorCoordinator):
    """Holds the value on the driver."""

    def __init__(self, setting: Setting) -> None:
        self._setting, self.value = setting, setting.initial
        self._gateways: dict[int, SubtaskGateway] = {}

    def start(self) -> None:
        """Nothing to do: subtasks announce themselves."""

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Tell the value of now: that of its checkpoint may be older."""
        self._gateways[subtask] = gateway
        gateway.send_event(self.value)

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        """Send it no more."""
        self._gateways.pop(subtask, None)

    def handle_client_request(self, request: Any) -> Any:
        """Return the value, or take another one and tell it to all subtasks."""
        if request[0] == SET:
            self._setting.check(request[1])
            self.value = request[1]
            for gateway in self._gateways.values():
                gateway.send_event(self.value)
        return self.value

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """What is sent from now on belongs to the next."""
        result.set_result(msgpack.packb(self.value))

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Go back to the value of then."""
        self._gateways.clear()
        self.value = self._setting.initial if state is None else msgpack.unpackb(state)


class SettingOperator(Operator):
    """Holds the value in a task."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        """Begin with the value of the checkpoint."""
        super().open(context, state)
        if state is not None:
            self.value = msgpack.unpackb(state)

    def handle_event(self, event: Any) -> None:
        """The driver has another value."""
        self.value = event

    def snapshot(self, checkpoint_id: int) -> bytes:
        """The value."""
        return bytes(msgpack.packb(self.value))
