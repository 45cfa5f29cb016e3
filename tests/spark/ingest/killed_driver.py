"""A driver process that kills itself (-9) at a named step on the disk; run by test_killed_driver.

python -m tests.spark.ingest.killed_driver SOURCE TARGET [OPERATION NAME WHEN]
"""

from __future__ import annotations

import fnmatch
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace

from epochgate.runtime.filesystem import AnyPath, LocalFileSystem
from epochgate.runtime.testing.faulty_filesystem import FaultyFileSystem
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.plan import plan_ingest
from epochgate.spark.ingest.run import start_plan
from epochgate.spark.parquet_sink import ParquetSink
from epochgate.spark.session import local_session


class DeadlyFileSystem(FaultyFileSystem):
    """Kills its process before or after the first operation on a file of that name."""

    def __init__(self, operation: str, name: str, when: str) -> None:
        super().__init__(LocalFileSystem())
        self._operation, self._name, self._when = operation, name, when

    def mutate(
        self,
        name: str,
        path: AnyPath,
        whole: Callable[[], None],
        half: Callable[[], None] | None = None,
    ) -> None:
        is_it = name == self._operation and fnmatch.fnmatch(os.path.basename(path), self._name)
        if is_it and self._when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        super().mutate(name, path, whole, half)
        if is_it:
            os.kill(os.getpid(), signal.SIGKILL)


def main(source: str, target: str, *step: str) -> None:
    """Ingest to the end, or to the step."""
    options = IngestOptions(
        source, target, parallelism=2, checkpoint_every_s=0.2, rows_per_second=4000
    )
    plan = plan_ingest(options, files=DeadlyFileSystem(*step) if step else None)
    # Tasks have a disk of their own.
    plan.program_factory = replace(plan.program_factory, sink=ParquetSink(options.target_path))
    with local_session("local[2]") as spark, start_plan(spark, plan) as handle:
        result = handle.wait()
        sys.stdout.write(f"{result.state} from {result.resumed_from}: {result.reason}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
