"""Which Arrow types an Iceberg table has, beside those of all formats.

Whole numbers have 32 or 64 bits; times of day are kept to the microsecond; durations are refused.
"""

from __future__ import annotations

import pyarrow as pa

from epochgate.spark.tables.types import TableTypes

ICEBERG = TableTypes(
    "Iceberg",
    other=(
        (pa.types.is_int8, pa.int32()),
        (pa.types.is_int16, pa.int32()),
        (pa.types.is_uint8, pa.int32()),
        (pa.types.is_time, pa.time64("us")),
    ),
)
