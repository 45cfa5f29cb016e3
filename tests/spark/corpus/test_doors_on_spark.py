"""The files of the corpus through every door on real Spark, many at a time, as they are declared.

Files of a batch have the same columns. Those of texts are declared as STRING, so that each field
has to arrive letter by letter; of Parquet the types are those of the files. Which file a row is of
is told by a directory. `make test` reads the largest batches, `make check-deep` all.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")

from epochgate.spark.ingest import ingest
from epochgate.spark.streaming import register
from epochgate.spark.streaming.source import HAS_LIMITS
from epochgate.spark.streaming.source_rows import columns_of
from tests.spark.corpus.answers import PARQUET_ANSWERS, TEXT_ANSWERS, Answer, copy_of
from tests.spark.corpus.doors import Files, Reading, packed, unpacked
from tests.spark.corpus.parquet_files import PARQUET, write
from tests.spark.corpus.test_doors import NOT_OF_SPARK, refused_for, suits
from tests.spark.corpus.test_parquet import read
from tests.spark.shared import session_of
from tests.spark.values.cells import Rows, of_table

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]
if not HAS_LIMITS:
    pytest.skip(
        "Spark before 4.2 does not tell a source in Python where it goes on",
        allow_module_level=True,
    )
IN_MAKE_TEST = 3
"""How many batches `make test` reads."""
FILE = "of_file"
