"""The first code of a task: it makes the shipped package importable, then hands over to it.

Runs in a Spark Python worker that may not have the package. It is therefore a nested function,
which cloudpickle sends by value, and names nothing of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochgate.spark.task_settings import ShippedSettings

Work = Callable[[int, Iterator[Any]], Iterator[Any]]
"""What Spark runs for each partition, given its number and its rows."""


def task_function(settings: ShippedSettings) -> Work:
    """Return the resident task; `settings` are those of `task_main.run_task`, and where the package
    is. The task raises what `run_task` raises, and ImportError naming what the executor lacks.
    """
    return with_package(settings, "epochgate.spark.task_main:run_partition")


def with_package(settings: Mapping[str, Any], entry: str) -> Work:
    """Return what makes the package importable and then runs `entry`, a "module:function" of it
    that takes the settings, the partition's number and its rows.

    `settings` have "archive", what `ship` gave, "carried" and "carried_folder".
    """

    def run(partition: int, rows: Iterator[Any]) -> Iterator[Any]:
        import importlib.util
        import sys

        from pyspark import SparkFiles

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
        module, _, name = entry.partition(":")
        result: Iterator[Any] = getattr(importlib.import_module(module), name)(
            settings, partition, rows
        )
        return result

    return run
