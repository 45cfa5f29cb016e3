"""The one list of all machines, by the names that the command line and the diagrams use."""

from __future__ import annotations

from epochgate.fsm import Machine
from epochgate.models.job import Job
from epochgate.models.task import TaskSystem

MACHINES: dict[str, type[Machine]] = {**Job.MACHINES, **TaskSystem.MACHINES}
