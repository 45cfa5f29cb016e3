"""The sinks into tables, as `epochgate certify-sink` tries them.

epochgate certify-sink tests.spark.tables.certified:DeltaCase
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from epochgate.runtime import Sink
from epochgate.spark.delta_sink import DeltaSink
from epochgate.testing import SinkCase
from tests.spark.tables.delta_replay import active_files


class DeltaCase(SinkCase):
    """A Delta table; the library's writes are points beside those of files."""

    calls = (
        "deltalake.table:DeltaTable.create_write_transaction",
        "deltalake.transaction:create_table_with_add_actions",
    )

    def sink(self, place: Path) -> Sink:
        """The sink on an empty place."""
        return DeltaSink(str(place / "table"))

    def rows(self, place: Path) -> Iterator[dict[str, Any]]:
        """What a reader sees that replays the log."""
        for file in active_files(place / "table"):
            yield from pq.read_table(file).to_pylist()

    def staged(self, place: Path) -> list[str]:
        """Staged files."""
        return [file.name for file in place.glob("table/_epochgate/staged/*/*")]

    def error(self) -> Exception:
        """What the library raises where the log cannot be written."""
        from deltalake.exceptions import DeltaError

        return DeltaError("Generic error: no answer")
