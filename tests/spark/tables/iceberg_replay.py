"""A reader of Iceberg tables that is none of the library's: it asks the catalog's database where
the metadata is, and reads manifests by a few lines of Avro.
"""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

MAGIC = b"Obj\x01"
PLACES = {"file://": ""}
"""Where the copies of what lies at such a location are."""
DELETED = 2


def catalog(place: Path) -> dict[str, str]:
    """The properties of a catalog in this directory."""
    return {
        "type": "sql",
        "uri": f"sqlite:///{place}/catalog.db",
        "warehouse": f"file://{place}/warehouse",
    }


def metadata(place: Path, table: str = "sales.events") -> dict[str, Any] | None:
    """Return what the catalog points to; none without a table."""
    if not (place / "catalog.db").exists():
        return None
    namespace, _, name = table.rpartition(".")
    query = "select metadata_location from iceberg_tables where table_namespace=? and table_name=?"
    with contextlib.closing(sqlite3.connect(place / "catalog.db")) as database:
        try:
            row = database.execute(query, (namespace, name)).fetchone()
        except sqlite3.OperationalError:  # the catalog has no tables yet
            return None
    found: dict[str, Any] | None = None if row is None else json.loads(_path(row[0]).read_text())
    return found


def snapshots(place: Path) -> list[dict[str, Any]]:
    """The history of main, the oldest first, as far as it is kept."""
    return history_in(metadata(place) or {})


def history_in(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The same, of a table with this metadata."""
    by_id = {one["snapshot-id"]: one for one in found.get("snapshots", ())}
    history, at = [], found.get("current-snapshot-id")
    while at in by_id:
        history.append(by_id[at])
        at = by_id[at].get("parent-snapshot-id")
    return history[::-1]


def active_files(place: Path) -> list[Path]:
    """The files of the newest snapshot."""
    return files_of(snapshots(place))


def files_of(history: list[dict[str, Any]]) -> list[Path]:
    """The files of the last snapshot."""
    active: list[Path] = []
    for snapshot in history[-1:]:
        for manifest in avro(_path(snapshot["manifest-list"])):
            entries = avro(_path(manifest["manifest_path"]))
            active += [
                _path(entry["data_file"]["file_path"])
                for entry in entries
                if entry["status"] != DELETED
            ]
    assert len(active) == len(set(active)), "a file is in the table twice"
    return active


def rows(place: Path, column: str = "x") -> list[Any]:
    """All values of a column, sorted; none without a table."""
    return sorted(
        v for file in active_files(place) for v in pq.read_table(file)[column].to_pylist()
    )


def numbers(place: Path, key: str) -> list[int]:
    """Return what the snapshots of main say under this key, the oldest first."""
    said = [one["summary"].get(key) for one in snapshots(place)]
    return [int(number) for number in said if number is not None]


def avro(path: Path) -> list[dict[str, Any]]:
    """The records of an Avro file."""
    data = io.BytesIO(path.read_bytes())
    assert data.read(4) == MAGIC
    header = _value(data, {"type": "map", "values": "bytes"})
    schema, codec = json.loads(header["avro.schema"]), header.get("avro.codec", b"null")
    sync, records = data.read(16), []
    while data.tell() < len(data.getbuffer()):
        count, size = _long(data), _long(data)
        block = data.read(size)
        block = zlib.decompress(block, -15) if codec == b"deflate" else block
        content = io.BytesIO(block)
        records += [_value(content, schema) for _ in range(count)]
        assert data.read(16) == sync
    return records


def _value(data: io.BytesIO, schema: Any) -> Any:
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, list):
        return _value(data, kind[_long(data)])
    if isinstance(kind, dict):
        return _value(data, kind)
    if kind == "record":
        return {field["name"]: _value(data, field["type"]) for field in schema["fields"]}
    if kind in ("array", "map"):
        return _collection(data, schema, is_map=kind == "map")
    return _plain(data, kind, schema)


def _plain(data: io.BytesIO, kind: str, schema: Any) -> Any:
    if kind in ("int", "long"):
        return _long(data)
    if kind == "string":
        return data.read(_long(data)).decode()
    if kind == "bytes":
        return data.read(_long(data))
    if kind == "boolean":
        return data.read(1) == b"\x01"
    if kind == "fixed":
        return data.read(schema["size"])
    assert kind == "null", kind
    return None


def _collection(data: io.BytesIO, schema: Any, *, is_map: bool) -> Any:
    found: list[Any] = []
    while (count := _long(data)) != 0:
        if count < 0:
            _long(data)
        for _ in range(abs(count)):
            key = data.read(_long(data)).decode() if is_map else None
            value = _value(data, schema["values" if is_map else "items"])
            found.append((key, value) if is_map else value)
    return dict(found) if is_map else found


def _long(data: io.BytesIO) -> int:
    shift = number = 0
    while True:
        byte = data.read(1)[0]
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (number >> 1) ^ -(number & 1)


def _path(location: str) -> Path:
    for prefix, place in PLACES.items():
        if location.startswith(prefix):
            return Path(place + location.removeprefix(prefix))
    return Path(location)
