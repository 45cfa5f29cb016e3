"""The names of `epochgate.pipeline`, and where they are defined."""

from epochgate.runtime.api.committer import Committer as Committer, RetryLater as RetryLater
from epochgate.runtime.pipeline.coordinated_operator import (
    CoordinatedOperator as CoordinatedOperator,
)
from epochgate.runtime.pipeline.function_source import FunctionSource as FunctionSource
from epochgate.runtime.pipeline.parts import PipelineMisconfigured as PipelineMisconfigured
from epochgate.runtime.pipeline.program import MapOperator as MapOperator
from epochgate.runtime.pipeline.setting import (
    RateLimit as RateLimit,
    Setting as Setting,
    SettingNotDurable as SettingNotDurable,
    SettingRefused as SettingRefused,
)
from epochgate.spark.delta_sink import DeltaSink as DeltaSink
from epochgate.spark.iceberg_sink import IcebergSink as IcebergSink
from epochgate.spark.parquet_sink import ParquetSink as ParquetSink
from epochgate.spark.pipeline import (
    Pipeline as Pipeline,
    PipelineFailed as PipelineFailed,
)
from epochgate.spark.postgres_sink import PostgresSink as PostgresSink
from epochgate.spark.tables.merge import Merge as Merge, MergeUnusable as MergeUnusable
