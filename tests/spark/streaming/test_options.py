"""The options of the sink: what is understood, and what is refused with what to write instead."""

from __future__ import annotations

import pytest

from epochgate.spark.streaming import OptionsWrong
from epochgate.spark.streaming.options import parse

PARQUET = {"sink": "parquet", "path": "/data/out"}


@pytest.mark.parametrize(
    ("size", "size_bytes"), [("268435456", 268435456), ("256MB", 256_000_000), ("64MiB", 64 << 20)]
)
def test_a_size_is_bytes_or_a_number_with_a_unit(size: str, size_bytes: int) -> None:
    target = parse({**PARQUET, "fileBytes": size}).target
    assert target.file_bytes == size_bytes  # type: ignore[attr-defined]  # of targets with files


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


@pytest.mark.parametrize("value", ["true", "True", "false"])
def test_a_late_start_is_true_or_false(value: str) -> None:
    assert parse({**PARQUET, "lateStart": value}).accepted.late_start is (value != "false")
