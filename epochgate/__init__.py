"""Exactly-once coordination for Spark jobs, from protocols declared once as state machines.

The parts are `epochgate.fsm` (what a machine is), `epochgate.models` (which machines exist),
`epochgate.runtime` (what makes them act), `epochgate.spark` (where they live) and
`epochgate.diagrams` (how they are shown). Importing this package imports none of them, and `read`,
which reads what a job has written, when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from epochgate import proving
from epochgate.errors import EpochgateError, NegativeResult, UsageError

__version__ = "0.1.0"

__all__ = ["EpochgateError", "NegativeResult", "UsageError", "__version__", "read"]

sys.meta_path.append(proving.Finder)


def __getattr__(name: str) -> Any:
    if name != "read":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("epochgate.spark.parquet_sink.reading").read
