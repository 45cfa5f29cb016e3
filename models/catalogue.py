"""The lists of all machines and of all closed systems, by the names that the command line and the
diagrams use.
"""

from __future__ import annotations

from epochgate.fsm import Machine
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.job import Job
from epochgate.models.reference import Reference
from epochgate.models.task import TaskSystem

MACHINES: dict[str, type[Machine]] = {**Job.MACHINES, **TaskSystem.MACHINES}

SYSTEMS: dict[str, type[ClosedSystem]] = {"reference": Reference}
