"""Files whose rows the target has are deleted or moved, and no other ones, whatever fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import pytest
from obstore.store import MemoryStore

from epochgate.runtime.objects.client import ObstoreObjects
from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.taken import TakenFile
from epochgate.spark.ingest.found_files import files_at
from epochgate.spark.ingest.options import IngestMisconfigured, IngestOptions
from epochgate.spark.ingest.plan import plan_ingest
from epochgate.spark.ingest.removal_options import ArchiveInSource, removal_of
from epochgate.spark.ingest.removing import Removal
from tests.spark.ingest.simulated import (
    SimulatedIngest,
    options_for,
    random_kills,
    visible,
    write_source,
)
from tests.spark.ingest.test_simulated import When


def record_of(path: Path) -> TakenFile:
    status = path.stat()
    stamp = Stamp(status.st_size, status.st_mtime_ns)
    return TakenFile(str(path), 1, stamp, 1, 0, False, 0, 1, 1.0)


def test_a_file_is_deleted_once(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    record, removal = record_of(path), Removal(str(tmp_path), None)
    assert removal.remove(record)
    assert not path.exists()
    assert not removal.remove(record), "it is gone already"


@pytest.mark.parametrize("to", [None, "archive"])
def test_a_file_that_was_replaced_stays(tmp_path: Path, to: str | None) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n")
    record = record_of(path)
    path.write_text("x\n2\n")
    os.utime(path, ns=(1, record.stamp.modified_ns + 1))
    removal = Removal(str(tmp_path), None if to is None else str(tmp_path / to))
    assert not removal.remove(record)
    assert path.read_text() == "x\n2\n"


def test_a_file_is_moved_with_its_name_below_the_source(tmp_path: Path) -> None:
    path = tmp_path / "in" / "dt=2026-11-29" / "a.csv"
    path.parent.mkdir(parents=True)
    path.write_text("x\n1\n")
    record = record_of(path)
    removal = Removal(str(tmp_path / "in"), str(tmp_path / "archive"))
    assert removal.remove(record)
    moved = tmp_path / "archive" / "dt=2026-11-29" / "a.csv"
    assert moved.read_text() == "x\n1\n"
    assert moved.stat().st_mtime_ns == record.stamp.modified_ns
    assert not path.exists()


def test_another_file_in_the_archive_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "in" / "a.csv"
    path.parent.mkdir()
    path.write_text("x\n1\n")
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "a.csv").write_text("x\n1\n2\n")
    with pytest.raises(OSError, match="another file of that name"):
        Removal(str(tmp_path / "in"), str(tmp_path / "archive")).remove(record_of(path))
    assert path.exists()


@pytest.mark.parametrize("to", [None, "s3://bucket/archive"])
def test_an_object_is_removed_as_it_was(to: str | None) -> None:
    store = MemoryStore()
    objects = ObstoreObjects("s3://bucket", store)
    objects.put("in/dt=1/a.csv", b"x\n1\n")
    status = objects.status("in/dt=1/a.csv")
    stamp = Stamp(status.size_bytes, status.modified_ns, status.etag)
    record = TakenFile("s3://bucket/in/dt=1/a.csv", 1, stamp, 1, 0, False, 0, 1, 1.0)
    removal = Removal("s3://bucket/in", to, lambda _: objects)
    objects.put("in/dt=1/a.csv", b"x\n2\n")
    assert not removal.remove(record), "it was replaced"
    assert objects.get("in/dt=1/a.csv") == b"x\n2\n"
    status = objects.status("in/dt=1/a.csv")
    stamp = Stamp(status.size_bytes, status.modified_ns, status.etag)
    again = record._replace(stamp=stamp)
    assert removal.remove(again)
    assert not removal.remove(again), "it is gone"
    left = [] if to is None else ["archive/dt=1/a.csv"]
    assert sorted(one.key for one in objects.find("")) == left


def run(tmp_path: Path, *faults: Fault, **changes: object) -> SimulatedIngest:
    simulated = SimulatedIngest(options_for(tmp_path, **changes), faults)
    simulated.run()
    assert simulated.leave().state == "finished"
    return simulated


def test_files_go_when_the_job_ends_and_the_next_run_takes_new_ones(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    run(tmp_path, committed_files="delete")
    assert os.listdir(tmp_path / "in") == []
    assert visible(tmp_path / "out") == rows
    new = write_source(tmp_path, files=1, first=100)
    again = SimulatedIngest(options_for(tmp_path, committed_files="delete"), name="again")
    again.run()
    assert again.leave().state == "finished"
    assert os.listdir(tmp_path / "in") == []
    assert visible(tmp_path / "out") == [*rows, *new]
    assert {one.state for one in files_at(str(tmp_path / "out"))} == {"committed"}


def test_files_that_an_earlier_run_has_left_go_in_the_next(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    run(tmp_path)
    assert len(os.listdir(tmp_path / "in")) == 3
    again = SimulatedIngest(
        options_for(tmp_path, committed_files=f"move:{tmp_path}/archive"), name="again"
    )
    again.run()
    assert again.leave().state == "finished"
    assert os.listdir(tmp_path / "in") == []
    assert len(os.listdir(tmp_path / "archive")) == 3
    assert visible(tmp_path / "out") == rows


def watched(simulated: SimulatedIngest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Look at each file before it is removed: its rows must be visible."""
    remove, removed = Removal.remove, list[str]()
    target = Path(simulated.options.target)

    def look(self: Removal, record: TakenFile) -> bool:
        if os.path.exists(record.path):
            lines = Path(record.path).read_text().splitlines()[1:]
            wanted = {int(line.partition(",")[0]) for line in lines}
            assert wanted <= set(visible(target)), record
            removed.append(record.path)
        return remove(self, record)

    monkeypatch.setattr(Removal, "remove", look)
    return removed


