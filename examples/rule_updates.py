"""A rule changes while a Spark job runs, and all tasks change over at the same checkpoint.

Tasks process payments, and hold those above a limit. The limit is a rule that a coordinator on the
driver sends to all of them, and lowers while they work. What it sends between two of its
checkpoints arrives between the same two in every task, also in one that is killed meanwhile: the
tasks agree at every checkpoint on the rule in force, and each payment counts once.

    python examples/rule_updates.py
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from itertools import groupby
from typing import Any

import msgpack

from epochgate import runtime
from epochgate.runtime import InMemoryCheckpointStore
from epochgate.spark import local_session, run_job

TASKS, PAYMENTS, FIRST_RULE = 3, 500, {"version": 1, "limit": 900}


class Rules(runtime.OperatorCoordinator):
    """On the driver: sends the rule to every task, and a new one now and then."""

    def __init__(self, context: runtime.CoordinatorContext) -> None:
        self.context, self.rule = context, FIRST_RULE
        self.gateways: dict[int, runtime.SubtaskGateway] = {}

    def start(self) -> None:
        self.context.post_later(0.8, self.update)

    def update(self) -> None:
        if self.gateways:
            self.rule = {"version": self.rule["version"] + 1, "limit": self.rule["limit"] - 50}
        for gateway in self.gateways.values():
            gateway.send_event(self.rule)
        self.context.post_later(0.8, self.update)

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: Any) -> None:
        self.gateways[subtask] = gateway
        gateway.send_event(self.rule)  # it has that of the checkpoint from which it goes on

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self.gateways.pop(subtask, None)

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(msgpack.packb(self.rule))  # what is sent after this is not part of it

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.gateways, self.rule = {}, msgpack.unpackb(state) if state else FIRST_RULE


class RulesProvider(runtime.CoordinatorProvider):
    operator_id = "payments"

    def create(self, context: runtime.CoordinatorContext) -> Rules:
        return Rules(context)


class Payments(runtime.Program, runtime.Operator):
    """In each task: the program, which is its own and only operator."""

    processed, rule = 0, FIRST_RULE

    @property
    def operators(self) -> dict[str, runtime.Operator]:
        return {"payments": self}

    def open(self, context: runtime.OperatorContext, state: bytes | None) -> None:
        self.rows: list[Any] = []
        if state is not None:
            self.processed, self.rule = msgpack.unpackb(state)

    def handle_event(self, event: Any) -> None:
        self.rule = event

    def work(self) -> runtime.Work:
        if self.processed == PAYMENTS:
            return runtime.Work.ENDED
        time.sleep(0.01)  # stands for the work on one payment
        self.processed += 1
        is_held = self.processed * 37 % 1000 > self.rule["limit"]
        self.rows.append([self.processed, self.rule["version"], is_held])
        return runtime.Work.DONE

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self.handed_over = len(self.rows)
        return self.rows

    def snapshot(self, checkpoint_id: int) -> bytes:
        return bytes(msgpack.packb([self.processed, self.rule]))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        del self.rows[: self.handed_over]


class Ledger(runtime.Committer):
    """On the driver: gets what the tasks have handed over, once its checkpoint is complete."""

    def __init__(self) -> None:
        self.pages: dict[int, runtime.Committables] = {}

    def commit(self, checkpoint_id: int, committables: runtime.Committables) -> None:
        self.pages[checkpoint_id] = committables  # committing again changes nothing


def told(rows: list[Any]) -> str:
    runs = [(version, list(run)) for version, run in groupby(rows, key=lambda row: row[1])]
    return ", ".join(f"v{version}: {run[0][0]}-{run[-1][0]}" for version, run in runs)


if __name__ == "__main__":
    job = runtime.JobConfiguration("rules", TASKS, (RulesProvider(),), checkpoint_interval_s=0.5)
    ledger, store = Ledger(), InMemoryCheckpointStore(job_id="rules")
    with local_session(f"local[{TASKS}]") as spark:
        result = run_job(spark, job, lambda _: Payments(), store=store, committer=ledger).wait()
    print("checkpoint | which payments each task has processed under which version of the rule")
    for checkpoint, page in ledger.pages.items():
        print(f"{checkpoint:10}", *(f"| {told(page.get(t, [])):24}" for t in range(TASKS)))
    counted = sum(len(rows) for page in ledger.pages.values() for rows in page.values())
    print(f"{result.state}: {counted} payments, {result.report.regional_restarts} task restarts")
