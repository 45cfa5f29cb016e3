"""A target that is set back while its driver is down: it lacks its newest commits from then on.

The ingestion refuses to start. What its refusal names as the way to give these rows up is done to
the letter, until it starts. What was taken out of the table is kept, for the judge: these rows are
lost, and no others.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import time
from pathlib import Path

from tests.nemesis.history import Line, Reader
from tests.nemesis.host import wait_until
from tests.nemesis.jobs_program import INGEST, TABLE
from tests.nemesis.lab import DRIVER, ROOT, Lab

SET_BACK_BY = 5
COMMITS_S = 60.0
STARTS_S, STARTS_MAX = 120.0, 4
WAY_ON = re.compile(r"`epochgate (commits give-up [^`]+)`")


class NotTaken(AssertionError):
    """The ingestion does not start as its refusals promise."""


def set_back(table: Path, manifests: Path, kept: Path, commits: int) -> list[str]:
    """Take the newest commits out of a table, with what its working directory says of them, as an
    older copy of both lacks them; the names of their directories, which lie in `kept` afterwards.
    """
    names = sorted(path.name for path in table.glob("checkpoint=*"))[-commits:]
    kept.mkdir()
    for name in names:
        shutil.copytree(table / name, kept / name)
        shutil.rmtree(table / name)
    gone = {int(name.partition("=")[2]) for name in names}
    for path in manifests.glob("checkpoint-*.json"):
        if int(path.stem.partition("-")[2]) in gone:
            path.unlink()
    return names


def start_until_taken(lab: Lab) -> list[str]:
    """Start drivers, and give up what each refusal names, until the ingestion commits; what was
    given up. Raises NotTaken.
    """
    table, reader = lab.on_disk(TABLE), Reader(lab.folder / "history", lab.on_disk("pages"))
    given_up: list[str] = []
    for _ in range(STARTS_MAX):
        before, began = _listed(table), time.monotonic()
        lab.start_driver()
        answer = _answer(lab, reader, began)
        if answer["event"] == "job:Committed":
            return given_up
        if answer["event"] == "refused" and _listed(table) != before:
            raise NotTaken(f"a refusal has changed the table: {before} became {_listed(table)}")
        way = WAY_ON.search(str(answer["reason"]))
        if way is None:
            raise NotTaken(f"no way to go on is named: {answer['reason']}")
        lab.kill_driver()
        command = [sys.executable, "-m", "epochgate", *shlex.split(way[1])]
        lab.driver.run("env", f"PYTHONPATH={ROOT}", *command)
        given_up.append(way[1])
    raise NotTaken(f"the ingestion is still refused, after {given_up}")


def _answer(lab: Lab, reader: Reader, began: float) -> Line:
    """The refusal or the end of the ingestion, or its first commit."""
    found: list[Line] = []

    def has_answered() -> bool:
        history = reader.read()
        told = history.of("refused", "ended", "job:Committed", job=INGEST)
        found.extend(line for line in told if line["t"] > began)
        return bool(found)

    wait_until(has_answered, STARTS_S, "the ingestion's start", lab.told)
    return found[0]


def _listed(table: Path) -> list[str]:
    return sorted(str(path.relative_to(table)) for path in table.rglob("*"))


def set_target_back(lab: Lab) -> None:
    """Kill the driver, set the ingestion's table back, and see that it starts as it is told to."""
    table = lab.on_disk(TABLE)
    manifests = table.with_name(f".{TABLE}.epochgate") / "manifests"
    wait_until(
        lambda: len(list(table.glob("checkpoint=*"))) > SET_BACK_BY,
        COMMITS_S,
        "commits to take out",
        lab.told,
    )
    lab.kill_driver()
    wait_until(lambda: not lab.driver.processes(DRIVER), COMMITS_S, "the driver's end")
    kept = lab.folder / "set-back" / str(time.monotonic_ns())
    lab.record("set_back", checkpoints=set_back(table, manifests, kept, SET_BACK_BY))
    given_up = start_until_taken(lab)
    if not any("--after" in one for one in given_up):
        raise NotTaken(f"the table was not noticed to be set back; given up was {given_up}")
    lab.record("given_up", what=given_up)
