"""The machines of one coordinator without the job around them: what surrounds them is a stand-in.

`HolderAlone` holds the very machines that run in a job: holder, gateways and snapshots. Its
attempts, checkpoint and lifecycle decide nothing; they pass on to `Surroundings` what the machines
tell them, and what they answer is what lets a schedule decide in their place. An attempt can always
be reached, because whether a call reaches it is for the wire to find out, as in Flink.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

from epochgate.fsm import Int, Machine, System, machines, output
from epochgate.models.attempt import TaskPort
from epochgate.models.gateway import Gateway
from epochgate.models.holder import Holder, UserPort
from epochgate.models.snapshot import CoordinatorSnapshot

LANES = 48
"""How many checkpoints may be unfinished at once."""


class Surroundings(Protocol):
    """Hears what the machines ask of the job around them."""

    def attempt_failed_by_loss(self, subtask: int) -> None: ...
    def part_is_ready(self, checkpoint: int) -> None: ...
    def part_has_failed(self, checkpoint: int) -> None: ...
    def job_fails(self) -> None: ...


class Attempt(Machine, unchecked=True):
    """The attempt of one subtask: its number, and the wire to it."""

    INDEX = ("subtask",)
    system: HolderAlone
    subtask: int
    task: TaskPort = output(TaskPort)

    number: int = Int("attempts")

    def is_reachable(self) -> bool:
        return True

    def fault(self) -> None:
        self.system.surroundings.attempt_failed_by_loss(self.subtask)


class Checkpoint(Machine, unchecked=True):
    """What becomes of the coordinator's parts."""

    system: HolderAlone

    def coordinator_ready(self, checkpoint: int) -> None:
        self.system.surroundings.part_is_ready(checkpoint)

    def coordinator_failed(self, checkpoint: int) -> None:
        self.system.surroundings.part_has_failed(checkpoint)


class Lifecycle(Machine, unchecked=True):
    """The job."""

    system: HolderAlone

    def fail_globally(self) -> None:
        self.system.surroundings.job_fails()


class HolderAlone(System):
    """One coordinator with its gateways and its parts of checkpoints."""

    INDEX_SETS: ClassVar[dict[str, str]] = {
        "subtask": "subtasks",
        "coordinator": "coordinators",
        "lane": "overlap",
    }
    CONSTANTS: ClassVar[dict[str, int]] = {"subtasks": 1, "coordinators": 1, "overlap": LANES}

    subtasks: int
    coordinators: int
    overlap: int
    surroundings: Surroundings

    attempt: list[Attempt] = machines(Attempt)
    holder: list[Holder] = machines(Holder)
    gateway: dict[tuple[int, int], Gateway] = machines(Gateway)
    snapshot: dict[tuple[int, int], CoordinatorSnapshot] = machines(CoordinatorSnapshot)
    checkpoint: Checkpoint = machines(Checkpoint)
    lifecycle: Lifecycle = machines(Lifecycle)


class Coordinator(UserPort):
    """The user's coordinator: says what it is told, keeps what it is handed."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.gateways: set[tuple[int, int]] = set()
        self.futures: dict[int, int | None] = {}
        """The lane of each checkpoint that it was asked for; None once it has answered."""
        self.state = "null"

    def start(self) -> None:
        self.say("coord start")

    def reset_to(self, checkpoint: int) -> None:
        self.say(f"coord resetTo {checkpoint} {self.state}")

    def checkpoint(self, checkpoint: int, lane: int) -> None:
        self.say(f"coord checkpoint {checkpoint}")
        self.futures[checkpoint] = lane

    def complete(self, checkpoint: int) -> None:
        self.say(f"coord complete {checkpoint}")

    def aborted(self, checkpoint: int) -> None:
        self.say(f"coord aborted {checkpoint}")

    def ready(self, subtask: int, attempt: int) -> None:
        self.say(f"coord ready {subtask} {attempt}")
        self.gateways.add((subtask, attempt))

    def failed(self, subtask: int, attempt: int) -> None:
        self.say(f"coord failed {subtask} {attempt}")

    def subtask_reset(self, subtask: int, checkpoint: int) -> None:
        self.say(f"coord subtaskReset {subtask} {checkpoint}")

    def event(self, subtask: int, attempt: int, event: str) -> None:
        self.say(f"coord event {subtask} {attempt} {event}")
