"""Each cell of the table of Delta's features in docs/tables.md: written so that a reader which goes
by the protocol alone finds each row, or refused at the start by name.

The tables are made by hand as engines make them: their first entry is written here.
"""

from __future__ import annotations

import itertools
import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.runtime import OperatorContext, SinkStart
from epochgate.spark.delta_sink import DeltaSink, TableUnusable
from epochgate.spark.delta_sink.features import TAKEN
from epochgate.spark.streaming.targets.delta import DeltaBatches
from epochgate.spark.streaming.targets.target import Staged
from epochgate.spark.tables.merge import Merge
from epochgate.spark.values.errors import ValueDoesNotFit, ValueMissing
from tests.spark.tables.delta_replay import entries, rows

deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
READERS = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
LONG = {"name": "x", "type": "long", "nullable": True, "metadata": {}}
NUMBERS = itertools.count(1)

WRITTEN: dict[str, dict[str, str]] = {
    "appendOnly": {"delta.appendOnly": "true"},
    "changeDataFeed": {"delta.enableChangeDataFeed": "true"},
    "checkConstraints": {},
    "columnMapping": {"delta.columnMapping.mode": "none"},
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "generatedColumns": {},
    "invariants": {},
    "timestampNtz": {},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
}
"""What a table has, with its properties; those without are there and not used."""
REFUSED = {
    "allowColumnDefaults": "drop the defaults",
    "clustering": "CLUSTER BY NONE",
    "domainMetadata": "drop the feature",
    "identityColumns": "Write to a table without it",
    "icebergCompatV2": "Write to a table without it",
    "inCommitTimestamp": "delta.enableInCommitTimestamps",
    "rowTracking": "delta.enableRowTracking",
    "typeWidening": "rewrites files",
    "vacuumProtocolCheck": "drop the feature",
}
USED: list[tuple[str, dict[str, str], dict[str, Any], str]] = [
    ("checkConstraints", {"delta.constraints.pos": "x > 0"}, {}, r"a constraint, .*pos.* DROP"),
    ("invariants", {}, {"delta.invariants": "{}"}, "a rule for a column, delta.invariants"),
    ("generatedColumns", {}, {"delta.generationExpression": "1"}, r"generated column.*--transform"),
    (
        "columnMapping",
        {"delta.columnMapping.mode": "name"},
        {},
        r"other names in its files.*'none'",
    ),
]


def made(
    place: Path,
    features: list[str] | int,
    configuration: dict[str, str] | None = None,
    fields: list[dict[str, Any]] | None = None,
) -> Path:
    """A table as an engine makes it, with a list of features or for a version of writers."""
    (place / "_delta_log").mkdir(parents=True)
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": features}
    if isinstance(features, list):
        readers = [one for one in features if one in READERS]
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
        protocol |= {"readerFeatures": readers, "writerFeatures": features}
    metadata = {
        "id": "0f3a",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields or [LONG]}),
        "partitionColumns": [],
        "configuration": configuration or {},
        "createdTime": 0,
    }
    append(place, 0, {"protocol": protocol}, {"metaData": metadata})
    return place


def append(place: Path, version: int, *actions: dict[str, Any]) -> None:
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (place / "_delta_log" / f"{version:020d}.json").write_text(text)


def staged(sink: DeltaSink, place: Path, batch: pa.RecordBatch) -> dict[int, list[Any]]:
    """Return what a task hands over."""
    run = f"r{next(NUMBERS)}"
    writer = sink.create_writer(OperatorContext("sink", 0, 1, 1, run, lambda event: None), None)
    log = sink.log(str(place))
    assert log.read()
    writer.handle_event(["schema", log.schema().serialize().to_pybytes(), str(place)])
    writer.write(batch)
    return {0: writer.prepare_commit(1)}


def written(place: Path, *values: int) -> int:
    """Commit these rows, each in a checkpoint; returns what the sink says is visible."""
    sink = DeltaSink(str(place))
    committer = sink.create_committer(SinkStart("job", "r1"))
    for number, value in enumerate(values, 1):
        batch = pa.RecordBatch.from_pydict({"x": pa.array([value], pa.int64())})
        assert committer.commit(number, staged(sink, place, batch))
    committer.close()
    return committer.target.rows()


