"""Exactly-once coordination for Spark jobs, from protocols declared once as state machines.

The parts are `epochgate.fsm` (what a machine is), `epochgate.models` (which machines exist),
`epochgate.runtime` (what makes them act), `epochgate.spark` (where they live) and
`epochgate.diagrams` (how they are shown). Importing this package imports none of them.
"""

from __future__ import annotations

from epochgate.errors import EpochgateError, NegativeResult, UsageError

__version__ = "0.1.0"

__all__ = ["EpochgateError", "NegativeResult", "UsageError", "__version__"]
