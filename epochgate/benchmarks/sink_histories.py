"""Earlier commits of a job, for the benchmark of sinks: written by the thousand in a second or two,
as what they leave behind in the place, since committing them one by one takes minutes.

Decides for each kind of sink what that is.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from epochgate.benchmarks.silent import JOB_ID
from epochgate.benchmarks.sink_places import (
    DELTA,
    ICEBERG,
    OBJECTS,
    PARQUET,
    POSTGRES,
    TABLE,
    FilesPlace,
    ObjectsPlace,
    PostgresPlace,
    iceberg_catalog,
)
from epochgate.runtime.api.sink import SinkStart
from epochgate.runtime.filesystem import AnyPath, LocalFileSystem
from epochgate.runtime.objects.log import FOLDER, STATE_EVERY
from epochgate.spark.files.checkpoint_directory import checkpoint_name
from epochgate.spark.parquet_sink.gathered import as_text
from epochgate.spark.parquet_sink.manifests import write_manifest
from epochgate.spark.parquet_sink.object_target import INITIAL, PRODUCT, REMEMBERED

RUN_ID = "history"
APART_S = 60
"""Seconds between two commits. What a sink lets expire after a day has expired."""
DAY_S = 24 * 3600
CHECKPOINT_EVERY = 100
"""Entries between two checkpoints of Delta's log, as the library writes them."""


class UnforcedFiles(LocalFileSystem):
    """Writes files without forcing them to the disk."""

    def write_bytes_durably(self, path: AnyPath, data: bytes) -> None:
        """Write them at once."""
        Path(os.fspath(path)).write_bytes(data)


def _parquet(place: FilesPlace, folder: Path, commits: int) -> None:
    place.sink.create_committer(SinkStart(JOB_ID, RUN_ID)).close()
    files, working = UnforcedFiles(), str(folder / ".target.epochgate")
    for checkpoint in range(1, commits + 1):
        one = place.committable(RUN_ID, checkpoint)
        visible = folder / "target" / checkpoint_name(checkpoint)
        visible.mkdir()
        place.link(visible / one.visible_path)
        write_manifest(files, working, checkpoint, RUN_ID, as_text([one]))


def _objects(place: ObjectsPlace, folder: Path, commits: int) -> None:
    made = [place.committable(RUN_ID, n, in_place=True) for n in range(1, commits + 1)]
    place.objects.put(made[-1].path, place.content)  # of which the schema is read
    files = {one.path: [one.sequence, one.rows, one.size_bytes, one.schema_id, ""] for one in made}
    newest = made[-REMEMBERED:]
    owner = {"writer": RUN_ID, "run": RUN_ID, "job": JOB_ID, "product": PRODUCT}
    state = {
        **INITIAL,
        **owner,
        "files": files,
        "commits": {str(one.sequence): [RUN_ID, 0] for one in newest},
        "last": commits,
    }
    number = commits + STATE_EVERY - commits % STATE_EVERY
    entry = {"kind": "claim", "number": number, "epoch": 0, **owner, "state": state}
    place.objects.create(f"{FOLDER}/{number:015d}.json", json.dumps(entry).encode())


def _made_s(checkpoint: int, commits: int) -> float:
    """Return when a commit was made, of which the last is made now."""
    return time.time() - (commits - checkpoint) * APART_S


def _date(path: Path, at_s: float) -> None:
    os.utime(path, (at_s, at_s))


def _first_commit(place: FilesPlace, folder: Path) -> None:
    committer = place.sink.create_committer(SinkStart(JOB_ID, RUN_ID))
    committer.open(RUN_ID, {})
    committer.commit(1, {0: place.stage(RUN_ID, 1, 1)})
    committer.close()


def _delta(place: FilesPlace, folder: Path, commits: int) -> None:
    from deltalake import DeltaTable

    _first_commit(place, folder)
    log, first = folder / TABLE / "_delta_log", DeltaTable(folder / TABLE).version()
    for entry in log.iterdir():
        _date(entry, _made_s(1, commits))
    for checkpoint in range(2, commits + 1):
        one, at_ms = place.committable(RUN_ID, checkpoint), int(_made_s(checkpoint, commits) * 1000)
        added = {
            "path": one.file_name,
            "partitionValues": {},
            "size": one.size_bytes,
            "modificationTime": at_ms,
            "dataChange": True,
            "stats": json.dumps({"numRecords": one.rows}),
        }
        actions: list[dict[str, Any]] = [
            {"commitInfo": {"timestamp": at_ms, "operation": "WRITE"}},
            {"txn": {"appId": JOB_ID, "version": checkpoint, "lastUpdated": at_ms}},
            {"add": added},
        ]
        path = log / f"{first + checkpoint - 1:020d}.json"
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
        _date(path, at_ms / 1000)
    newest = first + commits - 1
    expired = newest - (DAY_S // APART_S + CHECKPOINT_EVERY)
    for version in (expired, newest):
        if version > 0:
            DeltaTable(folder / TABLE, version=version).create_checkpoint()
            made_s = _made_s(version - first + 1, commits)
            _date(log / f"{version:020d}.checkpoint.parquet", made_s)
    DeltaTable(folder / TABLE).cleanup_metadata()


def _iceberg(place: FilesPlace, folder: Path, commits: int) -> None:
    from pyiceberg.catalog import load_catalog

    from epochgate.spark.iceberg_sink import IcebergTable

    _first_commit(place, folder)
    catalog = load_catalog("bench", **iceberg_catalog(folder))
    path = Path(catalog.load_table(f"bench.{TABLE}").metadata_location.removeprefix("file://"))
    catalog.close()
    metadata = json.loads(path.read_bytes())
    newest = metadata["snapshots"][-1]
    made = [
        {
            "snapshot-id": newest["snapshot-id"] - commits + checkpoint,
            "timestamp-ms": int(_made_s(checkpoint, commits) * 1000),
        }
        for checkpoint in range(1, commits)
    ]
    metadata["snapshots"] = [*({**newest, **one} for one in made), newest]
    metadata["snapshot-log"] = [*made, metadata["snapshot-log"][-1]]
    path.write_text(json.dumps(metadata))
    table = IcebergTable("bench", f"bench.{TABLE}", iceberg_catalog(folder))
    table.load()
    table.expire(commits)
    table.close()


def _postgres(place: PostgresPlace, folder: Path, commits: int) -> None:
    import psycopg

    place.sink.create_committer(SinkStart(JOB_ID, RUN_ID)).close()
    with psycopg.connect(place.dsn) as connection:
        connection.execute(
            f"do $$ begin for i in 1..{commits} loop"
            f" update epochgate_ledger set checkpoint = i where target = '{place.table}';"
            f" insert into \"{place.table}\" values (i, 'one'); end loop; end $$".encode()
        )


HISTORIES: dict[str, Callable[[Any, Path, int], None]] = {
    PARQUET: _parquet,
    OBJECTS: _objects,
    DELTA: _delta,
    ICEBERG: _iceberg,
    POSTGRES: _postgres,
}
"""The kind of a place -> writes that number of commits into it, of checkpoints 1, 2, 3 ..."""
