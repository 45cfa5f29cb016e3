"""The options of the sink: what is understood, and what is refused with what to write instead."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from epochgate.spark.extras import ExtraMissing
from epochgate.spark.streaming import OptionsWrong
from epochgate.spark.streaming.options import parse

PARQUET = {"sink": "parquet", "path": "/data/out"}


@pytest.mark.parametrize(
    ("size", "size_bytes"), [("268435456", 268435456), ("256MB", 256_000_000), ("64MiB", 64 << 20)]
)
def test_a_size_is_bytes_or_a_number_with_a_unit(size: str, size_bytes: int) -> None:
    target = parse({**PARQUET, "fileBytes": size}).target
    assert target.file_bytes == size_bytes  # type: ignore[attr-defined]  # of targets with files


def test_a_mistyped_option_is_named_before_what_is_missing_for_it() -> None:
    with pytest.raises(OptionsWrong, match="no option 'snik'; did you mean 'sink'"):
        parse({"snik": "parquet", "path": "/data/out"})


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("fileBytes", "large", "the option 'fileBytes': 'large' is not a size"),
        ("fileBytes", "0", "'0'; a file has 1 byte at least"),
        ("lateStart", "maybe", "the option 'lateStart' is 'maybe'; give 'true' or 'false'"),
        ("lateStart", "", "give 'true' or 'false'"),
    ],
)
def test_a_value_that_is_not_one_of_the_option_is_refused(
    option: str, value: str, told: str
) -> None:
    with pytest.raises(OptionsWrong, match=told):
        parse({**PARQUET, option: value})


@pytest.mark.parametrize(
    ("sink", "path", "told"),
    [
        ("delta", "hdfs://host/t", "'hdfs://host/t', and the sink 'delta' does not write there"),
        ("delta", "hdfs://nn/t", "give a directory that is mounted wherever tasks run"),
        ("parquet", "hdfs://nn/t", "mounted wherever tasks run, or a URL of s3://"),
    ],
)
def test_a_place_that_the_sink_cannot_write_to_is_refused_before_anything_is_made(
    sink: str, path: str, told: str
) -> None:
    with pytest.raises(OptionsWrong, match=told):
        parse({"sink": sink, "path": path})


@pytest.mark.parametrize(("sink", "module"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_a_library_that_is_missing_is_named_before_anything_is_sent_to_tasks(
    sink: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ExtraMissing, match=rf"needs {module}, .*epochgate\[{sink}\]"):
        parse({"sink": sink, "path": "/data/t", "table": "lake.sales.events"})


@pytest.mark.parametrize("sink", ["parquet", "delta"])
def test_a_path_of_a_file_is_refused(sink: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(OptionsWrong, match="out', which is a file; give a directory"):
        parse({"sink": sink, "path": str(tmp_path / "out")})


@pytest.mark.parametrize("value", ["true", "True", "false"])
def test_a_late_start_is_true_or_false(value: str) -> None:
    assert parse({**PARQUET, "lateStart": value}).accepted.late_start is (value != "false")
