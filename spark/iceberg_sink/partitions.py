"""Files added to a partitioned Iceberg table, each with the partition that its values tell.

Decides nothing: a task has put rows of one partition into a file, by transforms of its own; here
the library's make the partition of the least and of the greatest value, which have to agree. The
library's own way takes no buckets, and none of a column of which the table keeps no statistics.
Runs on the driver.
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
from pyiceberg.typedef import Record

from epochgate.spark.parquet_sink.errors import CommittableDamaged

_ALL = {"write.metadata.metrics.default": "full"}


def add_files(
    transaction: Transaction, io: Any, paths: Sequence[str], summary: Mapping[str, str]
) -> None:
    """Add these files to a new snapshot. Raises CommittableDamaged for one of several partitions,
    and what the library raises.
    """
    metadata = transaction.table_metadata
    if metadata.name_mapping() is None:
        mapping = metadata.schema().name_mapping.model_dump_json()
        transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: mapping})
    producer = transaction.update_snapshot(snapshot_properties=dict(summary)).fast_append()
    for path in paths:
        producer.append_data_file(_data_file(transaction.table_metadata, io, path))
    producer.commit()


def _data_file(metadata: Any, io: Any, path: str) -> DataFile:
    file = io.new_input(path)
    with file.open() as stream:
        footer = pq.read_metadata(stream)
    schema = metadata.schema()

    def statistics(properties: dict[str, str]) -> Any:
        return data_file_statistics_from_parquet_metadata(
            parquet_metadata=footer,
            stats_columns=compute_statistics_plan(schema, properties),
            parquet_column_mapping=parquet_path_to_id_mapping(schema),
        )

    ranges = statistics(_ALL).column_aggregates
    values = [_value(one, ranges, schema, path) for one in metadata.spec().fields]
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*values),
        file_size_in_bytes=len(file),
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics(metadata.properties).to_serialized_dict(),
    )


def _value(field: Any, ranges: Mapping[int, Any], schema: Any, path: str) -> Any:
    """The partition's value for a field of the spec."""
    if field.source_id not in ranges:  # of a column that is dropped, or that no file has
        return None
    transform = field.transform.transform(schema.find_type(field.source_id))
    least, greatest = (
        transform(partition_record_value(field, value, schema))
        for value in (ranges[field.source_id].current_min, ranges[field.source_id].current_max)
    )
    if least != greatest:
        expected = f"rows of one partition by {field.name}"
        raise CommittableDamaged(path, expected, f"those of {least} and {greatest}")
    return least
