"""A streaming query in a driver of its own, to be killed: `python killed_query.py ROOT KIND DSN`.

Ends with 0 once it has read all files, and goes on where the one before was killed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from epochgate.spark.session import local_session
from epochgate.spark.streaming import register
from tests.spark.shared import executor_settings
from tests.spark.streaming.queries import Numbers

MASTER = "local-cluster[2,1,1024]"


def main(root: str, kind: str, dsn: str) -> None:
    query = Numbers(Path(root), kind, dsn)
    settings = {"spark.task.maxFailures": "8", **executor_settings()}
    with local_session(MASTER, settings=settings) as spark:
        register(spark)
        query.start(spark).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
