"""Which Arrow types a Delta table has, beside those of all formats.

Whole numbers without a sign become wider ones with it; times of day and durations are refused.
"""

from __future__ import annotations

import pyarrow as pa

from epochgate.spark.tables.types import TableTypes

DELTA = TableTypes(
    "Delta Lake",
    same=(pa.types.is_signed_integer,),
    other=((pa.types.is_uint8, pa.int16()),),
    tells_capitals=False,
)
