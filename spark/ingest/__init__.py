"""Exactly-once ingestion of files into a Parquet directory: operators, coordinators, and the job.

Names are imported when they are first used, because tasks import from here too and need little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochgate.spark.ingest.options import IngestOptions
    from epochgate.spark.ingest.run import (
        IngestFailed,
        IngestHandle,
        IngestResult,
        ingest,
        start_ingest,
    )

_HOMES = {
    "IngestFailed": "epochgate.spark.ingest.run",
    "IngestHandle": "epochgate.spark.ingest.run",
    "IngestOptions": "epochgate.spark.ingest.options",
    "IngestResult": "epochgate.spark.ingest.run",
    "ingest": "epochgate.spark.ingest.run",
    "start_ingest": "epochgate.spark.ingest.run",
}

__all__ = [
    "IngestFailed",
    "IngestHandle",
    "IngestOptions",
    "IngestResult",
    "ingest",
    "start_ingest",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
