"""The names of `epochgate.runtime.pipeline`, and where they are defined."""

from epochgate.runtime.pipeline.coordinated_operator import (
    CoordinatedOperator as CoordinatedOperator,
)
from epochgate.runtime.pipeline.function_source import FunctionSource as FunctionSource
from epochgate.runtime.pipeline.pace import Pace as Pace
from epochgate.runtime.pipeline.program import (
    MAP as MAP,
    SINK as SINK,
    SOURCE as SOURCE,
    MapOperator as MapOperator,
    PipelineProgram as PipelineProgram,
)
from epochgate.runtime.pipeline.record_sink import (
    FunctionCommitter as FunctionCommitter,
    RecordSink as RecordSink,
)
from epochgate.runtime.pipeline.setting import (
    RateLimit as RateLimit,
    Setting as Setting,
    SettingNotDurable as SettingNotDurable,
    SettingRefused as SettingRefused,
)
from epochgate.runtime.pipeline.waiting import (
    IN_FLIGHT as IN_FLIGHT,
    redistributed as redistributed,
)