def test_these_features_are_all_that_a_table_may_have() -> None:
    assert set(WRITTEN) == TAKEN
    page = (Path(__file__).parents[3] / "docs/tables.md").read_text(encoding="utf-8")
    missing = [one for one in (*WRITTEN, *REFUSED) if f"`{one}`" not in page]
    assert missing == []


@pytest.mark.parametrize("feature", WRITTEN)
def test_rows_are_written_into_a_table_that_has(feature: str, tmp_path: Path) -> None:
    place = made(tmp_path / "table", [feature], WRITTEN[feature])
    assert written(place, 1, 2) == 2
    assert rows(place) == [1, 2]
    assert not [a for actions in entries(place)[1:] for a in actions if "protocol" in a]


@pytest.mark.parametrize("version", range(2, 6))
def test_rows_are_written_into_a_table_of_an_older_version(version: int, tmp_path: Path) -> None:
    """Such a table may use any feature up to this version, by which it is not told."""
    place = made(tmp_path / "table", version)
    assert written(place, 1) == 1
    assert rows(place) == [1]
    _, configuration, metadata, told = USED[0]
    other = made(tmp_path / "other", version, configuration, [{**LONG, "metadata": metadata}])
    with pytest.raises(TableUnusable, match=told):
        written(other, 1)
    with pytest.raises(TableUnusable, match="demands writer version 6"):
        written(made(tmp_path / "newer", 6), 1)


@pytest.mark.parametrize("feature", REFUSED)
def test_a_table_is_refused_that_demands(feature: str, tmp_path: Path) -> None:
    place = made(tmp_path / "table", [feature])
    with pytest.raises(TableUnusable, match=f"demands {feature}.*{REFUSED[feature]}"):
        written(place, 1)
    assert [one.name for one in place.iterdir()] == ["_delta_log"]


@pytest.mark.parametrize(("feature", "configuration", "metadata", "told"), USED)
def test_a_table_is_refused_that_uses(
    feature: str, configuration: dict[str, str], metadata: dict[str, Any], told: str, tmp_path: Path
) -> None:
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c"}
    metadata = mapped if feature == "columnMapping" else metadata
    place = made(tmp_path / "table", [feature], configuration, [{**LONG, "metadata": metadata}])
    with pytest.raises(TableUnusable, match=told):
        written(place, 1)
    assert [one.name for one in place.iterdir()] == ["_delta_log"]


def test_a_change_feed_has_what_was_appended_and_what_was_overwritten(tmp_path: Path) -> None:
    place = made(tmp_path / "table", ["changeDataFeed"], WRITTEN["changeDataFeed"])
    written(place, 1)
    overwritten(place, [2, 3])
    feed = pa.table(deltalake.DeltaTable(place).load_cdf(starting_version=0)).to_pylist()
    told = sorted((one["_commit_version"], one["_change_type"], one["x"]) for one in feed)
    assert told == [(2, "insert", 1), (3, "delete", 1), (3, "insert", 2), (3, "insert", 3)]
    assert rows(place) == [2, 3]


def overwritten(place: Path, values: list[int]) -> None:
    target = DeltaBatches(str(place))
    made = staged(target.sink, place, pa.RecordBatch.from_pydict({"x": values}))
    target.write(Staged("query", 0, "r-0", made), replaces=True)


def test_a_table_that_is_append_only_is_not_overwritten(tmp_path: Path) -> None:
    place = made(tmp_path / "table", ["appendOnly"], WRITTEN["appendOnly"])
    written(place, 1)
    with pytest.raises(TableUnusable, match=r"append-only .delta.appendOnly.*Append to it"):
        overwritten(place, [2])
    assert rows(place) == [1]


