"""A search whose states lie on a Spark cluster, as the checker knows searches.

A level is one Spark job of two stages: the tasks of the first spread their partitions' states of
the level, Spark's shuffle carries what belongs elsewhere, and the tasks of the second settle it.
Between jobs everything that counts lies in the directory of the search. A partition's tasks prefer
the host that has its store: a cached, empty RDD of the same partitioning anchors it there. On the
driver; a job runs on a thread of its own, so that budgets and progress go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final, NoReturn

import numpy as np

from epochgate.exit_codes import RunFailed
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.engines.search import (
    Finding,
    Level,
    Pause,
    Search,
    Stopped,
    Words,
    distinct,
)
from epochgate.spark.bootstrap import with_package
from epochgate.spark.checking.code import Code, owner
from epochgate.spark.checking.levels import Manifest, Part, SearchDirectory
from epochgate.spark.resident_job import telling_line
from epochgate.spark.shipping import CARRIED, CARRIED_FOLDER, ship

NEEDED: Final = (*CARRIED, "numpy", "llvmlite")
"""Packages that an executor's Python must have; the pure ones among them are sent."""
GROUP: Final = "check-of-a-system"
LOOK_EVERY_S: Final = 0.1
CANCEL_PATIENCE_S: Final = 30.0
"""The time that a canceled job may take to end."""
TASKS: Final = "epochgate.spark.checking.tasks"


class SearchFailed(RunFailed):
    """A Spark job of the search has failed; what is kept of the search ends before its level."""


@dataclass
class _Job:
    """The outcome of one Spark job."""

    results: list[Any] | None = None
    error: Exception | None = None


