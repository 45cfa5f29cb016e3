"""A fault of an ingestion is said clearly, and nothing is lost by it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import epochgate.spark.ingest
from epochgate.cli import main
from epochgate.runtime.api.restart_strategies import InvalidRestartStrategy
from epochgate.runtime.store import CheckpointFormatUnknown
from epochgate.runtime.store.encoding import seal, unseal
from epochgate.runtime.testing.faulty_filesystem import Fault
from epochgate.spark.files import MixedFormats
from epochgate.spark.ingest import ingest
from epochgate.spark.ingest.options import IngestMisconfigured, IngestOptions
from epochgate.spark.ingest.plan import (
    CheckpointsMisplaced,
    TargetInSource,
    checkpoint_directory_of,
    plan_ingest,
)
from epochgate.spark.ingest.transform_function import (
    TransformBroken,
    TransformNotCallable,
    TransformNotFound,
    load_transform,
)
from epochgate.spark.parquet_sink import ParquetCommitter
from tests.spark.ingest.simulated import (
    SimulatedIngest,
    make_older,
    options_for,
    visible,
    write_source,
)

WHOLE = 1 << 20
Told = Callable[..., tuple[int, str]]


@pytest.fixture
def told(capfd: pytest.CaptureFixture[str]) -> Told:
    """Run `epochgate ingest` with arguments: the exit code, and what was told."""

    def told(*arguments: str) -> tuple[int, str]:
        code = main(["ingest", *arguments])
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.err

    return told


def entries(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))


def corrupt(path: Path) -> None:
    path.write_text(path.read_text().replace("x,name\n", "x,name\n1,2,3\n", 1))


# Before Spark starts, nothing is made or changed.


def test_files_of_two_formats_are_told_with_a_pattern_for_one() -> None:
    told = str(MixedFormats("in/a.csv.gz", "csv", "in/b.json", "jsonl"))
    assert "such as '**/*.csv.gz', and run a job for each format" in told


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing", "does not exist"),
        ("missing/*.csv", "does not exist"),
        ("empty", "holds no data file"),
        ("mixed", "mixes formats"),
        ("unknown", "cannot tell the format"),
        ("changing", "schema changes between files"),
        ("nosuch://host/path", "cannot use 'nosuch://host'"),
    ],
)
def test_a_source_that_cannot_be_read(
    tmp_path: Path, told: Told, source: str, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    for folder, names in {
        "mixed": ("a.csv", "b.jsonl"),
        "unknown": ("a.txt",),
        "changing": ("a.csv", "b.csv"),
    }.items():
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text(f"x,{name}\n1,2\n")
    before = entries(tmp_path)
    place = source if "://" in source else str(tmp_path / source)
    code, text = told(place, str(tmp_path / "out"))
    assert code == 2
    assert message in text
    assert entries(tmp_path) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_source_that_may_not_be_read(tmp_path: Path, told: Told) -> None:
    write_source(tmp_path)
    (tmp_path / "in").chmod(0)
    code, text = told(str(tmp_path / "in"), str(tmp_path / "out"))
    (tmp_path / "in").chmod(0o700)
    assert code == 2
    assert "permissions" in text


def test_a_target_that_is_not_ours(tmp_path: Path, told: Told) -> None:
    write_source(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    before = entries(tmp_path)
    code, text = told(str(tmp_path / "in"), str(tmp_path / "out"))
    assert code == 2
    assert "thesis.txt" in text
    assert entries(tmp_path) == before


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("a file/out", "a file' is no directory"),
        ("taken", ".taken.epochgate' is no directory"),
        ("link/out", "link' is no directory"),
        ("x" * 300, "name too long"),
        ("/proc/out", "cannot write to '/proc"),
    ],
)
def test_a_target_that_cannot_be_made(
    tmp_path: Path, told: Told, target: str, message: str
) -> None:
    write_source(tmp_path)
    (tmp_path / "a file").touch()
    (tmp_path / ".taken.epochgate").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = entries(tmp_path)
    code, text = told(str(tmp_path / "in"), str(tmp_path / target))
    assert code == 2
    assert message.lower() in text.lower()
    assert entries(tmp_path) == before


@pytest.mark.parametrize("place", ["a file", "a file/checkpoints", "/proc/checkpoints"])
def test_a_checkpoint_directory_that_cannot_be_made(tmp_path: Path, told: Told, place: str) -> None:
    write_source(tmp_path)
    (tmp_path / "a file").touch()
    arguments = [str(tmp_path / "in"), str(tmp_path / "out")]
    code, text = told(*arguments, "--checkpoint-dir", str(tmp_path / place))
    assert code == 2
    assert str(tmp_path / place) in text
    # What was made by then is in the way of nothing.
    plan_ingest(options_for(tmp_path)).release()


def test_a_target_of_another_job(tmp_path: Path, told: Told) -> None:
    write_source(tmp_path)
    plan_ingest(options_for(tmp_path)).release()
    (tmp_path / "in").rename(tmp_path / "other")
    code, text = told(str(tmp_path / "other"), str(tmp_path / "out"))
    assert code == 2
    assert "belongs to job" in text


def test_a_checkpoint_directory_of_another_job(tmp_path: Path, told: Told) -> None:
    write_source(tmp_path)
    kept = str(tmp_path / "kept")
    plan_ingest(options_for(tmp_path, checkpoint_directory=kept)).release()
    code, text = told(str(tmp_path / "in"), str(tmp_path / "else"), "--checkpoint-dir", kept)
    assert code == 2
    assert "job" in text
    assert not (tmp_path / "else").exists()


def test_a_checkpoint_of_a_later_version(tmp_path: Path) -> None:
    write_source(tmp_path)
    simulated = SimulatedIngest(options_for(tmp_path))
    simulated.run()
    simulated.leave()
    newest = max(Path(checkpoint_directory_of(options_for(tmp_path))).glob("*.epochgate"))
    version, content = unseal(newest.read_bytes(), "test")
    newest.write_bytes(seal(content, version + 1))
    with pytest.raises(CheckpointFormatUnknown):
        plan_ingest(options_for(tmp_path))


@pytest.mark.parametrize(
    ("source", "target"),
    [("in", "in/out"), ("in", "in"), ("**/*.parquet", "out"), ("*/*/*.parquet", "out")],
)
def test_a_target_in_the_source(tmp_path: Path, source: str, target: str) -> None:
    write_source(tmp_path)
    options = IngestOptions(str(tmp_path / source), str(tmp_path / target))
    with pytest.raises(TargetInSource):
        plan_ingest(options)


@pytest.mark.parametrize("place", ["in", "in/kept", "out", "out/kept"])
def test_checkpoints_among_the_data(tmp_path: Path, place: str) -> None:
    write_source(tmp_path)
    with pytest.raises(CheckpointsMisplaced):
        plan_ingest(options_for(tmp_path, checkpoint_directory=str(tmp_path / place)))
    assert not (tmp_path / "out").exists()


def test_a_pattern_beside_the_target_is_fine(tmp_path: Path) -> None:
    write_source(tmp_path)
    for pattern in ("in/*.csv", "*/*.csv"):
        options = IngestOptions(str(tmp_path / pattern), str(tmp_path / f"out{len(pattern)}"))
        plan_ingest(options).release()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--parallelism", "0"),
        ("--checkpoint-every", "2"),
        ("--checkpoint-every", "0s"),
        ("--restart", "often"),
        ("--rows-per-second", "-1"),
        ("--rows-per-second", "nan"),
        ("--master", "sparkle[4]"),
        ("--columns", "x,nothing"),
        ("--transform", "no_colon"),
        ("--chaos", "-1"),
        ("--format", "xml"),
        ("--port", "-1"),
        ("--port", "65536"),
    ],
)
def test_an_option_that_cannot_be_meant(
    tmp_path: Path, told: Told, arguments: tuple[str, str]
) -> None:
    write_source(tmp_path)
    before = entries(tmp_path)
    code, text = told(str(tmp_path / "in"), str(tmp_path / "out"), *arguments)
    assert code == 2
    assert text
    assert entries(tmp_path) == before


def test_options_are_checked_for_python_as_well() -> None:
    with pytest.raises(IngestMisconfigured):
        IngestOptions("in", "")
    with pytest.raises(IngestMisconfigured):
        IngestOptions("in", "out", on_bad_file="explode")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(IngestMisconfigured, match="on_changed_file is 'explode'; choose from fail"):
        IngestOptions("in", "out", on_changed_file="explode")  # type: ignore[arg-type]  # the same
    with pytest.raises(IngestMisconfigured, match="commit_in is 'both'; choose from driver, tasks"):
        IngestOptions("in", "out", commit_in="both")  # type: ignore[arg-type]  # the same
    with pytest.raises(IngestMisconfigured, match="--commit-in tasks"):
        IngestOptions("in", "iceberg:a.b.c", checkpoint_directory="c", commit_in="tasks")
    for settle_s in (-1.0, float("nan")):
        with pytest.raises(IngestMisconfigured, match="settle_s is"):
            IngestOptions("in", "out", settle_s=settle_s)
    with pytest.raises(TransformNotCallable):
        IngestOptions("in", "out", transform=3)  # type: ignore[arg-type]  # and here
    with pytest.raises(InvalidRestartStrategy):
        IngestOptions("in", "out", restart="never ever")


def test_a_transform_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "rules_here.py").write_text("limit = 3\ndef clean(batch): return batch\n")
    (tmp_path / "rules_broken.py").write_text("import not_installed_anywhere\n")
    (tmp_path / "rules_of_a_script.py").write_text("import sys\nsys.exit(0)\n")
    assert callable(load_transform("rules_here:clean"))
    for name, error, message in [
        ("rules_gone:clean", TransformNotFound, "no module 'rules_gone'"),
        ("rules_here:clear", TransformNotFound, "it has clean"),
        ("rules_here:limit", TransformNotCallable, "is a int"),
        ("rules_here", TransformNotFound, "module:function"),
        ("rules_broken:clean", TransformBroken, "not_installed_anywhere"),
        ("rules_of_a_script:clean", TransformBroken, "SystemExit: 0"),
    ]:
        with pytest.raises(error, match=message):
            load_transform(name)


# While the job runs, it ends with what is wrong; what was committed stays, and nothing is doubled.


def test_a_corrupt_file_in_the_middle_ends_the_job_and_is_named(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    corrupt(tmp_path / "in" / "000010.csv")
    simulated = SimulatedIngest(options_for(tmp_path, split_bytes_target=WHOLE))
    simulated.run()
    result = simulated.leave()
    assert result.state == "failed"
    assert result.reason is not None
    assert "000010.csv" in result.reason
    assert result.report.regional_restarts == 0
    taken = visible(tmp_path / "out")
    assert taken == sorted(set(taken))
    assert set(taken) <= set(rows)

    # The next start may leave it out, and goes on with the rest.
    again = SimulatedIngest(options_for(tmp_path, on_bad_file="skip", split_bytes_target=WHOLE))
    again.run()
    assert again.leave().state == "finished"
    assert visible(tmp_path / "out") == [row for row in rows if not 10 <= row < 20]


def test_a_corrupt_file_can_be_skipped_and_is_recorded(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    corrupt(tmp_path / "in" / "000010.csv")
    simulated = SimulatedIngest(options_for(tmp_path, on_bad_file="skip", split_bytes_target=WHOLE))
    simulated.run()
    result = simulated.leave()
    assert result.state == "finished"
    assert [Path(skipped.path).name for skipped in result.skipped] == ["000010.csv"] * len(
        result.skipped
    )
    assert result.skipped
    assert visible(tmp_path / "out") == [row for row in rows if not 10 <= row < 20]


def explode_at_13(batch: pa.RecordBatch) -> pa.RecordBatch:
    if 13 in batch["x"].to_pylist():
        raise ArithmeticError("thirteen")
    return batch


def test_a_transform_that_raises_ends_the_job_with_file_and_rows(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    simulated = SimulatedIngest(
        options_for(tmp_path, transform=explode_at_13, split_bytes_target=WHOLE)
    )
    simulated.run()
    result = simulated.leave()
    assert result.state == "failed"
    for word in ("000010.csv", "ArithmeticError: thirteen", "rows 3 to 5"):
        assert word in str(result.reason)
    mended = SimulatedIngest(options_for(tmp_path))
    mended.run()
    assert mended.leave().state == "finished"
    assert visible(tmp_path / "out") == rows


def number_or_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """As a rule does that is not meant: a column of another type where its values are others."""
    values = batch["x"].to_pylist()
    column = pa.array([x if x < 10 else str(x) for x in values])
    return pa.record_batch({"x": batch["x"], "note": column})


def test_an_output_schema_that_changes_never_gets_into_a_checkpoint(tmp_path: Path) -> None:
    rows = write_source(tmp_path)
    simulated = SimulatedIngest(options_for(tmp_path, transform=number_or_text))
    simulated.run()
    result = simulated.leave()
    assert result.state == "failed"
    assert "output's schema changes" in str(result.reason)
    # The job can be mended: whatever was checkpointed has one schema, and could be committed.
    again = SimulatedIngest(
        options_for(tmp_path, transform=lambda batch: _with_note(batch, simulated))
    )
    again.run()
    assert again.leave().state == "finished", again.result.reason
    assert visible(tmp_path / "out") == rows


def _with_note(batch: pa.RecordBatch, before: SimulatedIngest) -> pa.RecordBatch:
    committer = before.plan.committer
    assert isinstance(committer, ParquetCommitter)
    schema = committer.target.schema()
    note = pa.int64() if schema is None else schema.field("note").type
    return pa.record_batch({"x": batch["x"], "note": pa.nulls(batch.num_rows, note)})


def test_a_schema_that_changes_in_a_followed_source_ends_the_job(tmp_path: Path) -> None:
    rows = write_source(tmp_path, files=1)
    simulated = SimulatedIngest(options_for(tmp_path, follow=True, checkpoint_every_s=0.1))
    simulated.run(until=lambda: simulated.plan.committer.rows_visible == len(rows))
    (tmp_path / "in" / "later.csv").write_text("other,columns\n1,2\n")
    make_older(tmp_path / "in" / "later.csv")
    simulated.run(rounds_max=200_000)
    result = simulated.leave()
    assert result.state == "failed"
    assert "later.csv" in str(result.reason)
    assert result.report.global_restarts == 0
    assert visible(tmp_path / "out") == rows


def test_a_full_disk_loses_nothing_wherever_it_strikes(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    write_source(whole, files=2, rows=4)
    undisturbed = SimulatedIngest(options_for(whole))
    planned = len(undisturbed.files.operations)
    undisturbed.run()
    undisturbed.leave()
    for at in range(planned, len(undisturbed.files.operations), 3):
        place = tmp_path / f"at-{at}"
        place.mkdir()
        rows = write_source(place, files=2, rows=4)
        simulated = SimulatedIngest(
            options_for(place, restart="fixed:3,10ms"), [Fault(at, kind="disk_full")]
        )
        simulated.run()
        result = simulated.leave()
        taken = visible(place / "out")
        assert taken == sorted(set(taken))
        if result.state == "finished":
            assert taken == rows
            continue
        assert result.state == "failed"
        assert "space" in str(result.reason), result.reason
        again = SimulatedIngest(options_for(place))
        again.run()
        assert again.leave().state == "finished"
        assert visible(place / "out") == rows


def test_an_option_that_there_is_not_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(IngestMisconfigured, match="'paralelism'; did you mean 'parallelism'"):
        ingest(None, "in", "out", paralelism=2)
    with pytest.raises(IngestMisconfigured, match=r"no option 'xyz'; there are parallelism, "):
        ingest(None, "in", "out", xyz=2)


def test_a_package_lists_the_names_that_it_imports_when_they_are_used() -> None:
    assert {"ingest", "start_ingest", "IngestOptions"} <= {*dir(epochgate.spark.ingest)}
    assert {"run_job", "local_session"} <= {*dir(epochgate.spark)}


def test_a_schema_that_names_a_column_twice_is_refused(tmp_path: Path) -> None:
    twice = pa.schema([("id", pa.int64()), ("id", pa.string())])
    with pytest.raises(IngestMisconfigured, match="two columns of the name 'id'"):
        IngestOptions(str(tmp_path), str(tmp_path / "out"), schema=twice)
