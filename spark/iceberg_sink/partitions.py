"""Files added to an Iceberg table, each with the partition that its values tell.

Decides nothing: a task has put rows of one partition into a file, by transforms of its own; here
the library's make the partition of the least and of the greatest value, which have to agree, or of
the first one where the file does not tell these, as of texts of more than 4 KiB. The library's own
way takes no buckets, none of a column of which the table keeps no statistics, and no file that
does not itself say which columns are required. Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import partition_record_value
from pyiceberg.table import TableProperties, Transaction
from pyiceberg.transforms import VoidTransform, parse_transform
from pyiceberg.typedef import Record

from epochgate.spark.parquet_sink.errors import CommittableDamaged

_ALL = {"write.metadata.metrics.default": "full"}


def add_files(
    transaction: Transaction,
    io: Any,
    paths: Sequence[str],
    summary: Mapping[str, str],
    removed: Sequence[DataFile] = (),
) -> None:
    """Add these files to a new snapshot, and take others out. Raises CommittableDamaged for one of
    several partitions, and what the library raises.
    """
    metadata = transaction.table_metadata
    if metadata.name_mapping() is None:
        mapping = metadata.schema().name_mapping.model_dump_json()
        transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: mapping})
    update = transaction.update_snapshot(snapshot_properties=dict(summary))
    merges = metadata.properties.get(TableProperties.MANIFEST_MERGE_ENABLED) == "true"
    is_whole = metadata.spec().is_unpartitioned()
    producer: Any = update.merge_append() if is_whole and merges else update.fast_append()
    if removed:
        producer = update.overwrite()
    for file in removed:
        producer.delete_data_file(file)
    for path in paths:
        producer.append_data_file(_data_file(transaction.table_metadata, io, path))
    producer.commit()


def divide(transaction: Transaction, transforms: Sequence[str]) -> None:
    """Partition the table by these transforms, written as tasks are told them."""
    if transforms:
        with transaction.update_spec() as update:
            for written in transforms:
                transform, _, column = written.partition(" ")
                update.add_field(column, parse_transform(transform))


def _data_file(metadata: Any, io: Any, path: str) -> DataFile:
    file = io.new_input(path)
    with file.open() as stream, pq.ParquetFile(stream) as parquet:
        return _described(metadata, parquet, path, len(file))


def _described(metadata: Any, parquet: pq.ParquetFile, path: str, size_bytes: int) -> DataFile:
    schema = metadata.schema()

    def statistics(properties: dict[str, str]) -> Any:
        return data_file_statistics_from_parquet_metadata(
            parquet_metadata=parquet.metadata,
            stats_columns=compute_statistics_plan(schema, properties),
            parquet_column_mapping=parquet_path_to_id_mapping(schema),
        )

    ranges = statistics(_ALL).column_aggregates
    values = []
    for one in metadata.spec().fields:
        found = ranges.get(one.source_id)
        ends = (None, None) if found is None else (found.current_min, found.current_max)
        if None in ends and not isinstance(one.transform, VoidTransform):
            ends = (_first(parquet, schema.find_column_name(one.source_id)),) * 2
        values.append(_value(one, ends, schema, path))
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*values),
        file_size_in_bytes=size_bytes,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics(metadata.properties).to_serialized_dict(),
    )


def _first(parquet: pq.ParquetFile, column: str | None) -> Any:
    """The first value of a column; none of one that is dropped, or that the file has not."""
    if column not in parquet.schema_arrow.names:
        return None
    for batch in parquet.iter_batches(1, columns=[column]):
        return batch.column(0)[0].as_py()
    return None


def _value(field: Any, ends: tuple[Any, Any], schema: Any, path: str) -> Any:
    """The partition's value for a field of the spec, of the least and the greatest value."""
    if ends == (None, None):
        return None
    transform = field.transform.transform(schema.find_type(field.source_id))
    least, greatest = (transform(partition_record_value(field, end, schema)) for end in ends)
    if least != greatest:
        expected = f"rows of one partition by {field.name}"
        raise CommittableDamaged(path, expected, f"those of {least} and {greatest}")
    return least
