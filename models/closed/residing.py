"""A closed system around the processes of one subtask: each identity is newer than those before it,
and no attempt begins beside what another has left.

Spark starts one task after the other, the next one also while a process of the last still lives,
which it has lost sight of. Operators raise, all subtasks are taken back, checkpoints complete,
attempts leave something behind, and processes are killed at any moment::

    task 1   attempts 1, 2 ------ lost sight of ------ attempt 3 is refused
    task 2                          attempt 1 speaks -------------------------

`Resident` is the machine that runs in production. The driver has the rule of `Attempt` here, that
the newest identity speaks; what it does besides is checked in the closed systems of the job.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes
from epochgate.models.closed.surroundings.residing import (
    GONE,
    REPLACED,
    Driver,
    Process,
    TaskResident,
)
from epochgate.models.resident import ATTEMPTING, CLEARING, FINISHED, LEFT

FAILURES_HERE_MAX = 2
"""In one process, without a completed checkpoint between them."""


class ResidentTask(ClosedSystem):
    """A subtask whose attempts share processes: one speaks, and none inherits leftovers."""

    CONSTANTS: ClassVar[dict[str, int]] = {"tasks": 3, "attempts": 4, "F": 4}
    DERIVED: ClassVar[dict[str, str]] = {"identities": "tasks * attempts"}
    INDEX_SETS: ClassVar[dict[str, str]] = {"task": "tasks"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("process", "launch"),
        Step("process", "fail", is_fair=False),
        Step("process", "take_back", is_fair=False),
        Step("process", "complete", is_fair=False),
        Step("process", "finish", is_fair=False),
        Step("process", "tidy"),
        Step("process", "litter", is_fair=False),
        Step("process", "expire", is_fair=False),
        Step("process", "die", is_fair=False),
        Step("driver", "lose_sight", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"resident.process": "process"}

    tasks: int
    attempts: int
    identities: int
    F: int

    resident: list[TaskResident] = machines(TaskResident)
    process: list[Process] = machines(Process)
    driver: Driver = machines(Driver)

    @always("no attempt begins in a process in which something of another is left")
    def begins_clean(self) -> bool:
        return all(
            not self.process[t].is_littered or self.resident[t].state == LEFT
            for t in range(self.tasks)
        )

    @always(
        "what failed twice in one process without a checkpoint between them is tried in another"
    )
    def gives_up_processes(self) -> bool:
        return all(
            self.process[t].failures < FAILURES_HERE_MAX
            or self.resident[t].state == CLEARING
            or self.resident[t].state == LEFT
            or self.process[t].state == GONE
            for t in range(self.tasks)
        )

    @always("the newest identity speaks, and its process has an attempt")
    def speaks_rightly(self) -> bool:
        return self.driver.speaking == 0 or (
            self.driver.speaking == self.driver.newest
            and any(
                self.process[t].identity == self.driver.speaking
                and (self.resident[t].state == ATTEMPTING or self.resident[t].state == FINISHED)
                for t in range(self.tasks)
            )
        )

    @always(
        "a process leaves if its connection has ended, or if it is to be replaced, and not else"
    )
    def leaves(self) -> bool:
        return all(
            (self.resident[t].state == LEFT) == (self.process[t].state == REPLACED)
            for t in range(self.tasks)
        )

    @always("a process that was told to finish ends its task, and Spark starts no other")
    def ends_tasks(self) -> bool:
        return self.driver.has_finished == any(
            self.resident[t].state == FINISHED for t in range(self.tasks)
        )

    @sometimes("an attempt runs in the process of one before it")
    def begins_again(self) -> bool:
        return any(
            self.process[t].has_begun_again and self.process[t].identity == self.driver.speaking
            for t in range(self.tasks)
        )

    @sometimes("a process has had all the attempts that it may have")
    def ages(self) -> bool:
        return any(
            self.resident[t].number == self.attempts and self.resident[t].state == LEFT
            for t in range(self.tasks)
        )

    @sometimes("an attempt begins in another process than the one before it, which had to leave")
    def replaces(self) -> bool:
        return self.driver.has_replaced and self.driver.speaking > 0

    @leads_to("a subtask that has no process, and whose job goes on, gets one", then="is_served")
    def is_unserved(self) -> bool:
        return not self.is_served()

    def is_served(self) -> bool:
        return (
            self.driver.speaking > 0
            or self.driver.has_finished
            or self.driver.launched == self.tasks
        )
