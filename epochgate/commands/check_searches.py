"""The place where `epochgate check` searches: this process, or the tasks of a Spark session."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from epochgate.errors import UsageError

if TYPE_CHECKING:
    from epochgate.fsm.checker import Result
    from epochgate.fsm.checker.budget import Progress
    from epochgate.fsm.closed import ClosedSystem

    Search = Callable[[ClosedSystem, Progress], Result]

NOT_ON_SPARK = {
    "depth_first": "--depth-first",
    "engine": "--engine",
    "optimise_from": "--optimise-from",
    "spill": "--spill",
}
"""Options that are about a search in one process."""


@contextmanager
def searches(
    arguments: argparse.Namespace, systems: Iterable[type[ClosedSystem]]
) -> Iterator[Search]:
    """Give what searches through a system; a Spark session lasts as long as the block."""
    if arguments.master is None:
        yield partial(_in_this_process, arguments)
        return
    refused = [flag for name, flag in NOT_ON_SPARK.items() if getattr(arguments, name)]
    refused += ["--workers"] if arguments.workers != 1 else []
    if refused:
        raise UsageError(
            f"{', '.join(refused)}: this is about a search in one process, and --master "
            f"{arguments.master} searches breadth-first, in machine code, on all cores of the "
            f"session; leave out one or the other"
        )
    from epochgate.spark.checking import SETTINGS, require_suited
    from epochgate.spark.session import local_session

    for system in systems:
        require_suited(system(**dict(arguments.set)), arguments.resume, arguments.master)
    with local_session(arguments.master, settings=SETTINGS) as spark:
        yield partial(_on_spark, arguments, spark)


def _budgets(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "symmetry": arguments.symmetry,
        "partial_order": arguments.partial_order,
        "max_states": arguments.max_states,
        "max_memory": arguments.max_memory,
        "max_depth": arguments.max_depth,
        "max_seconds": arguments.max_seconds,
    }


def _in_this_process(
    arguments: argparse.Namespace, system: ClosedSystem, progress: Progress
) -> Result:
    from epochgate.fsm.checker import check, check_inductive, simulate

    if arguments.inductive is not None:
        return check_inductive(
            system,
            arguments.inductive,
            lemmas=arguments.lemmas,
            depth=arguments.depth or 1,
            without_faults=arguments.without_faults,
            max_seconds=arguments.max_seconds,
        )
    if arguments.simulate is not None:
        return simulate(
            system,
            steps=arguments.simulate,
            seed=arguments.seed,
            engine=arguments.engine,
            workers=arguments.workers,
            max_seconds=arguments.max_seconds,
        )
    return check(
        system,
        engine=arguments.engine,
        workers=arguments.workers,
        order="depth" if arguments.depth_first else "breadth",
        optimise_from=arguments.optimise_from,
        resume=arguments.resume,
        spill=arguments.spill,
        progress=progress,
        **_budgets(arguments),
    )


def _on_spark(
    arguments: argparse.Namespace, spark: Any, system: ClosedSystem, progress: Progress
) -> Result:
    from epochgate.spark.checking import check_on_spark

    return check_on_spark(
        spark, system, directory=arguments.resume, progress=progress, **_budgets(arguments)
    )
