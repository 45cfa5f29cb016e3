"""A driver process that kills itself (-9) at a named step on the disk; run by test_killed_driver.

python -m tests.spark.ingest.killed_driver SOURCE TARGET [OPERATION NAME WHEN]

Files whose rows are committed are moved into the folder `archive` beside the source, if there is
one; the operation `remove` is such a move.
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
from epochgate.spark.files.taken import TakenFile
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.ingest.plan import plan_ingest
from epochgate.spark.ingest.removing import Removal
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


def kill_at_removal(name: str, when: str) -> None:
    """Let the process die before or after the removal of a file of that name."""
    remove = Removal.remove

    def removed(removal: Removal, record: TakenFile) -> bool:
        is_it = fnmatch.fnmatch(os.path.basename(record.path), name)
        if is_it and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        is_removed = remove(removal, record)
        if is_it:
            os.kill(os.getpid(), signal.SIGKILL)
        return is_removed

    Removal.remove = removed  # type: ignore[method-assign, assignment]  # in this process alone


def main(source: str, target: str, *step: str) -> None:
    """Ingest to the end, or to the step."""
    archive = os.path.join(os.path.dirname(source), "archive")
    options = IngestOptions(
        source,
        target,
        parallelism=2,
        checkpoint_every_s=0.2,
        rows_per_second=4000,
        committed_files=f"move:{archive}" if os.path.isdir(archive) else None,
    )
    is_on_disk = bool(step) and step[0] != "remove"
    if step and not is_on_disk:
        kill_at_removal(*step[1:])
    plan = plan_ingest(options, files=DeadlyFileSystem(*step) if is_on_disk else None)
    # Tasks have a disk of their own.
    plan.program_factory = replace(plan.program_factory, sink=ParquetSink(options.target_path))
    with local_session("local[2]") as spark, start_plan(spark, plan) as handle:
        result = handle.wait()
        sys.stdout.write(f"{result.state} from {result.resumed_from}: {result.reason}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