class ClusterSearch(Search):
    """Explores in the partitions of `directory`, and goes on from what is there; `is_kept` tells
    whether the directory outlives the search.
    """

    def __init__(
        self,
        context: Any,
        program: Program,
        code: Code,
        directory: SearchDirectory,
        demanded: int,
        *,
        is_kept: bool,
    ) -> None:
        self._is_kept = is_kept
        self._context, self._program, self._directory = context, program, directory
        self._demanded, self._parts = demanded, directory.parts
        self._settings = {
            "archive": ship(context),
            "carried": NEEDED,
            "carried_folder": CARRIED_FOLDER,
            "code": context.broadcast(asdict(code)),
            "directory": str(directory.path.absolute()),
            "token": directory.token,
            "parts": self._parts,
            "demanded": demanded,
            # Then Spark's shuffle carries names, and the states stay in shared memory.
            "is_one_host": context.master.startswith("local"),
        }
        # The hash of a small number is the number, so that keys name partitions.
        self._anchor = context.parallelize([], self._parts).partitionBy(self._parts).persist()
        self.begun_at = max(0, len(directory.levels) - 1)
        self._rows: set[int] = set()
        self._pending: Manifest | None = None
        """The newest level, which is completed once it was examined."""
        self._examined: Finding | None = None
        self._states = self._memory = 0
        self._known: list[tuple[int, Words]] = []
        """States that were read, with their levels."""

    @property
    def states(self) -> int:
        return self._states

    @property
    def memory_bytes(self) -> int:
        return self._memory

    # Levels

    def begin(self, initial: Iterable[Words]) -> Level:
        levels = self._directory.levels
        if levels:
            last = levels[-1]
            self.recount(last.transitions, last.terminal, last.held, last.left_out)
            self._rows = set(last.rows)
            self._states = sum(level.states for level in levels)
            self.expanded = self._states - last.states
            return [range(self.expanded, self._states)]
        packed = [
            (owner(words, self._parts), np.array(words, np.int64).tobytes())
            for words in distinct(self._program, initial)
        ]
        self._fold(-1, self._settled(-1, self._context.parallelize(packed, 1), None))
        return [range(self._states)]

    def expand(self, level: Level, pause: Pause) -> Finding | Level:
        pause()
        if self._pending is not None:
            self._directory.add(self._pending)
            self._pending = None
        number, before = len(self._directory.levels) - 1, self._states
        spread = self._anchor.mapPartitionsWithIndex(self._task("spread_partition", number))
        found = self._fold(number, self._settled(number, spread, pause))
        if found is not None:
            return found
        self.expanded = before
        return [range(before, self._states)] if self._states > before else []

    def examine(
        self, level: Iterable[Sequence[int]], demanded: int, pause: Pause
    ) -> Finding | None:
        if demanded != self._demanded:
            raise ValueError(f"examined for {self._demanded:#b}, and asked for {demanded:#b}")
        return self._examined

    def _task(self, name: str, level: int, **more: Any) -> Any:
        return with_package({**self._settings, "level": level, **more}, f"{TASKS}:{name}")

    def _settled(self, level: int, rows: Any, pause: Pause | None) -> list[dict[str, Any]]:
        """Send rows to the partitions of their keys, and close the next level there."""
        arrived = rows.partitionBy(self._parts).union(self._anchor)
        settled = arrived.mapPartitionsWithIndex(self._task("settle_partition", level))
        return self._collected(settled, f"level {level + 1}", pause)

    def _fold(self, level: int, results: list[dict[str, Any]]) -> Finding | None:
        """Count what a level's tasks have counted; the first violation in one of its steps."""
        for result in results:
            if result.get("full"):
                raise Stopped(result["full"])
        results = sorted(results, key=lambda result: int(result["partition"]))
        self.transitions += sum(result.get("transitions", 0) for result in results)
        self.terminal_states += sum(result.get("terminal", 0) for result in results)
        self.left_out += sum(result.get("left_out", 0) for result in results)
        self._memory = sum(result["memory"] for result in results)
        self._rows.update(row for result in results for row in result.get("rows", ()))
        for result in results:
            self.held |= result["held"]
        if (found := self._first(level, [r.get("finding") for r in results])) is not None:
            return found
        self._examined = self._first(level + 1, [result["examined"] for result in results])
        parts = tuple(Part(*result["part"]) for result in results)
        rows, counted = tuple(sorted(self._rows)), (self.transitions, self.terminal_states)
        self._pending = Manifest(parts, *counted, self.held, self.left_out, rows)
        self._states += self._pending.states
        return None

    def _first(self, level: int, findings: list[dict[str, Any] | None]) -> Finding | None:
        """Of the violations that the partitions have found, always the same one."""
        found = min(
            (each for each in findings if each is not None),
            key=lambda each: (each["words"], each["fault"]),
            default=None,
        )
        if found is None:
            return None
        number = self._enter(level, tuple(found["words"]))
        return Finding(number, found["fault"], found.get("step"), found.get("held", 0))

    def _enter(self, level: int, words: Words) -> int:
        self._known.append((level, words))
        return len(self._known) - 1

    # Jobs

    def _collected(self, rows: Any, what: str, pause: Pause | None = None) -> list[Any]:
        from pyspark import InheritableThread

        job = _Job()

        def run() -> None:
            try:
                self._context.setJobGroup(GROUP, what)
                job.results = rows.collect()
            except Exception as error:  # noqa: BLE001  # raised on the caller's thread
                job.error = error

        thread = InheritableThread(target=run, name="epochgate-check", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(LOOK_EVERY_S)
                if pause is not None:
                    pause()
        except BaseException:
            self._context.cancelJobGroup(GROUP)
            thread.join(CANCEL_PATIENCE_S)
            raise
        if job.results is None:
            raise SearchFailed(
                f"{what} of the search failed: {telling_line(_message(job.error))}\n"
                + (
                    f"--resume {self._directory.path} goes on from the level before"
                    if self._is_kept
                    else "nothing of it is kept; give a directory with --resume DIR"
                )
            ) from job.error
        return job.results

    def forget(self) -> None:
        """Give the memory of all hosts back."""
        with suppress(SearchFailed):
            tasks = self._anchor.mapPartitionsWithIndex(self._task("forget_partition", 0))
            self._collected(tasks, "the end")

    # Reading

    def words(self, state: int) -> Words:
        return self._known[state][1]

    @property
    def initial(self) -> NoReturn:
        raise NotImplementedError("the levels are in the directory of the search")

    def everything(self) -> NoReturn:
        raise NotImplementedError("the levels are in the directory of the search")

    def chain(self, state: int) -> list[int]:
        found = [state]
        while (before := self._parent(found[-1])) != found[-1]:
            found.append(before)
        return found[::-1]

    def _parent(self, state: int) -> int:
        level, words = self._known[state]
        if level == 0:
            return state
        task = self._task("precede_partition", level - 1, wanted=list(words))
        found = self._collected(self._anchor.mapPartitionsWithIndex(task), "the way back")
        return self._enter(level - 1, tuple(min(found)))

    def covered(self) -> set[int]:
        return self._rows

    def descend(self, pause: Pause) -> NoReturn:
        raise NotImplementedError("a search in levels has no depth-first order")

    def saved(self, level: Level) -> NoReturn:
        raise NotImplementedError("the levels are in the directory of the search")

    def restore(self, states: Iterable[bytes], rows: set[int]) -> NoReturn:
        raise NotImplementedError("the levels are in the directory of the search")


def _message(error: Exception | None) -> str:
    java = getattr(error, "java_exception", None)
    return str(error if java is None else java.getMessage())
