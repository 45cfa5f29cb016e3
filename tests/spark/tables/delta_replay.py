"""A reader of Delta tables that is none of the library's: it replays the log, entry by entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq


def entries(table: Path) -> list[list[dict[str, Any]]]:
    """The actions of each version, from the first on."""
    found = sorted((table / "_delta_log").glob("*.json"))
    assert [int(file.stem) for file in found] == list(range(len(found)))
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in found]


def active_files(table: Path) -> list[Path]:
    """The files that the newest version refers to."""
    active: dict[str, None] = {}
    for actions in entries(table):
        for action in actions:
            if "remove" in action:
                del active[action["remove"]["path"]]
            if "add" in action:
                assert action["add"]["path"] not in active, "a file is in the table twice"
                active[action["add"]["path"]] = None
    return [table / unquote(path) for path in active]


def rows(table: Path, column: str = "x") -> list[Any]:
    """All values of a column, sorted; none without a table."""
    files = active_files(table)
    return sorted(value for f in files for value in pq.read_table(f)[column].to_pylist())


def numbers(table: Path, application: str) -> list[int]:
    """Return what the log says of an application, from its first commit on."""
    said = [action["txn"] for actions in entries(table) for action in actions if "txn" in action]
    return [txn["version"] for txn in said if txn["appId"] == application]
