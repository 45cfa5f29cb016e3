"""The driver that is attacked: an ingestion that follows its source, until it is asked to stop.

    python -m tests.spark.adversary.driver_program FOLDER WIRE

Has a soft limit of 1024 descriptors. Writes into FOLDER: the key and all else that a task knows,
what the job tells its listeners, and ten times a second how its attempts are.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from epochgate.runtime import JobListener
from epochgate.spark.exposure import Wire
from epochgate.spark.handle import JobHandle
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.plan import plan_ingest
from epochgate.spark.job import run_job
from epochgate.spark.session import local_session
from epochgate.spark.transport import SparkTransport
from tests.nemesis.updates import Record

DESCRIPTORS = 1024
PARALLELISM = 2
CHECKPOINT_EVERY_S = 0.4
LOOK_S = 0.1
SECRETS, HISTORY, STATUS, STOP = "secrets.json", "history.jsonl", "status.json", "stop"
ADVERSARY = "adversary"
"""The host of which the attacker says that it is on it."""
SOURCE, TABLE = "source", "table"


class Telling(JobListener):
    """Writes down each event of the job."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def on_event(self, event: Any) -> None:
        told = {k: v for k, v in event.to_json().items() if k in ("state", "reason", "subtask")}
        self._record(type(event).__name__, **told)


def main(folder: Path, wire: Wire) -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
    transports: list[Any] = []
    heard: list[int] = []

    def kept(transport: Any) -> Any:
        received = transport.received

        def noted(connection: Any, messages: list[Any]) -> None:
            if connection.hello["host"] == ADVERSARY:
                heard.append(len(messages))
            received(connection, messages)

        transport.received = noted
        transports.append(transport)
        return transport

    plan = plan_ingest(
        IngestOptions(
            source=str(folder / SOURCE),
            target=str(folder / TABLE),
            parallelism=PARALLELISM,
            checkpoint_every_s=CHECKPOINT_EVERY_S,
            follow=True,
            settle_s=0.0,
            restart="fixed:1000000,100ms",
        )
    )
    with (
        local_session(f"local[{PARALLELISM}]") as spark,
        run_job(
            spark,
            plan.configuration,
            plan.program_factory,
            store=plan.store,
            committer=plan.job_committer,
            wire=wire,
            listeners=[Telling(Record(folder / HISTORY))],
            in_front=kept,
        ) as job,
    ):
        _tell_secrets(folder, transports[0])
        while not (job.is_over or (folder / STOP).exists()):
            _tell_status(folder, job, transports[0], heard)
            time.sleep(LOOK_S)
        if not job.is_over:
            job.stop()
        result = job.wait(60)
    return 0 if result.state == "finished" else 1


def _tell_secrets(folder: Path, transport: SparkTransport) -> None:
    settings = transport._settings
    certificate = settings["certificate"]
    told = {
        "pid": os.getpid(),
        "address": transport.address,
        "key": settings["key"].hex(),
        "run_id": settings["run_id"],
        "certificate": None if certificate is None else certificate.hex(),
    }
    _write(folder / SECRETS, told)


def _tell_status(folder: Path, job: JobHandle, transport: SparkTransport, heard: list[int]) -> None:
    asked_s = time.monotonic()
    identities = {process.pid: process.identity for process in transport.processes()}
    tasks = [
        {
            "attempt": task.attempt,
            "state": task.state,
            "pid": task.pid,
            "identity": identities.get(task.pid or 0, 0),
        }
        for task in job.status().tasks
    ]
    told = {"t": asked_s, "tasks": tasks, "heard": sum(heard)}
    _write(folder / STATUS, {**told, "zombies": job.report.zombies_refused})


def _write(path: Path, told: dict[str, Any]) -> None:
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(told))
    temporary.rename(path)


if __name__ == "__main__":
    asked: Any = sys.argv[2]
    sys.exit(main(Path(sys.argv[1]), asked))
