"""The mechanism as Flink has it now, closed: what passes within its assumptions.

N subtasks, K checkpoints, E events for each subtask, F lost task managers; `concurrent` checkpoints
may be pending at once. The hazards are in `epochgate.models.studies.flink.hazards`.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm.closed import ClosedSystem, Step, sometimes, terminal
from epochgate.fsm.system import machines
from epochgate.models.studies.flink.gateway import OPEN, Gateway
from epochgate.models.studies.flink.holder import Holder, MainThread, Snapshot
from epochgate.models.studies.flink.pending import COMPLETED, Pending, Requests
from epochgate.models.studies.flink.task import Faults, Sender, Task


class Flink(ClosedSystem):
    """Flink 2.3.0: one coordinator, its holder, and the checkpoint coordinator."""

    IS_SEPARATED = False  # a design that does not run, written before effects
    INDEX_SETS: ClassVar[dict[str, str]] = {"subtask": "N", "attempt": "A", "checkpoint": "K"}
    CONSTANTS: ClassVar[dict[str, int]] = {
        "N": 2,
        "K": 2,
        "E": 1,
        "F": 1,
        "refusals": 1,
        "periodic": 1,
        "savepoints": 0,
        "concurrent": 2,
        "calls": 12,
    }
    DERIVED: ClassVar[dict[str, str]] = {
        "A": "F + 1",
        "attempts": "F",
        "event": "E - 1",
        "future": "K + 1",
        "barrier": "K - 1",
        "message": "E + K - 1",
        "wire": "E + K",
        "call": "14 * max(N * (F + 1) * E, N * K) - 1",
    }
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("main", "run"),
        Step("sender", "send"),
        Step("pending", "begin"),
        Step("pending", "ask_coordinators"),
        Step("snapshot", "future"),
        Step("pending", "inject"),
        Step("task", "deliver"),
        Step("snapshot", "refuse", is_fair=False),
        Step("task", "vanish", is_fair=False),
        Step("task", "detect"),
        Step("task", "back_off"),
        Step("task", "deploy"),
    )

    N: int
    A: int
    K: int
    E: int
    F: int
    refusals: int
    periodic: int
    savepoints: int
    concurrent: int
    calls: int

    main: MainThread = machines(MainThread)
    holder: Holder = machines(Holder)
    gateway: dict[tuple[int, int], Gateway] = machines(Gateway)
    snapshot: list[Snapshot] = machines(Snapshot)
    pending: list[Pending] = machines(Pending)
    requests: Requests = machines(Requests)
    sender: list[Sender] = machines(Sender)
    task: list[Task] = machines(Task)
    faults: Faults = machines(Faults)

    @sometimes("a closed gateway holds an event")
    def holds_an_event(self) -> bool:
        return not self.gateway[0, 0].held[0].empty()

    @sometimes("a checkpoint with an event in it completes")
    def completes_with_an_event(self) -> bool:
        return self.pending[0].state == COMPLETED and self.sender[0].snapshot[0] > 0

    @sometimes("a checkpoint completes after a subtask has come back")
    def completes_after_a_restart(self) -> bool:
        return self.pending[self.K - 1].state == COMPLETED and self.task[0].attempt > 0

    @terminal("I4, I5 and I6: no future is undecided, no gateway closed, no checkpoint pending")
    def is_quiet(self) -> bool:
        return not any(self.pending[k].is_pending() for k in range(self.K)) and all(
            self.is_quiet_at(s) for s in range(self.N)
        )

    def is_quiet_at(self, s: int) -> bool:
        return self.gateway[s, self.holder.current[s]].state == OPEN and not any(
            self.gateway[s, a].has_undecided() for a in range(self.A)
        )
