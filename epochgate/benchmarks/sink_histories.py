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
from epochgate.spark.parquet_sink.manifests import write_manifest
from epochgate.spark.parquet_sink.object_target import INITIAL, PRODUCT, REMEMBERED

RUN_ID = "history"


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
        write_manifest(files, working, checkpoint, RUN_ID, [one])


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


def _first_commit(place: FilesPlace, folder: Path) -> None:
    committer = place.sink.create_committer(SinkStart(JOB_ID, RUN_ID))
    committer.open(RUN_ID, {})
    committer.commit(1, {0: place.stage(RUN_ID, 1, 1)})
    committer.close()


def _delta(place: FilesPlace, folder: Path, commits: int) -> None:
    from deltalake import DeltaTable

    _first_commit(place, folder)
    table = DeltaTable(folder / TABLE)
    version, now_ms = table.version(), int(time.time() * 1000)
    for checkpoint in range(2, commits + 1):
        one = place.committable(RUN_ID, checkpoint)
        added = {
            "path": one.file_name,
            "partitionValues": {},
            "size": one.size_bytes,
            "modificationTime": now_ms,
            "dataChange": True,
            "stats": json.dumps({"numRecords": one.rows}),
        }
        actions: list[dict[str, Any]] = [
            {"commitInfo": {"timestamp": now_ms, "operation": "WRITE"}},
            {"txn": {"appId": JOB_ID, "version": checkpoint, "lastUpdated": now_ms}},
            {"add": added},
        ]
        path = folder / TABLE / "_delta_log" / f"{version + checkpoint - 1:020d}.json"
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    DeltaTable(folder / TABLE).create_checkpoint()


def _iceberg(place: FilesPlace, folder: Path, commits: int) -> None:
    from pyiceberg.catalog import load_catalog

    _first_commit(place, folder)
    catalog = load_catalog("bench", **iceberg_catalog(folder))
    path = Path(catalog.load_table(f"bench.{TABLE}").metadata_location.removeprefix("file://"))
    catalog.close()
    metadata = json.loads(path.read_bytes())
    newest = metadata["snapshots"][-1]
    ids = range(newest["snapshot-id"] - commits + 1, newest["snapshot-id"])
    older = [{**newest, "snapshot-id": one} for one in ids]
    log = [{"snapshot-id": one, "timestamp-ms": newest["timestamp-ms"]} for one in ids]
    metadata["snapshots"] = [*older, *metadata["snapshots"]]
    metadata["snapshot-log"] = [*log, *metadata["snapshot-log"]]
    path.write_text(json.dumps(metadata))


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
