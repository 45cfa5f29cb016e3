"""The names of `epochgate`, and where they are defined: what most programs begin with."""

from epochgate.errors import (
    EpochgateError as EpochgateError,
    NegativeResult as NegativeResult,
    UsageError as UsageError,
)
from epochgate.runtime.pipeline.function_source import FunctionSource as FunctionSource
from epochgate.runtime.pipeline.setting import RateLimit as RateLimit, Setting as Setting
from epochgate.spark.ingest.run import ingest as ingest
from epochgate.spark.parquet_sink.reading import read as read
from epochgate.spark.pipeline import Pipeline as Pipeline
from epochgate.spark.session import local_session as local_session
from epochgate.spark.streaming.control import Control as Control
from epochgate.spark.streaming.guarding import once as once

__version__: str
