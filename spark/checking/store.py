"""The states of one partition: a search of one machine whose successors may belong elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import numpy as np

from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.llvm_target import LlvmTarget
from epochgate.fsm.checker.engines import kernels as k
from epochgate.fsm.checker.engines.compiled import ADMITTED_MAX, CompiledSearch
from epochgate.fsm.checker.engines.functions import NO_KEY, Worker, address
from epochgate.fsm.checker.engines.memory import Region
from epochgate.fsm.checker.engines.partition_kernels import SENT_SHIFT
from epochgate.fsm.checker.engines.search import Finding, Stopped
from epochgate.fsm.checker.engines.ways import leading
from epochgate.fsm.checker.memory_limit import LEAST_FREE_BYTES, USABLE_SHARE, free_bytes
from epochgate.spark.checking.code import Code, Compiled

BOX_BYTES: Final = 1 << 20
"""States that travel together to another partition have this size, or that of a few fanouts."""
LOOK_EVERY_S: Final = 0.1
UNLIMITED: Final = 1 << 40
"""The limit is what is free on the host."""
Send = Callable[[int, Any], None]


def send_nothing(_partition: int, _states: Any) -> None:
    """Take what has been sent already."""


class Store(CompiledSearch):
    """The search of partition `own` of `parts`."""

    def __init__(self, code: Code, compiled: Compiled, own: int, parts: int) -> None:
        # They have as much of a program and of a target as a search looks at.
        super().__init__(cast(Program, code), cast(LlvmTarget, compiled), 1, UNLIMITED, 0)
        self._spread = compiled.spread
        self._own, self._parts = own, parts
        self._send: Send = send_nothing
        self._box = max(BOX_BYTES // code.state_bytes, 4 * code.fanout)
        self._boxes = Region(parts * self._box * code.words, np.int64)
        self._posted = np.zeros(parts, np.int64)
        self._sent = np.full(code.words << 64 - SENT_SHIFT, -1, np.int64)
        self.level: list[Any] = []
        self.next: list[Any] = []
        """The keys of the level that is expanded, and of the one that is made."""
        self._looked_for: list[Any] = []
        self._looked_at = 0.0
        self._free = self._had = 0
        """Bytes that were free on the host, and that this partition had, at that time."""

    @property
    def worker(self) -> Worker:
        return self.workers[0]

    # Memory

    @property
    def spare_bytes(self) -> int:
        """A share of what is free on the host, which is looked at ten times a second."""
        self._look()
        return max(0, int(self._free * USABLE_SHARE) + self._had - self.memory_bytes)

    def require_memory(self) -> None:
        """Raise Stopped before the system ends a process of this host."""
        self._look()
        if self._free < LEAST_FREE_BYTES:
            raise self.out_of_memory()

    def _look(self) -> None:
        now = time.monotonic()
        if now > self._looked_at + LOOK_EVERY_S:
            self._looked_at, self._free, self._had = now, free_bytes(), self.memory_bytes

    def out_of_memory(self) -> Stopped:
        return Stopped(
            f"{free_bytes() >> 20} MiB of memory are left on a host, and a partition there with "
            f"{self.states:,} states needs more: give more hosts or memory"
        )

    def live(self) -> Iterator[Any]:
        yield from self.level
        yield from self.next
        yield from self._looked_for
        yield from self.worker.listed()

    # Levels

    def spread(self, depth: int, send: Send) -> Finding | None:
        """Expand the level, as if that had not begun before, and give what belongs elsewhere to
        `send`; what a level's expansion has entered stays entered.
        """
        self.depth, self._send = depth, send
        status = self.worker.status
        status[[k.TRANSITIONS, k.STUCK, k.LEFT_OUT]] = 0
        status[[k.FAULT, k.STEP]] = -1
        self.worker.filled[:] = self._posted[:] = 0
        self.worker.recent[:] = self._sent[:] = NO_KEY
        found = self.expand(self.level, self.require_memory)
        if isinstance(found, Finding):
            return found
        self.next += found
        self._send_boxes(1)
        return None

    def _gather(self, worker: Worker, part: Any) -> int:
        at, values = worker.at, self.values
        return self._spread(
            address(part),
            *values.arguments,
            values.slots.address,
            at["status"],
            at["scratch"],
            at["out"],
            at["act"],
            at["recent"],
            worker.boxes.address,
            worker.box,
            at["filled"],
            self.fanout,
            at["covered"],
            address(self._sent),
            self._own,
            self._parts,
            self._boxes.address,
            self._box,
            address(self._posted),
        )

    def _receive(self, worker: Worker) -> None:
        super()._receive(worker)
        self._send_boxes(self._box // 2)

    def _send_boxes(self, least: int) -> None:
        width = self.program.words
        for part in np.flatnonzero(self._posted >= least):
            start = int(part) * self._box * width
            self._send(
                int(part), self._boxes.array[start : start + int(self._posted[part]) * width]
            )
            self._posted[part] = 0

    def arrive(self, states: Any, depth: int) -> None:
        """Enter packed states that were sent here."""
        self.depth = depth
        self.hold_level(depth)
        step = ADMITTED_MAX * self.program.words
        for first in range(0, len(states), step):
            keys = self.admitted(states[first : first + step])
            self.enter(self.worker, address(keys), len(keys))

    def closed(self) -> list[Any]:
        """The keys of the next level, which is complete."""
        self.next += self._close_level()
        return self.next

    def go_on(self) -> None:
        """Take the next level for the one to expand."""
        self.level, self.next, self.expanding = self.next, [], []

    def predecessors(self, states: Any, wanted: Any) -> Any:
        """The words of those packed states that lead to the wanted one."""
        step = ADMITTED_MAX * self.program.words
        try:
            for first in range(0, len(states), step):
                self._looked_for.append(self.admitted(states[first : first + step]))
            goal = self.admitted(wanted)
            self._looked_for.append(goal)
            # Spelled at once, since the next ones may give all states other keys.
            found = (self.spelled(leading(self, keys, goal)) for keys in self._looked_for[:-1])
            return np.concatenate([wanted[:0], *found])
        finally:
            self._looked_for = []
