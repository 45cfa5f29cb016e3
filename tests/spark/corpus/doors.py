"""The doors through which files are read, each in one process, without Spark's own part.

`ingest` has its target, and all but the session; the streaming reader and the frame are the objects
that Spark makes, called as Spark calls them; the pipeline is one with a source of files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from epochgate.errors import EpochgateError
from epochgate.pipeline import Pipeline
from epochgate.runtime.source import SplitEnumerator, SplitEnumeratorContext
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.spark.files import FileEnumeration, ReadBatch
from epochgate.spark.files.dialect import Dialect
from epochgate.spark.files.known_segments import KnownSegments
from epochgate.spark.ingest.file_enumerator import FileEnumerator
from epochgate.spark.ingest.file_source import FileSource
from epochgate.spark.streaming.frame_source import FrameReader
from epochgate.spark.streaming.source import StreamReader
from epochgate.spark.streaming.source_options import parse_source
from epochgate.spark.streaming.source_rows import inferred
from epochgate.spark.values.plain_types import plain
from tests.spark.ingest.simulated import SimulatedIngest, options_for
from tests.spark.values.cells import Rows, of_table


class Refused(Exception):
    """A job has failed: its reason."""


@dataclass(frozen=True)
class Reading:
    """The reading of a file: the types that are declared, none to take those of the files; options
    as the answers spell them.
    """

    place: Path
    schema: pa.Schema | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> Path:
        """The directory of the files."""
        return self.place / "in"

    @property
    def dialect(self) -> Dialect:
        """Of CSV files."""
        given = {name: one for name, one in self.options.items() if name != "encoding"}
        null = given.pop("null", None)
        return Dialect(**given, null=None if null is None else tuple(null))

    @property
    def encoding(self) -> str:
        """Of text files."""
        return str(self.options.get("encoding", "utf-8"))

    def of_spark(self) -> dict[str, str]:
        """The options of the source, as Spark gives them."""
        given = {name: str(value) for name, value in self.options.items()}
        if "header" in given:
            given["header"] = given["header"].lower()
        if "null" in given:
            (given["null"],) = self.options["null"]
        return {"source": str(self.source), "settle": "0", "partitions": "2", **given}

    def struct(self, columns: Callable[[], pa.Schema]) -> t.StructType:
        """The types with which Spark would make a reader."""
        if self.schema is not None:
            plainly = [one.with_type(plain(one.type)) for one in self.schema]
            return from_arrow_schema(pa.schema(plainly))
        return t.StructType.fromJson(inferred(columns()).jsonValue())

    def enumeration(self, **more: Any) -> FileEnumeration:
        """The files, as they are found."""
        return FileEnumeration(
            self.source, dialect=self.dialect, encoding=self.encoding, schema=self.schema, **more
        )


def by_ingest(reading: Reading) -> Rows:
    """The rows of a target of Parquet files."""
    given = dict(reading.options)
    if "null" in given:
        given["null"] = tuple(given["null"])
    options = options_for(
        reading.place, split_bytes_target=1 << 20, batch_rows=100, schema=reading.schema, **given
    )
    job = SimulatedIngest(options)
    job.run()
    result = job.leave()
    if result.state != "finished":
        raise Refused(result.reason)
    found: Rows = Rows()
    for path in (reading.place / "out").rglob("*.parquet"):
        found += of_table(pq.ParquetFile(path).read())
    return found


class Files(FileSource):
    """Files as the source of a pipeline."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(batch_rows=100, on_bad_file="fail", encoding=reading.encoding)
        self._files, self._segments = reading.enumeration(), KnownSegments(reading.place / "known")
        self._files.discover()

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        return FileEnumerator(context, self._files.copy(), None, self._segments, None)


def by_pipeline(reading: Reading) -> Rows:
    """The rows that the sink of a pipeline is given."""
    committed: dict[int, list[bytes]] = {}
    pipeline = Pipeline(source=Files(reading), map=packed, sink=committed.__setitem__)
    job = SimulatedJob.of(pipeline, parallelism=2, checkpoint_interval_s=0.5)
    job.settle(until=lambda: job.is_over)
    if job.result.state != "finished":
        raise Refused(job.result.reason)
    return unpacked(committed)


def packed(reads: list[ReadBatch]) -> list[bytes]:
    """Return what is read, as values that travel to the sink."""
    parts = []
    for read in reads:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, read.batch.schema) as stream:
            stream.write_batch(read.batch)
        parts.append(sink.getvalue().to_pybytes())
    return parts


def unpacked(committed: Mapping[int, list[bytes]]) -> Rows:
    """The rows that a sink was given."""
    found: Rows = Rows()
    for records in committed.values():
        for record in records:
            found += of_table(pa.ipc.open_stream(record).read_all())
    return found


def by_stream(reading: Reading) -> Rows:
    """The rows of the first batch of a streaming query."""
    options = parse_source({**reading.of_spark(), "state": str(reading.place / "state")})
    reader = StreamReader(options, reading.struct(options.arrow_schema))
    try:
        begun = reader.initialOffset()
        planned = reader.latestOffset(begun, reader.getDefaultReadLimit())
        return _rows(reader, reader.partitions(begun, planned))
    finally:
        reader.stop()


def by_frame(reading: Reading) -> Rows:
    """The rows of a DataFrame."""
    options = parse_source(reading.of_spark(), of_frame=True)
    reader = FrameReader(options, reading.struct(options.arrow_schema))
    return _rows(reader, reader.partitions())


def _rows(reader: Any, partitions: Any) -> Rows:
    found: Rows = Rows()
    for partition in partitions:
        for batch in reader.read(partition):
            found += of_table(batch)
    return found


DOORS: Mapping[str, Callable[[Reading], Rows]] = {
    "ingest": by_ingest,
    "pipeline": by_pipeline,
    "stream": by_stream,
    "frame": by_frame,
}
REFUSALS = (EpochgateError, Refused)
