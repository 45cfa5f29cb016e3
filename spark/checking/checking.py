"""Checks a closed system on a Spark cluster: the verdict and the counts of one machine."""

from __future__ import annotations

import dataclasses
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from epochgate.fsm.checker.budget import Progress
from epochgate.fsm.checker.checking import CannotCheck, check
from epochgate.fsm.checker.engines.choice import Setting
from epochgate.fsm.checker.engines.search import Search
from epochgate.fsm.checker.result import Result
from epochgate.fsm.checker.resuming import identity
from epochgate.fsm.claims import WITHOUT_END
from epochgate.fsm.closed import ClosedSystem
from epochgate.spark.checking.code import code_of
from epochgate.spark.checking.levels import SearchDirectory
from epochgate.spark.checking.search import ClusterSearch
from epochgate.spark.session import validate_session

SETTINGS = {
    # States are packed already; and what is moved once is not worth the time to compress it.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.broadcast.compress": "false",
    # The code of a system is compiled, and stores are mapped, once for each worker.
    "spark.python.worker.reuse": "true",
}
"""Of a session that is made for a search."""
UNLIMITED = 1 << 62
ON_ONE_MACHINE = {"implements": "compares every step with a specification"}


def check_on_spark(
    spark: Any,
    system: ClosedSystem | type[ClosedSystem],
    *,
    directory: Path | str | None = None,
    symmetry: bool | str = False,
    partial_order: bool = False,
    max_states: int | None = None,
    max_memory: int | None = None,
    max_seconds: float | None = None,
    max_depth: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Explore a closed system in the tasks of a Spark session, and return what was found.

    There are as many partitions as the session has cores. `directory`, which all hosts must see at
    the same path, gets the levels of the search, and a later call goes on from it; only a session
    on this machine can do without. `max_memory` is of all hosts together, in bytes. Other arguments
    are those of `check`. Raises what `check` raises, SearchFailed, and what `validate_session`
    raises.
    """
    made = system if isinstance(system, ClosedSystem) else system()
    validate_session(spark)
    context = spark.sparkContext
    require_suited(made, directory, context.master)
    with ExitStack() as ending:
        is_kept = directory is not None
        if directory is None:
            directory = ending.enter_context(
                tempfile.TemporaryDirectory(prefix="epochgate-levels-")
            )
        place = Path(directory)

        def make(setting: Setting) -> Search:
            program = setting.program
            bits = {name: 1 << bit for bit, name in enumerate(program.properties)}
            always = (p for p in made.properties() if p.kind == "always")
            name, cores = type(made).__name__, context.defaultParallelism
            files = SearchDirectory(place, identity(program, made.properties()), name, cores)
            ending.callback(files.close)
            demanded = sum(bits[claim.name] for claim in always)
            code = code_of(program, setting.final)
            search = ClusterSearch(context, program, code, files, demanded, is_kept=is_kept)
            ending.callback(search.forget)
            return search

        result = check(
            made,
            symmetry=symmetry,
            partial_order=partial_order,
            max_states=max_states,
            max_memory=UNLIMITED if max_memory is None else max_memory,
            max_seconds=max_seconds,
            max_depth=max_depth,
            progress=progress,
            make_search=make,
        )
    return dataclasses.replace(result, engine="spark", workers=context.defaultParallelism)


def require_suited(system: ClosedSystem, directory: Path | str | None, master: str) -> None:
    """Raise CannotCheck for what is searched on one machine alone, or needs a directory."""
    alone = {**dict.fromkeys(WITHOUT_END, "is about runs without end"), **ON_ONE_MACHINE}
    for declared in system.properties():
        if declared.kind in alone:
            raise CannotCheck(
                f"{declared.claim!r} {alone[declared.kind]}, which is looked at on one machine; "
                f"check the system without a Spark master"
            )
    if directory is None and not master.startswith("local"):
        raise CannotCheck(
            f"a search on {master} needs a directory that all hosts see, for what a lost executor "
            f"had: --resume DIR (directory in Python)"
        )
