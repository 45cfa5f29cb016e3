"""A closed system around the placement of tasks: no host from which the driver cannot be reached
keeps a task from the others.

One task is looked at. Spark offers it the free slots of one host after the other; hosts are cut off
from the driver and joined again, or lost with all that runs there, and other applications take
their slots. The driver looks where the task runs before or after it has tried, or never. Of a
process that falls silent, Spark notices nothing; of a lost host it does after its own time limit.

`Placement` is the machine that runs in production. Spark's own order of slots is random, and
reaches each host in the end, as the order here does.
"""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import machines
from epochgate.fsm.closed import ClosedSystem, Step, always, leads_to, sometimes
from epochgate.models.closed.surroundings.hosts import Cluster
from epochgate.models.closed.surroundings.scheduler import HERE, OVER, Scheduler
from epochgate.models.placement import GIVEN_UP, STRANDED, Placement


class PlacedTask(ClosedSystem):
    """A task among hosts that may be cut off: it ends up where it can reach the driver."""

    CONSTANTS: ClassVar[dict[str, int]] = {"hosts": 3, "F": 3, "R": 1}
    INDEX_SETS: ClassVar[dict[str, str]] = {"host": "hosts"}
    STEPS: ClassVar[tuple[Step, ...]] = (
        Step("scheduler", "offer"),
        Step("scheduler", "look", is_fair=False),
        Step("scheduler", "connect"),
        Step("scheduler", "miss"),
        Step("scheduler", "lose"),
        Step("scheduler", "silence"),
        Step("scheduler", "answer"),
        Step("scheduler", "wait", is_fair=False),
        Step("scheduler", "notice"),
        Step("scheduler", "repeat", is_fair=False),
        Step("scheduler", "expire", is_fair=False),
        Step("scheduler", "deafen", is_fair=False),
        Step("cluster", "cut", is_fair=False),
        Step("cluster", "heal", is_fair=False),
        Step("cluster", "vanish", is_fair=False),
        Step("cluster", "launch"),
        Step("cluster", "fill", is_fair=False),
        Step("cluster", "empty", is_fair=False),
        Step("cluster", "doubt", is_fair=False),
        Step("cluster", "greet", is_fair=False),
        Step("cluster", "hush", is_fair=False),
        Step("cluster", "wait", is_fair=False),
    )
    WIRING: ClassVar[dict[str, str]] = {"placement.spark": "scheduler"}

    hosts: int
    F: int
    R: int

    placement: Placement = machines(Placement)
    scheduler: Scheduler = machines(Scheduler)
    cluster: list[Cluster] = machines(Cluster)

    @always("a task is turned away from a suspect host alone, and while another one has room")
    def wrongs_no_task(self) -> bool:
        return not self.scheduler.is_wronged

    @always("an executor is given up only while no process of its host is heard")
    def gives_up_no_executor_in_haste(self) -> bool:
        return not self.scheduler.is_hasty

    @always("a job whose task has had a process is given up by the restart strategy alone")
    def gives_up_rightly(self) -> bool:
        return self.placement.state != GIVEN_UP or not self.scheduler.has_run

    @always("a host is suspect exactly if the last task that tried from there has failed to")
    def suspects_rightly(self) -> bool:
        return self.placement.state == GIVEN_UP or all(
            self.placement.suspects[h] == self.scheduler.has_missed[h] for h in range(self.hosts)
        )

    @always("the driver is told once that a host is suspect, and once that it is trusted again")
    def tells_news_alone(self) -> bool:
        return not self.scheduler.is_repeated

    @always("a job whose tasks fail before a process has ever come is given up")
    def gives_up_without_a_process(self) -> bool:
        return not self.scheduler.is_hopeless or self.placement.state == GIVEN_UP

    @always("a job is given up where the driver was told so, and not else")
    def gives_up_as_told(self) -> bool:
        return (self.placement.state == GIVEN_UP) == self.scheduler.is_given_up

    @always("every free slot is suspect where the driver was told so, and not else")
    def strands_as_told(self) -> bool:
        return (
            self.placement.state == GIVEN_UP
            or (self.placement.state == STRANDED) == self.scheduler.is_stranded
        )

    @sometimes("a task comes up elsewhere after it was turned away")
    def comes_up_elsewhere(self) -> bool:
        return self.scheduler.was_turned_away and self.scheduler.state == HERE

    @sometimes("a task comes up although every host was suspect")
    def comes_up_again(self) -> bool:
        return self.scheduler.was_stranded and self.scheduler.state == HERE

    @sometimes("a task comes up elsewhere after its executor was given up for Spark")
    def comes_up_early(self) -> bool:
        return self.scheduler.was_removed and self.scheduler.state == HERE

    @sometimes("every free slot is on a host that is suspect")
    def strands(self) -> bool:
        return self.placement.state == STRANDED

    @leads_to("while a host that can reach the driver has room, the process comes", then="is_here")
    def has_room(self) -> bool:
        return any(self.cluster[h].is_good() for h in range(self.hosts))

    def is_here(self) -> bool:
        return (
            self.scheduler.state == HERE
            or self.scheduler.state == OVER
            or not any(self.cluster[h].is_good() for h in range(self.hosts))
        )
