"""The names of `epochgate.spark.streaming`, and where they are defined."""

from epochgate.runtime.steering.deciding import Decision as Decision
from epochgate.runtime.steering.history import Update as Update
from epochgate.spark.streaming.control import (
    Control as Control,
    ControlMetrics as ControlMetrics,
)
