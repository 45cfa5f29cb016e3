"""The Parquet sink is certified, as any sink of a user is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq
import pytest

from epochgate.runtime import Sink
from epochgate.spark.parquet_sink import ParquetSink, working_directory_of
from epochgate.spark.parquet_sink.gathered import CommitIn
from epochgate.testing import SinkCase, certify_sink


class ParquetCase(SinkCase):
    """Reads each file of the target by itself."""

    commit_in: ClassVar[CommitIn] = "driver"

    def sink(self, place: Path) -> Sink:
        return ParquetSink(str(place / "out"), commit_in=self.commit_in)

    def rows(self, place: Path) -> Iterator[Any]:
        for path in sorted(place.glob("out/**/*.parquet")):
            yield from pq.ParquetFile(path).read().to_pylist()

    def staged(self, place: Path) -> list[str]:
        working = Path(working_directory_of(place / "out"))
        return [
            str(path.relative_to(working))
            for area in ("staged", "prepared")
            for path in working.glob(f"{area}/**/*")
            if path.is_file()
        ]


class ParquetInTasksCase(ParquetCase):
    """The same where tasks commit."""

    commit_in = "tasks"


@pytest.mark.parametrize("case", [ParquetCase, ParquetInTasksCase])
@pytest.mark.parametrize(
    "stride", [61, pytest.param(1, marks=[pytest.mark.deep, pytest.mark.timeout(1800)])]
)
def test_it_is_certified(stride: int, case: type[ParquetCase]) -> None:
    assert certify_sink(case(), stride=stride).points > 150
