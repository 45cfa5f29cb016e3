"""Spark's daemon of Python workers, with the imports of a task made before it forks.

Every attempt after a failure runs in a worker that was forked for it. A worker of Spark's own
daemon imports pyspark's worker, pyarrow and epochgate after the fork, which takes half a second of
processor time; a worker of this daemon has them. `spark.python.daemon.module` names this module;
the Python of the executors must have epochgate installed.

Importing pyarrow starts threads of numpy and jemalloc, which is why Spark's daemon leaves it to the
worker; both libraries stop and renew their threads around a fork.
"""

from __future__ import annotations

import gc
import importlib
from typing import Final

PRELOADED: Final = ("pyspark.worker", "epochgate.spark.task_main", "epochgate.spark.ingest.program")


def main() -> None:
    """Import what tasks need, and serve as Spark's daemon until Spark ends it."""
    from pyspark import daemon

    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()  # pages that no collection writes to stay shared with the workers
    daemon.manager()


if __name__ == "__main__":
    main()
