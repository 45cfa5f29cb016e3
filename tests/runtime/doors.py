"""The doors of the runtime to user code, and what may come through them: one table for simulated
jobs and for jobs on real Spark.

A door is a place of a `Script`: `op` is the coordinator, `operator` the operator, `committer` the
committer, `strategy` the restart strategy. `tests/runtime/test_doors.py` and
`tests/spark/test_doors_on_spark.py` go through all of them, and `test_door_table.py` finds a method
of the public classes that is in no row.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Final

from epochgate.runtime import Committer, CoordinatorProvider, Operator, OperatorCoordinator, Program
from epochgate.runtime.api.restart_strategies import RestartStrategy


class OwnBase(BaseException):
    """As a library may derive one for its own control flow."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Unpicklable(Exception):
    """As one that holds a connection."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.held = threading.Lock()


RAISED: Final[tuple[type[BaseException], ...]] = (
    ValueError,
    StopIteration,
    SystemExit,
    KeyboardInterrupt,
    asyncio.CancelledError,
    GeneratorExit,
    OwnBase,
    Unprintable,
    Unpicklable,
)

COORDINATOR: Final = (
    "op.start",
    "op.checkpoint",
    "op.execution_attempt_ready",
    "op.handle_event_from_operator",
    "op.notify_checkpoint_complete",
    "op.reset_to_checkpoint",
    "op.execution_attempt_failed",
    "op.subtask_reset",
)
"""Doors in the driver, which a job goes through that speaks, stores and restarts."""
OPERATOR: Final = (
    "operator.open",
    "operator.handle_event",
    "operator.snapshot",
    "operator.prepare_commit",
    "operator.notify_checkpoint_complete",
)
"""Doors in a task."""
COMMITTER: Final = ("committer.check", "committer.commit")
RESTARTING: Final = ("op.reset_to_checkpoint", "op.execution_attempt_failed", "op.subtask_reset")
"""Those that a job comes to when something else fails first."""
STRATEGY: Final = ("strategy.next_delay_s", "strategy.notify_healthy")
ON_SPARK: Final = ("program.factory", "program.operators", "program.work", "program.metrics")
"""Doors around the operator that processes of Spark have; simulated ones make no figures."""
CALLBACKS: Final = ("sent", "posted", "timer", "async", "coroutine", "requested", "gauge")
"""What a coordinator hands to its context, gateways and futures."""
CLOSING: Final = ("op.close", "operator.close", "committer.close", "store.close")
"""Doors of a job that is over already, or of an attempt: an error is told, and ends nothing."""

ELSEWHERE: Final = {
    "CoordinatorProvider.create": "tests/runtime/test_restart.py",
    "CoordinatorProvider.files_of": "tests/runtime/test_unstorable.py",
    "CoordinatorProvider.operator_id": "asked before a job starts, and raised to its caller",
    "CoordinatorProvider.redistribute": "tests/runtime/source/test_rescaling.py",
    "CoordinatorProvider.state_version": "tests/runtime/test_restart.py",
    "CoordinatorProvider.upgrade_state": "tests/runtime/test_restart.py",
    "OperatorCoordinator.handle_client_request": "tests/runtime/test_client_requests.py",
    "OperatorCoordinator.notify_checkpoint_aborted": "guarded as notify_checkpoint_complete",
    "OperatorCoordinator.supports_batch_snapshot": "tests/runtime/test_doors.py",
    "Operator.metrics": "asked with those of the program: program.metrics",
    "Operator.notify_checkpoint_aborted": "guarded as notify_checkpoint_complete",
    "Operator.state_version": "asked with the snapshot, and before open",
    "Operator.upgrade_state": "called in the step of open",
    "Committer.metrics": "tests/runtime/test_commits.py",
    "Committer.open": "called before a job starts, and raised to its caller",
}
"""Methods of the public classes that have no row here -> what looks at them, or why none does."""

CLASSES: Final = {
    OperatorCoordinator: "op",
    Operator: "operator",
    Committer: "committer",
    Program: "program",
    RestartStrategy: "strategy",
    CoordinatorProvider: "provider",
}
"""Public class -> what stands for it in a door."""
