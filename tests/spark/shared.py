"""One Spark session for several files, of which a process can have one at a time.

`tests/conftest.py` gives files with the same session to the same process, one after the other, and
stops the session when a test of another file comes.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

from epochgate.spark.session import local_session

SESSIONS = {
    "tests/integration/test_on_spark.py": "local-cluster[2,2,1024]",
    "tests/spark/ingest/test_killed_processes.py": "local-cluster[2,2,1024]",
    "tests/spark/corpus/test_doors_on_spark.py": "local[2]",
    "tests/spark/corpus/test_landing_zone.py": "local[2]",
    "tests/spark/ingest/test_landing_zone.py": "local[2]",
    "tests/spark/ingest/test_notified.py": "local[2]",
    "tests/spark/tables/test_growing_tables.py": "local[2]",
    "tests/spark/tables/test_ingest_iceberg.py": "local[2]",
    "tests/spark/tables/test_ingest_tables.py": "local[2]",
    "tests/spark/sink/test_object_frame.py": "local[2]",
    "tests/spark/sink/test_partitions_on_spark.py": "local[2]",
    "tests/spark/compaction/test_beside.py": "local[2]",
    "tests/spark/streaming/test_declared_types.py": "local[2]",
    "tests/spark/streaming/test_foreach.py": "local[2]",
    "tests/spark/streaming/test_frame_source.py": "local[2]",
    "tests/spark/streaming/test_frames.py": "local[2]",
    "tests/spark/streaming/test_guides.py": "local[2]",
    "tests/spark/streaming/test_killed.py": "local[2]",
    "tests/spark/streaming/test_sink.py": "local[2]",
    "tests/spark/streaming/test_set_back.py": "local[2]",
    "tests/spark/streaming/test_control.py": "local[2]",
    "tests/spark/streaming/test_control_killed.py": "local[2]",
    "tests/spark/streaming/test_pruned_source.py": "local[2]",
    "tests/spark/streaming/test_source.py": "local[2]",
    "tests/spark/streaming/test_three_runtimes.py": "local[2]",
    "tests/spark/values/test_on_spark.py": "local[2]",
    "tests/spark/values/test_readable.py": "local[2]",
    "tests/spark/checking/test_on_spark.py": "local[2]",
    "tests/spark/test_back_pressure.py": "local[2]",
    "tests/spark/test_batch_snapshot_job.py": "local[2]",
    "tests/spark/test_collect_and_filtering.py": "local[2]",
    "tests/spark/test_contract_job.py": "local[2]",
    "tests/spark/test_doors_on_spark.py": "local[2]",
    "tests/spark/test_file_modes_job.py": "local[2]",
    "tests/spark/test_large_states.py": "local[2]",
    "tests/spark/test_pipeline_doors_on_spark.py": "local[2]",
    "tests/spark/test_private_job.py": "local[2]",
    "tests/spark/test_receipts_job.py": "local[2]",
    "tests/spark/test_savepoint_job.py": "local[2]",
    "tests/spark/test_transport.py": "local[2]",
    "tests/spark/test_unknown_outcome.py": "local[2]",
    "tests/spark/test_wake_up_job.py": "local[2]",
    "tests/spark/test_in_place.py": "local[4]",
    "tests/spark/test_local_job.py": "local[4]",
    "tests/spark/test_validation.py": "local[4]",
    "tests/spark/test_seen_job.py": "local[4]",
    "tests/spark/test_source_job.py": "local[4]",
}
"""File -> the master of the session that it shares with others."""

_running = ExitStack()
_session: dict[str, Any] = {}


def session_of(file: str) -> Any:
    """The session for a file, started unless the file before has left it running."""
    master = SESSIONS[file]
    if master not in _session:
        stop()
        session = local_session(master, settings=executor_settings())
        _session[master] = _running.enter_context(session)
    return _session[master]


def executor_settings() -> dict[str, str]:
    """Let executors that are JVMs of their own use the archive of classes, as the driver does."""
    return {"spark.executor.defaultJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", "")}


def stop() -> None:
    """Stop the session that runs, if any does."""
    _session.clear()
    _running.close()