def test_rows_that_a_deletion_vector_takes_out_stay_out(tmp_path: Path) -> None:
    place = made(tmp_path / "table", ["deletionVectors"], WRITTEN["deletionVectors"])
    pq.write_table(pa.table({"x": list(range(30))}), place / "a.parquet")
    add = {
        "path": "a.parquet",
        "partitionValues": {},
        "size": (place / "a.parquet").stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps({"numRecords": 30}),
        "deletionVector": vector([3, 4, 29]),
    }
    append(place, 1, {"add": add})
    assert written(place, 100) == 28
    assert entries(place)[1] == [{"add": add}], "and nothing else says anything of the file"
    assert not [a for actions in entries(place)[2:] for a in actions if "remove" in a]
    overwritten(place, [5])
    removed = [a["remove"] for actions in entries(place) for a in actions if "remove" in a]
    of_both = {one["path"]: one.get("deletionVector") for one in removed}
    assert of_both["a.parquet"] == add["deletionVector"]
    assert rows(place) == [5]


@pytest.mark.parametrize("feature", ["deletionVectors", "changeDataFeed"])
def test_a_merge_heeds_deletion_vectors_and_writes_the_change_feed(
    feature: str, tmp_path: Path
) -> None:
    place = made(tmp_path / "table", [feature], WRITTEN[feature])
    pq.write_table(pa.table({"x": list(range(30))}), place / "a.parquet")
    add = {
        "path": "a.parquet",
        "partitionValues": {},
        "size": (place / "a.parquet").stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps({"numRecords": 30}),
    }
    has_vector = feature == "deletionVectors"
    append(place, 1, {"add": add | ({"deletionVector": vector([3, 29])} if has_vector else {})})
    sink = DeltaSink(str(place), merge=Merge(("x",), delete="op = 'D'"))
    committer = sink.create_committer(SinkStart("job", "r1"))
    changes = pa.RecordBatch.from_pydict({"x": [3, 5, 77], "op": ["U", "D", "U"]})
    assert committer.commit(1, staged(sink, place, changes))
    committer.close()
    expected = [*range(30), 77]
    expected.remove(5)
    if has_vector:
        expected.remove(29)
    assert rows(place) == expected
    assert committer.rows_visible == len(expected)
    feed = list(place.glob("_change_data/*.parquet"))
    assert len(feed) == (not has_vector)
    for file in feed:
        found = sorted((one["x"], one["_change_type"]) for one in pq.read_table(file).to_pylist())
        assert found == [
            (3, "update_postimage"),
            (3, "update_preimage"),
            (5, "delete"),
            (77, "insert"),
        ]


def vector(deleted: list[int]) -> dict[str, Any]:
    """A deletion vector in the log itself, as the protocol has it: a bitmap in Z85."""
    body = struct.pack("<iqi", 1681511377, 1, 0)
    body += struct.pack("<IIHHI", 12346, 1, 0, len(deleted) - 1, 16)
    body += struct.pack(f"<{len(deleted)}H", *deleted)
    padded = body + b"\0" * (-len(body) % 4)
    letters = (
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
    text = ""
    for (word,) in struct.iter_unpack(">I", padded):
        text += "".join(letters[word // 85**power % 85] for power in range(4, -1, -1))
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": len(body),
        "cardinality": len(deleted),
    }


def test_a_required_column_takes_values_and_nothing_else(tmp_path: Path) -> None:
    inner = {"name": "a", "type": "long", "nullable": False, "metadata": {}}
    within = {"name": "s", "type": {"type": "struct", "fields": [inner]}, "nullable": True}
    fields = [{**LONG, "nullable": False}, {**within, "metadata": {}}]
    place = made(tmp_path / "table", 2, {}, fields)
    sink = DeltaSink(str(place))
    schema = pa.schema([("x", pa.int64()), ("s", pa.struct([("a", pa.int64())]))])

    def batch(*values: dict[str, Any]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(list(values), schema)

    committer = sink.create_committer(SinkStart("job", "r1"))
    good = batch({"x": 1, "s": {"a": 1}}, {"x": 2, "s": None})
    assert committer.commit(1, staged(sink, place, good))
    with pytest.raises(ValueMissing, match="'x' of the table is declared not null"):
        staged(sink, place, batch({"x": 3, "s": None}, {"x": None, "s": None}))
    with pytest.raises(ValueDoesNotFit, match="'s' cannot be written"):
        staged(sink, place, batch({"x": 3, "s": {"a": None}}))
    assert rows(place) == [1, 2]
    committer.close()
