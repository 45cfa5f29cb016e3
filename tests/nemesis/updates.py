"""The lab's job of control events: numbered updates to all tasks, each of which notes what it heard
at which of its rows.

The coordinator sends update 1, 2, 3, ... to each subtask, and after a reset again what came after
the checkpoint. An update has the mark of the life in which it was sent first, so that a task which
keeps one of a life that was taken back gives itself away. Nothing is refused here: driver and tasks
write down what they are told, and `tests.nemesis.judge` reads it afterwards. Sent by value.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from epochgate import runtime

OPERATOR = "updates"
PACE_S = 0.05
ROW_S = 0.01


class Record:
    """Lines of JSON, each there at once: the process that writes them may be killed at any time."""

    def __init__(self, path: Path, **who: Any) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._who = who

    def __call__(self, event: str, **what: Any) -> None:
        line = json.dumps({"t": time.monotonic(), "event": event, **self._who, **what})
        os.write(self._descriptor, f"{line}\n".encode())

    def close(self) -> None:
        os.close(self._descriptor)


class Updates(runtime.OperatorCoordinator):
    """On the driver: sends updates at its pace, also while checkpoints are taken."""

    def __init__(self, context: runtime.CoordinatorContext, record: Record) -> None:
        self.context, self.record = context, record
        self.gateways: dict[int, runtime.SubtaskGateway] = {}
        self._begin(0, 0)

    def _begin(self, checkpoint_id: int, number: int) -> None:
        self.number, self.mark = number, secrets.token_hex(4)
        self.number_at = {checkpoint_id: number}
        self.updates: dict[int, list[Any]] = {}
        self.position = dict.fromkeys(range(self.context.parallelism), number)

    def start(self) -> None:
        self.context.post_later(PACE_S, self.update)

    def update(self) -> None:
        self.number += 1
        self.updates[self.number] = [self.number, self.mark]
        self.record("sent", number=self.number)
        for subtask in self.gateways:
            self.catch_up(subtask)
        self.context.post_later(PACE_S, self.update)

    def catch_up(self, subtask: int) -> None:
        for number in range(self.position[subtask] + 1, self.number + 1):
            self.gateways[subtask].send_event(self.updates[number])
        self.position[subtask] = self.number

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: Any) -> None:
        self.gateways[subtask] = gateway
        self.catch_up(subtask)

    def execution_attempt_failed(self, subtask: int, attempt: int, reason: str) -> None:
        self.gateways.pop(subtask, None)

    def subtask_reset(self, subtask: int, checkpoint_id: int) -> None:
        self.record("subtask_reset", subtask=subtask, checkpoint=checkpoint_id)
        self.position[subtask] = self.number_at[checkpoint_id]

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        self.number_at[checkpoint_id] = self.number
        self.record("triggered", checkpoint=checkpoint_id, number=self.number)
        result.set_result(json.dumps([checkpoint_id, self.number]).encode())

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        held, number = (0, 0) if state is None else json.loads(state)
        self.record("restored", checkpoint=checkpoint_id, held=held, number=number)
        self.gateways.clear()
        self._begin(checkpoint_id, number)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.record("completed", checkpoint=checkpoint_id)
        self.number_at = {c: n for c, n in self.number_at.items() if c >= checkpoint_id}
        oldest = self.number_at[checkpoint_id]
        self.updates = {n: update for n, update in self.updates.items() if n > oldest}

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.record("aborted", checkpoint=checkpoint_id)


class UpdatesProvider(runtime.CoordinatorProvider):
    operator_id = OPERATOR

    def __init__(self, record: Record) -> None:
        self._record = record

    def create(self, context: runtime.CoordinatorContext) -> Updates:
        return Updates(context, self._record)


class Hearing(runtime.Program, runtime.Operator):
    """In each task: counts rows, and notes each update with the row at which it came."""

    row: int
    last: int

    def __init__(self, folder: str) -> None:
        self._folder = folder

    @property
    def operators(self) -> dict[str, runtime.Operator]:
        return {OPERATOR: self}

    def open(self, context: runtime.OperatorContext, state: bytes | None) -> None:
        held: int
        held, self.row, self.last = (0, 0, 0) if state is None else json.loads(state)
        self.first_row, self.heard = self.row + 1, list[list[Any]]()
        self.offered: dict[int, tuple[int, int]] = {}
        who = {"run": context.run_id, "subtask": context.subtask, "attempt": context.attempt}
        name = f"task-{context.run_id}-{context.subtask}-{context.attempt}-{os.getpid()}.jsonl"
        self.record = Record(Path(self._folder, name), **who, host=socket.gethostname())
        self.record("restored", checkpoint=held, row=self.row, number=self.last)

    def handle_event(self, event: Any) -> None:
        self.last = event[0]
        self.heard.append([*event, self.row])
        self.record("heard", number=self.last)

    def work(self) -> runtime.Work:
        time.sleep(ROW_S)  # stands for the work on one row
        self.row += 1
        return runtime.Work.DONE

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        self.offered[checkpoint_id] = len(self.heard), self.row
        return [{"rows": [self.first_row, self.row], "heard": self.heard}]

    def snapshot(self, checkpoint_id: int) -> bytes:
        return json.dumps([checkpoint_id, self.row, self.last]).encode()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.record("completed", checkpoint=checkpoint_id)
        heard, row = self.offered[checkpoint_id]
        self.heard, self.first_row = self.heard[heard:], row + 1
        self.offered = {
            later: (count - heard, to)
            for later, (count, to) in self.offered.items()
            if later > checkpoint_id
        }

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.record("aborted", checkpoint=checkpoint_id)

    def close(self) -> None:
        self.record.close()


class Pages(runtime.Committer):
    """On the driver: one file for each checkpoint, there at once by a rename."""

    def __init__(self, folder: Path, record: Record) -> None:
        self._folder, self._record = folder, record

    def commit(self, checkpoint_id: int, committables: runtime.Committables) -> bool:
        page = json.dumps({str(subtask): held for subtask, held in committables.items()})
        path = self._folder / f"{checkpoint_id:09}.json"
        try:
            return self._is_new(path, page, checkpoint_id)
        except OSError as error:
            raise runtime.RetryLater(str(error)) from error

    def _is_new(self, path: Path, page: str, checkpoint_id: int) -> bool:
        if path.exists():
            if json.loads(path.read_text()) != json.loads(page):
                self._record("conflict", checkpoint=checkpoint_id)
            return False
        temporary = path.with_suffix(".new")
        with temporary.open("w") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        return True
