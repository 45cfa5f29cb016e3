"""Files that are gone, bad or changed stop a query; each way that its error names lets it go on,
and what is left out is listed.
"""

from __future__ import annotations

import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from epochgate.spark.streaming import OptionsWrong, bad_files
from epochgate.spark.streaming.left_out import StateOutOfReach
from epochgate.spark.streaming.source_options import parse_source
from tests.spark.streaming.test_source import ids, land

OPTION = re.compile(r'\.option\("(onBadFile|onChangedFile)", "(\w+)"\)')
SPOILT = "001.parquet"
SCHEMA = StructType([StructField("id", LongType()), StructField("name", StringType())])


def gone(path: Path) -> None:
    shutil.move(path, path.parent.parent / "kept")


def brought_back(path: Path) -> None:
    shutil.move(path.parent.parent / "kept", path)


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def replaced(path: Path) -> None:
    other = path.parent.parent / "other"
    other.mkdir()
    land(other, 5, 6)
    shutil.copy(other / "landing" / "005.parquet", path)


def left(path: Path) -> None:
    """The user does nothing to the file."""


Change = Callable[[Path], None]
CASES: list[tuple[Change, bool, Change, tuple[str, str] | None, list[int]]] = [
    (gone, True, left, ("onBadFile", "skip"), []),
    (gone, True, brought_back, None, ids(1, 2)),
    (torn, False, left, ("onBadFile", "skip"), []),
    (replaced, True, left, ("onChangedFile", "skip"), []),
    (replaced, True, left, ("onChangedFile", "new"), ids(5, 6)),
]


class Query:
    """The questions of Spark to the source, in this process, at each start; `logged`: the offset of
    the batch that is planned, and may not be committed.
    """

    def __init__(self, folder: Path) -> None:
        pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no such sources")
        self._given = {
            "source": str(folder / "landing"),
            "state": str(folder / "state"),
            "settle": "0",
        }
        self.committed: Any = None
        self.logged: Any = None

    def reader(self, **options: str) -> Any:
        from epochgate.spark.streaming.source import HAS_LIMITS, StreamReader

        if not HAS_LIMITS:
            pytest.skip("Spark before 4.2 does not tell a source in Python where it goes on")
        return StreamReader(parse_source({**self._given, **options}), SCHEMA)

    def plan(self, reader: Any) -> bool:
        """Plan the next batch, unless one is planned, as Spark logs its offsets; whether there is
        one.
        """
        if self.committed is None:
            self.committed = self.logged = reader.initialOffset()
        if self.logged == self.committed:
            self.logged = reader.latestOffset(self.committed, reader.getDefaultReadLimit())
        return bool(self.logged != self.committed)

    def run(self, **options: str) -> list[int]:
        """All batches to the end of what is there; their rows."""
        reader, rows = self.reader(**options), list[int]()
        try:
            while self.plan(reader):
                for partition in reader.partitions(self.committed, self.logged):
                    for batch in pickle.loads(pickle.dumps(reader)).read(partition):
                        rows += batch["id"].to_pylist()
                self.committed = self.logged
        finally:
            reader.stop()
        return rows


@pytest.mark.parametrize(("spoil", "is_planned", "mend", "option", "own"), CASES)
def test_each_way_that_an_error_names_leads_on(
    tmp_path: Path,
    spoil: Change,
    is_planned: bool,
    mend: Change,
    option: tuple[str, str] | None,
    own: list[int],
) -> None:
    query = Query(tmp_path)
    land(tmp_path, 0, 2)
    path = tmp_path / "landing" / SPOILT
    if is_planned:
        reader = query.reader()
        query.plan(reader)
        reader.stop()
    spoil(path)
    with pytest.raises(Exception, match=SPOILT) as raised:
        query.run()
    said = str(raised.value)
    assert "in Python" not in said
    options = {}
    if option is None:
        assert "Bring it back as it was, and start again" in said
    else:
        assert option in OPTION.findall(said), said
        options = dict([option])
    mend(path)
    land(tmp_path, 2, 3)
    rows = query.run(**options)
    assert query.run(**options) == []
    assert sorted(rows) == sorted([*ids(0, 1), *own, *ids(2, 3)])
    found = bad_files(str(tmp_path / "state"))
    assert {Path(one.path).name for one in found} == (set() if option is None else {SPOILT})
    assert all(one.reason for one in found)


def test_a_task_that_cannot_record_what_it_leaves_out_fails(tmp_path: Path) -> None:
    query = Query(tmp_path)
    land(tmp_path, 0, 1)
    reader = query.reader(onBadFile="skip")
    query.plan(reader)
    partitions = reader.partitions(query.committed, query.logged)
    reader.stop()
    gone(tmp_path / "landing" / "000.parquet")
    shutil.move(tmp_path / "state", tmp_path / "elsewhere")
    with pytest.raises(StateOutOfReach, match="mounted wherever tasks run"):
        list(reader.read(partitions[0]))


def test_the_options_have_the_values_that_an_ingestion_has() -> None:
    given = {"source": "landing", "state": "state"}
    assert parse_source(given).on_bad_file == "fail"
    skipping = parse_source({**given, "onBadFile": "skip"})
    assert (skipping.on_bad_file, skipping.on_changed_file) == ("skip", "skip")
    assert parse_source({**given, "onChangedFile": "new"}).on_changed_file == "new"
    for name, value in (("onBadFile", "new"), ("onChangedFile", "maybe")):
        with pytest.raises(OptionsWrong, match=f"{name}='{value}' is none of fail, skip"):
            parse_source({**given, name: value})
    with pytest.raises(OptionsWrong, match="onBadFile is one of files"):
        parse_source({**given, "source": "shop.pages:Pages", "onBadFile": "skip"})
