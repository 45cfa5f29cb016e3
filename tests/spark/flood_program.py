"""The programs of test_back_pressure: a coordinator and operators that send as fast as they may."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    GatewayFull,
    Operator,
    OperatorCoordinator,
    Program,
    SubtaskGateway,
    Work,
)

EVENT_BYTES = 1_000_000


def peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class FloodCoordinator(OperatorCoordinator):
    """Sends until the gateway is full, and again when there is room; takes its time to listen."""

    def __init__(self, context: CoordinatorContext, *, sends: bool, listens_s: float) -> None:
        self._context, self._sends, self._listens_s = context, sends, listens_s
        self.refused = context.metrics.counter("refused")
        self.heard = context.metrics.counter("heard")

    def start(self) -> None: ...

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        if self._sends:
            self._flood(gateway)

    def _flood(self, gateway: SubtaskGateway) -> None:
        try:
            while True:
                gateway.send_event(bytes(EVENT_BYTES))
        except GatewayFull:
            self.refused.add(1)
            gateway.when_room().add_done_callback(
                lambda _: self._context.post_later(0.0, self._flood, gateway)
            )

    def handle_event_from_operator(self, subtask: int, attempt: int, event: Any) -> None:
        time.sleep(self._listens_s)
        self.heard.add(1)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None: ...


class FloodProvider(CoordinatorProvider):
    def __init__(self, *, sends: bool, listens_s: float) -> None:
        self._settings: dict[str, Any] = {"sends": sends, "listens_s": listens_s}

    @property
    def operator_id(self) -> str:
        return "flood"

    def create(self, context: CoordinatorContext) -> FloodCoordinator:
        return FloodCoordinator(context, **self._settings)


class FloodOperator(Operator):
    def __init__(self) -> None:
        self.handled = 0

    def handle_event(self, event: Any) -> None:
        self.handled += 1

    def snapshot(self, checkpoint_id: int) -> bytes:
        return b""


class FloodProgram(Program):
    """Works for `work_s`, and sends an event each time if it `sends`."""

    def __init__(self, *, sends: bool, work_s: float) -> None:
        self._operator, self._sends, self._work_s = FloodOperator(), sends, work_s
        self._at_rest_kb = peak_kb()

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"flood": self._operator}

    def work(self) -> Work:
        time.sleep(self._work_s)
        if self._sends:
            self._operator.context.send_to_coordinator(bytes(EVENT_BYTES))
        return Work.DONE

    def metrics(self) -> dict[str, Any]:
        grown_kb = peak_kb() - self._at_rest_kb
        return {"grown_kb": grown_kb, "handled": self._operator.handled}
