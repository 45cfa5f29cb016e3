"""The work of a search in one partition: spread a level, settle the next, look back.

To spread is to expand the partition's states of a level: successors that belong to it are entered
at once, and those of others are sent. To settle is to enter what has come, examine the new states,
and write them. Both give the same result however often they are run, on whichever host: a store
that does not hold the level before is made again from the files of the levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from epochgate.fsm.checker.engines import kernels as k
from epochgate.fsm.checker.engines.search import Finding, Stopped
from epochgate.spark.checking.code import Code, Compiled
from epochgate.spark.checking.folder import Folder
from epochgate.spark.checking.levels import completed, read_part, write_part
from epochgate.spark.checking.store import Store, send_nothing

Settings = Mapping[str, Any]
Give = Callable[[Any], None]
NOTHING = 0
"""The tag of a store without states."""


class Partition:
    """One partition, in the process that keeps it."""

    def __init__(self, settings: Settings, number: int, code: Code, folder: Folder) -> None:
        self.number, self._code, self._folder = number, code, folder
        self._parts, self._demanded = int(settings["parts"]), int(settings["demanded"])
        self._directory, self._token = Path(settings["directory"]), str(settings["token"])
        self._is_one_host = bool(settings["is_one_host"])
        self._compiled = Compiled(code.text)
        self._reset()

    def answer(self, request: Mapping[str, Any], rows: Iterator[Any], give: Give) -> None:
        """Do what a task asks for, and give it the rows of its result."""
        level = int(request["level"])
        if request["do"] == "spread":
            for _ in rows:
                pass
            self._spread(level, give)
        elif request["do"] == "settle":
            give(self._settled(level, rows))
        elif (found := self._predecessor(level, request["wanted"])) is not None:
            give(found)

    def _reset(self) -> None:
        self.store = Store(self._code, self._compiled, self.number, self._parts)
        self._tag, self._spread_level = NOTHING, -1

    def _go_to(self, level: int) -> None:
        """Have the states of the levels up to this one, and no further."""
        newest = completed(self._directory, self._token, level, level)
        tag = newest[0].parts[self.number].tag if newest else NOTHING
        if self._tag == tag:
            return
        self._reset()
        for number, complete in enumerate(completed(self._directory, self._token, 0, level)):
            part = complete.parts[self.number]
            states = read_part(self._directory, number, self.number, part, self._code.words)
            self.store.arrive(states, number)
            self.store.closed()
            self.store.go_on()
        self._tag = tag

    def _spread(self, level: int, give: Give) -> None:
        def send(to: int, states: Any) -> None:
            give((to, self._sent(level, states)))

        self._folder.forget_before(level, self.number)
        try:
            self._go_to(level)
            report = self._expanded(level, send)
        except Stopped as reason:
            self._tag = -1
            report = {"full": str(reason)}
        give((self.number, report))

    def _sent(self, level: int, states: Any) -> bytes | str:
        if not self._is_one_host:
            return bytes(states.tobytes())
        return self._folder.put(level, self.number, states)

    def _expanded(self, level: int, send: Callable[[int, Any], None]) -> dict[str, Any]:
        store, status = self.store, self.store.worker.status
        found, finding = store.spread(level, send), None
        if found is not None:
            step = found.step if status[k.FAULT] >= 0 else None
            finding = {"words": store.words(found.state), "fault": found.fault, "step": step}
        self._spread_level = level
        return {
            "transitions": int(status[k.TRANSITIONS]),
            "terminal": int(status[k.STUCK]),
            "left_out": int(status[k.LEFT_OUT]),
            "rows": sorted(store.covered()),
            "finding": finding,
        }

    def _settled(self, level: int, rows: Iterator[Any]) -> dict[str, Any]:
        report: dict[str, Any] = {}
        try:
            self._go_to(level)
            if self._spread_level != level and level >= 0:
                self._expanded(level, send_nothing)
            for row in rows:
                if isinstance(row, dict):
                    report = row
                else:
                    states = self._folder.get(row) if isinstance(row, str) else row
                    self.store.arrive(np.frombuffer(states, np.int64), level + 1)
            return {**report, "partition": self.number, **self._closed(level + 1)}
        except Stopped as reason:
            self._tag = -1
            return {"partition": self.number, "full": str(reason)}

    def _closed(self, level: int) -> dict[str, Any]:
        """Examine and write a level that is complete."""
        store = self.store
        states, finding = store.closed(), None
        store.held = 0
        found = store.examine(states, self._demanded, store.require_memory)
        if isinstance(found, Finding):
            words = store.words(found.state)
            finding = {"words": words, "fault": found.fault, "held": found.held}
        self._tag = -1
        pieces = store.saved(states)
        part = write_part(self._directory, level, self.number, pieces, self._code.state_bytes)
        store.go_on()
        self._tag = part.tag
        return {
            "part": (part.tag, part.states, part.crc),
            "held": store.held,
            "examined": finding,
            "memory": store.memory_bytes,
        }

    def _predecessor(self, level: int, wanted: list[int]) -> list[int] | None:
        """A state of the level, as its file has them, that leads to the wanted one."""
        [complete] = completed(self._directory, self._token, level, level)
        part, width = complete.parts[self.number], self._code.words
        states = read_part(self._directory, level, self.number, part, width)
        found = self.store.predecessors(states, np.array(wanted, np.int64))
        return min(found.reshape(-1, width).tolist(), default=None)
