from epochgate.spark.handle import (
    JobHandle as JobHandle,
    JobStatus as JobStatus,
    TaskStatus as TaskStatus,
)
from epochgate.spark.java import use_java as use_java
from epochgate.spark.job import run_job as run_job
from epochgate.spark.session import (
    local_session as local_session,
    validate_session as validate_session,
)
from epochgate.spark.wire import Detection as Detection