@pytest.mark.parametrize("when", get_args(When))
def test_no_file_goes_before_its_rows_are_visible_wherever_the_driver_crashes(
    tmp_path: Path, when: When, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_source(tmp_path / "whole", files=2, rows=4)
    operations = run(tmp_path / "whole", committed_files="delete").files.operations
    for at in range(1, len(operations), 5):
        place = tmp_path / f"at-{at}"
        rows = write_source(place, files=2, rows=4)
        options = options_for(place, committed_files=f"move:{place}/archive")
        simulated = SimulatedIngest(options, [Fault(at, when=when)])
        with monkeypatch.context() as patched:
            removed = watched(simulated, patched)
            simulated.run()
            assert simulated.leave().state == "finished"
        assert visible(place / "out") == rows
        assert len(removed) == 2
        assert os.listdir(place / "in") == []
        assert len(os.listdir(place / "archive")) == 2


@pytest.mark.parametrize("seed", range(5))
def test_no_file_goes_before_its_rows_are_visible_whatever_dies(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = write_source(tmp_path)
    simulated = SimulatedIngest(options_for(tmp_path, committed_files="delete"))
    removed = watched(simulated, monkeypatch)
    simulated.run(random_kills(simulated, seed, share=0.05))
    assert simulated.leave().state == "finished"
    assert visible(tmp_path / "out") == rows
    assert (len(removed), os.listdir(tmp_path / "in")) == (3, [])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may remove everything")
def test_a_directory_that_may_not_be_changed_does_not_end_the_job(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    (tmp_path / "in").chmod(0o500)
    try:
        run(tmp_path, committed_files="delete")
    finally:
        (tmp_path / "in").chmod(0o700)
    assert visible(tmp_path / "out") == rows
    assert len(os.listdir(tmp_path / "in")) == 3


def test_a_failure_does_not_end_the_job_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = write_source(tmp_path)
    remove, refused = Removal.remove, list[str]()

    def refuse(self: Removal, record: TakenFile) -> bool:
        refused.append(record.path)
        if len(refused) <= 4:
            raise PermissionError(13, "Permission denied", record.path)
        return remove(self, record)

    monkeypatch.setattr(Removal, "remove", refuse)
    simulated = SimulatedIngest(options_for(tmp_path, committed_files="delete"))
    simulated.run()
    result = simulated.leave()
    assert result.state == "finished"
    assert visible(tmp_path / "out") == rows
    assert os.listdir(tmp_path / "in") == []
    assert any("cannot remove" in warning for warning in result.report.warnings)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"committed_files": "archive"}, "give delete, or move:DIR"),
        ({"committed_files": "move:"}, "give delete, or move:DIR"),
        ({"committed_files": "delete", "on_changed_file": "new"}, "leave out one of them"),
        ({"committed_files_age_s": 5.0}, "give --after-commit"),
        ({"committed_files": "delete", "committed_files_age_s": -1.0}, "0 or more"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, changes: dict[str, object], says: str
) -> None:
    with pytest.raises(IngestMisconfigured, match=says):
        options_for(tmp_path, **changes)


def options(source: str, to: str) -> IngestOptions:
    return IngestOptions(source, "/t/out", committed_files=f"move:{to}")


@pytest.mark.parametrize(
    ("source", "to"),
    [
        ("/t/in", "/t/in/done"),
        ("/t/in", "/t/in"),
        ("/t/in/**/*.csv", "/t/in/done"),
        ("/t/in/*.csv", "/t/in"),
        ("s3://b/in", "s3://b/in/done"),
    ],
)
def test_an_archive_that_is_read_again_is_refused(source: str, to: str) -> None:
    with pytest.raises(ArchiveInSource):
        removal_of(options(source, to))


@pytest.mark.parametrize(
    ("source", "to", "says"),
    [
        ("/t/in", "s3://b/done", "not both directories"),
        ("s3://b/in", "s3://c/done", "within their bucket"),
        ("/t/in", "/t/out/done", "which this job writes"),
        ("hdfs://host/in", "/t/done", "read only"),
    ],
)
def test_an_archive_elsewhere_is_refused(source: str, to: str, says: str) -> None:
    with pytest.raises(IngestMisconfigured, match=says):
        removal_of(options(source, to))


@pytest.mark.parametrize(
    ("source", "to"),
    [
        ("/t/in", "/t/done"),
        ("/t/in", "/t/in/_done"),
        ("/t/in/*.csv", "/t/in/done"),
        ("s3://b/in", "s3://b/done"),
    ],
)
def test_an_archive_beside_the_files_is_taken(source: str, to: str) -> None:
    assert removal_of(options(source, to)) is not None


def test_nothing_is_claimed_for_an_archive_that_is_refused(tmp_path: Path) -> None:
    write_source(tmp_path)
    asked = options_for(tmp_path, committed_files=f"move:{tmp_path}/in/done")
    with pytest.raises(ArchiveInSource):
        plan_ingest(asked)
    assert not (tmp_path / "out").exists()
