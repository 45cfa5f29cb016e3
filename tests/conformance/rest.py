"""The shape of Flink's REST interface: names and types of what a Flink that runs answers.

python -m tests.conformance.rest     record golden/rest.json again; review the diff
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from epochgate.benchmarks.flink.cluster import FlinkJob, flink_job, scratch

GOLDEN: Final = Path(__file__).parent / "golden" / "rest.json"
PATHS: Final = (
    "overview",
    "config",
    "jobs",
    "jobs/overview",
    "jobs/ID",
    "jobs/ID/checkpoints",
    "jobs/ID/checkpoints/config",
    "jobs/ID/checkpoints/details/1",
    "jobs/ID/exceptions",
)
Shape = dict[str, str]
"""The type of each value, by the names that lead to it; a list has one shape for all items."""

KEYED: Final = {"tasks", "failureLabels", "optimizer_properties"}
"""Objects whose names are ids, or words of a user's."""
TYPES: Final = {bool: "boolean", int: "number", float: "number", str: "text", type(None): "null"}


def shape_of(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """The names and types of a value."""
    if isinstance(value, dict):
        yield at, "object"
        for name, item in value.items():
            keyed = at.rpartition(".")[2] in KEYED and isinstance(item, dict)
            yield from shape_of(item, f"{at}.{'*' if keyed else name}")
    elif isinstance(value, list):
        yield at, "list"
        for item in value:
            yield from shape_of(item, f"{at}[]")
    else:
        yield at, TYPES[type(value)]


def shapes(ask: Callable[[str], Any], job_id: str) -> dict[str, Shape]:
    """The shape of each answer; where a value is null at times, its other type counts."""
    found: dict[str, Shape] = {}
    for path in PATHS:
        shape = found.setdefault(path, {})
        for name, kind in shape_of(ask(path.replace("ID", job_id))):
            if kind != "null" or name not in shape:
                shape[name] = kind
    return found


def answers_of(job: FlinkJob) -> Callable[[str], Any]:
    """The interface of a running Flink, at the port of its job manager that speaks HTTP."""
    ports = [one.laddr.port for one in job.driver.net_connections("tcp") if one.status == "LISTEN"]

    def ask(port: int, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
            return json.load(answer)

    for port in ports:
        try:
            ask(port, "config")
        except (OSError, ValueError):  # another protocol than HTTP
            continue
        return lambda path: ask(port, path)
    raise AssertionError(f"none of the ports {ports} answers as Flink's REST interface does")


@contextmanager
def running_flink() -> Iterator[tuple[Callable[[str], Any], str]]:
    """A Flink whose job has had checkpoints and a failure, and the id of the job."""
    with scratch() as folder, flink_job(2, folder) as job:
        job.checkpoints(2)
        job.raise_ms(1)
        job.checkpoints(2)
        ask = answers_of(job)
        yield ask, ask("jobs")["jobs"][0]["id"]


def main() -> None:
    """Record the shapes of a running Flink."""
    with running_flink() as (ask, job_id):
        found = shapes(ask, job_id)
    GOLDEN.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
