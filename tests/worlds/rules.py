"""A user's coordinator with its operator, as the tests of worlds need them: right, and with the
bugs that users write.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    Operator,
    OperatorContext,
    OperatorCoordinator,
    SubtaskGateway,
)


class Rules(OperatorCoordinator):
    """Has a rule, which all tasks are to apply, and its version."""

    def __init__(self, context: CoordinatorContext) -> None:
        self.context = context
        self.gateways: dict[int, SubtaskGateway] = {}
        self.rule: list[Any] = [1, "a"]

    def start(self) -> None:
        pass

    def change(self, text: str) -> None:
        self.rule = [self.rule[0] + 1, text]
        for gateway in self.gateways.values():
            gateway.send_event(self.rule)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self.gateways[subtask] = gateway
        gateway.send_event(self.rule)

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self.gateways.pop(subtask, None)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(json.dumps(self.rule).encode())

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.gateways.clear()
        self.rule = [1, "a"] if state is None else json.loads(state)


class ForgetfulRules(Rules):
    """Does not tell a task that came back which rule is in force."""

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        self.gateways[subtask] = gateway


class StrictRules(Rules):
    """Takes for granted that a task that fails was ready."""

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        del self.gateways[subtask]


class RulesProvider(CoordinatorProvider):
    operator_id = "rules"

    def __init__(self, make: Callable[[CoordinatorContext], Rules] = Rules) -> None:
        self.make = make

    def create(self, context: CoordinatorContext) -> Rules:
        return self.make(context)


class Applying(Operator):
    """Applies the rule that it was told last."""

    rule: list[Any]

    def open(self, context: OperatorContext, state: bytes | None) -> None:
        super().open(context, state)
        self.rule = [1, "a"] if state is None else json.loads(state)

    def handle_event(self, event: Any) -> None:
        self.rule = event

    def snapshot(self, checkpoint_id: int) -> bytes:
        return json.dumps(self.rule).encode()
