"""Each kind of target is set back behind what its job has committed: what the refusal names as a
way on is followed to the letter, with its paths and commands, and the job goes on.
"""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epochgate import cli
from epochgate.errors import UsageError
from epochgate.runtime import BehindCheckpoint
from epochgate.spark.ingest.options import IngestOptions
from tests.runtime.objects.stores import Memory
from tests.spark.ingest.simulated import SimulatedIngest, options_for, visible, write_source
from tests.spark.sink.test_object_ingest import TARGET, SimulatedObjectIngest, rows_in
from tests.spark.tables import delta_replay, iceberg_replay
from tests.spark.tables.ways_on import give_up_command_in

GONE = re.compile(r"start from the beginning with a new --checkpoint-dir")
OPTIONS = re.compile(r"--from-savepoint SAVEPOINT --checkpoint-dir NEW\b")
FIRST, SECOND, THIRD = [*range(4, 8)], [*range(8, 12)], [*range(12, 16)]
"""The rows of each day's file."""


class Place:
    """A directory, which is kept and brought back with the working directory beside it."""

    names: tuple[str, ...] = ("out", ".out.epochgate")

    def __init__(self, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        self.path = tmp_path
        self._runs = itertools.count()

    @property
    def target(self) -> str:
        return str(self.path / "out")

    @property
    def checkpoints(self) -> str:
        return str(self.path / "job's checkpoints")

    @property
    def options(self) -> IngestOptions:
        return options_for(
            self.path,
            target=self.target,
            checkpoint_directory=self.checkpoints,
            parallelism=1,
        )

    def rows(self) -> list[int]:
        return visible(self.path / "out")

    def keep(self, name: str) -> None:
        for one in self.names:
            if (self.path / one).exists():
                shutil.copytree(self.path / one, self.path / name / one, symlinks=True)

    def bring(self, name: str) -> None:
        for one in self.names:
            shutil.rmtree(self.path / one, ignore_errors=True)
            if (self.path / name / one).exists():
                shutil.copytree(self.path / name / one, self.path / one, symlinks=True)

    def drop(self) -> None:
        shutil.rmtree(self.path / "out")

    def opened(self, options: IngestOptions) -> SimulatedIngest:
        return SimulatedIngest(options, name=f"run-{next(self._runs)}")


class InObjects(Place):
    """A prefix in an object store."""

    def __init__(self, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        super().__init__(tmp_path, request)
        self._memory = Memory()
        self._kept: dict[str, dict[str, bytes]] = {}

    target = TARGET

    def rows(self) -> list[int]:
        return rows_in(self._memory, self.path)

    def keep(self, name: str) -> None:
        objects = self._memory.open(TARGET)
        self._kept[name] = {key: objects.get(key) for key in objects.list("")}

    def bring(self, name: str) -> None:
        objects = self._memory.open(TARGET)
        for key in objects.list(""):
            objects.delete(key)
        for key, data in self._kept[name].items():
            objects.create(key, data)

    def drop(self) -> None:
        self._kept[""] = {}
        self.bring("")

    def opened(self, options: IngestOptions) -> SimulatedIngest:
        changes: dict[str, Any] = {
            "checkpoint_directory": options.checkpoint_directory,
            "from_savepoint": options.from_savepoint,
            "parallelism": 1,
        }
        return SimulatedObjectIngest(self.path, self._memory, **changes)


class InDelta(Place):
    """A Delta table, of which an older copy is brought back."""

    @property
    def target(self) -> str:
        pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
        return f"delta:{self.path / 'out'}"

    def rows(self) -> list[int]:
        return delta_replay.rows(self.path / "out")


class RestoredDelta(InDelta):
    """A Delta table, which `RESTORE` sets back."""

    def __init__(self, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        super().__init__(tmp_path, request)
        self._versions: dict[str, int] = {}

    def keep(self, name: str) -> None:
        import deltalake

        self._versions[name] = deltalake.DeltaTable(self.path / "out").version()

    def bring(self, name: str) -> None:
        import deltalake

        deltalake.DeltaTable(self.path / "out").restore(self._versions[name])


class InIceberg(Place):
    """An Iceberg table, whose branch is rolled back."""

    target = "iceberg:lake.sales.events"

    def __init__(self, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        super().__init__(tmp_path, request)
        pytest.importorskip("pyiceberg.catalog", reason="`iceberg` is not installed")
        patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        for name, value in iceberg_replay.catalog(tmp_path).items():
            patch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper()}", value)
        self._snapshots: dict[str, int] = {}

    def rows(self) -> list[int]:
        return iceberg_replay.rows(self.path)

    def _table(self) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog("lake", **iceberg_replay.catalog(self.path)).load_table("sales.events")

    def drop(self) -> None:
        from pyiceberg.catalog import load_catalog

        load_catalog("lake", **iceberg_replay.catalog(self.path)).drop_table("sales.events")

    def keep(self, name: str) -> None:
        self._snapshots[name] = self._table().current_snapshot().snapshot_id

    def bring(self, name: str) -> None:
        with self._table().manage_snapshots() as snapshots:
            snapshots.set_current_snapshot(snapshot_id=self._snapshots[name])


class InPostgres(Place):
    """A table of PostgreSQL, of which table and ledger are brought back."""

    def __init__(self, tmp_path: Path, request: pytest.FixtureRequest) -> None:
        super().__init__(tmp_path, request)
        self._dsn = request.getfixturevalue("dsn")
        self._sql("create table events (x bigint primary key, name text)")

    @property
    def target(self) -> str:
        return f"postgres:{self._dsn}#events"

    def _sql(self, *statements: str) -> list[Any]:
        import psycopg

        with psycopg.connect(self._dsn) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def rows(self) -> list[int]:
        return [row[0] for row in self._sql("select x from events order by x")]

    def drop(self) -> None:
        self._sql("drop table epochgate_ledger", "delete from events")

    def keep(self, name: str) -> None:
        for table in ("events", "epochgate_ledger"):
            self._sql(f"create table {name}_{table} as select * from {table}")

    def bring(self, name: str) -> None:
        for table in ("events", "epochgate_ledger"):
            self._sql(f"delete from {table}", f"insert into {table} select * from {name}_{table}")


Kind = Callable[[Path, pytest.FixtureRequest], Place]
KINDS = [Place, InObjects, InDelta, RestoredDelta, InIceberg, InPostgres]


def ingested(place: Place, options: IngestOptions) -> None:
    ingest = place.opened(options)
    ingest.run()
    result = ingest.leave()
    assert result.state == "finished", result.reason


def set_back(place: Place) -> str:
    """Two days, a start without a new file, so that no commit is open, and the first day brought
    back; what the start of the third day says.
    """
    for day, name in enumerate(("first_day", "second_day"), 1):
        write_source(place.path, 1, 4, 4 * day)
        ingested(place, place.options)
        place.keep(name)
        command = ["savepoint", place.checkpoints, "--to", str(place.path / f"saved {name}")]
        assert cli.main(command) == 0
    ingested(place, place.options)
    assert place.rows() == FIRST + SECOND
    place.bring("first_day")
    assert place.rows() == FIRST
    write_source(place.path, 1, 4, 12)
    with pytest.raises(BehindCheckpoint) as caught:
        place.opened(place.options)
    assert place.rows() == FIRST, "nothing is changed by a refusal"
    return str(caught.value)


def put_back(place: Place, said: str) -> IngestOptions:
    assert "Put back what is missing, and start again." in said
    place.bring("second_day")
    return place.options


def from_savepoint(place: Place, said: str) -> IngestOptions:
    assert OPTIONS.search(said) is not None, said
    saved, new = str(place.path / "saved first_day"), str(place.path / "new")
    return replace(place.options, from_savepoint=saved, checkpoint_directory=new)


def give_up(place: Place, said: str) -> IngestOptions:
    assert cli.main(give_up_command_in(said)) == 0
    return place.options


WAYS = [
    (put_back, FIRST + SECOND + THIRD),
    (from_savepoint, FIRST + SECOND + THIRD),
    (give_up, FIRST + THIRD),
]


@pytest.mark.parametrize(("way", "rows"), WAYS, ids=[way.__name__ for way, _ in WAYS])
@pytest.mark.parametrize("kind", KINDS)
def test_each_way_that_a_refusal_names_leads_on(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    kind: Kind,
    way: Callable[[Place, str], IngestOptions],
    rows: list[int],
) -> None:
    place = kind(tmp_path, request)
    options = way(place, set_back(place))
    for _ in range(2):
        ingested(place, options)
        assert place.rows() == rows


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_is_gone_is_begun_again_as_the_refusal_says(
    tmp_path: Path, request: pytest.FixtureRequest, kind: Kind
) -> None:
    place = kind(tmp_path, request)
    write_source(tmp_path, 1, 4, 4)
    ingested(place, place.options)
    place.drop()
    with pytest.raises(UsageError) as caught:
        place.opened(place.options)
    assert GONE.search(str(caught.value)), str(caught.value)
    options = replace(place.options, checkpoint_directory=str(tmp_path / "new"))
    write_source(tmp_path, 1, 4, 8)
    for _ in range(2):
        ingested(place, options)
        assert place.rows() == FIRST + SECOND


@pytest.mark.parametrize("kind", [Place, InDelta, InPostgres])
def test_a_commit_in_doubt_that_cannot_be_made_again_is_given_up_as_the_reason_says(
    tmp_path: Path, request: pytest.FixtureRequest, kind: Kind
) -> None:
    """The driver dies after a commit and before the next checkpoint; then the target is set back,
    and what was staged for the commit is gone.
    """
    place = kind(tmp_path, request)
    write_source(tmp_path, 1, 4, 4)
    ingested(place, place.options)
    place.keep("first_day")
    write_source(tmp_path, 1, 4, 8)
    killed = place.opened(place.options)
    killed.run(until=lambda: place.rows() == FIRST + SECOND)
    killed.files.crash()
    place.bring("first_day")
    write_source(tmp_path, 1, 4, 12)
    given_up = 0
    while given_up < 4:
        try:
            ingest = place.opened(place.options)
        except BehindCheckpoint as error:
            said = str(error)
        else:
            ingest.run()
            result = ingest.leave()
            if result.state == "finished":
                break
            said = str(result.reason)
        assert cli.main(give_up_command_in(said)) == 0
        given_up += 1
    assert given_up > 0
    assert place.rows() == FIRST + THIRD
