"""The fuzzed job, the record that it is held against, and the Hypothesis machine that drives it.

`epochgate.runtime.testing.fuzzing.stateful` needs Hypothesis and is not imported here.
"""

from epochgate.runtime.testing.fuzzing.job import FuzzedJob, Shape
from epochgate.runtime.testing.fuzzing.record import InvariantViolated, Record

__all__ = ["FuzzedJob", "InvariantViolated", "Record", "Shape"]
