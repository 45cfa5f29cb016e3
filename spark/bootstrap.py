"""The first code of a task: it makes the shipped package importable, then hands over to it.

Runs in a Spark Python worker that may not have the package. It is therefore a nested function,
which cloudpickle sends by value, and names nothing of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def task_function(settings: dict[str, Any]) -> Callable[[int, Iterator[Any]], Iterator[Any]]:
    """Return what Spark runs for each partition; `settings` are those of `task_main.run_task`.

    The task raises what `run_task` raises, and ImportError naming what the executor lacks.
    """

    def run(subtask: int, rows: Iterator[Any]) -> Iterator[Any]:
        import importlib.util
        import sys

        from pyspark import SparkFiles, TaskContext

        archive = SparkFiles.get(settings["archive"])
        if archive not in sys.path:
            sys.path.insert(0, archive)
            importlib.invalidate_caches()
        carried = archive + "/" + settings["carried_folder"]
        lacking = [name for name in settings["carried"] if importlib.util.find_spec(name) is None]
        if lacking and carried not in sys.path:
            sys.path.append(carried)
            importlib.invalidate_caches()
        lacking = [name for name in lacking if importlib.util.find_spec(name) is None]
        if lacking:
            raise ImportError(
                f"the Python of this executor ({sys.executable}) lacks the packages {lacking}, and "
                "the driver has no pure Python copy to send; install them there"
            )
        from epochgate.spark.task_main import run_task

        context = TaskContext.get()
        assert context is not None
        # 0 stands for "no process" on the driver, and Spark counts from 0.
        run_task(settings, subtask=subtask, identity=context.taskAttemptId() + 1)
        return iter(())

    return run
