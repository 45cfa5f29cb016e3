"""The machines of one coordinator without the job around them: what surrounds them is a stand-in.

`HolderAlone` holds the very machines that run in a job: holder, gateways and snapshots. Its
attempts, checkpoint and lifecycle decide nothing; they pass on through `SurroundingsPort` what the
machines tell them, and what listens there lets a schedule decide in their place. An attempt can
always be reached, because whether a call reaches it is for the wire to find out, as in Flink.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from epochgate.fsm import STAY, Int, Machine, Opaque, Port, Row, System, Trigger, machines, output
from epochgate.models.gateway import Gateway
from epochgate.models.holder import Holder, UserPort
from epochgate.models.snapshot import CoordinatorPort, CoordinatorSnapshot

THERE = "there"


class SurroundingsPort(Port):
    """The job around the machines."""

    def attempt_is_faulty(self) -> None: ...
    def part_is_ready(self, checkpoint: int) -> None: ...
    def part_has_failed(self, checkpoint: int) -> None: ...
    def job_fails(self) -> None: ...


class Attempt(Machine):
    """The attempt of one subtask."""

    INDEX = ("subtask",)
    STATES = (THERE,)
    INITIAL = THERE
    system: HolderAlone
    subtask: int
    job: SurroundingsPort = output(SurroundingsPort)

    number: int = Int("attempts")
    identity: int = Int("identities")

    fault: Trigger

    ROWS = (Row("fault", THERE, STAY, None, "report_fault", "an event was lost"),)

    def is_reachable(self) -> bool:
        return True

    def report_fault(self, reason: Opaque) -> None:
        self.job.attempt_is_faulty()


class Checkpoint(Machine):
    """Takes the coordinators' parts, complete or failed."""

    STATES = (THERE,)
    INITIAL = THERE
    system: HolderAlone
    job: SurroundingsPort = output(SurroundingsPort)

    coordinator_ready: Trigger
    coordinator_failed: Trigger

    ROWS = (
        Row("coordinator_ready", THERE, STAY, None, "report_ready", "the part is there"),
        Row("coordinator_failed", THERE, STAY, None, "report_failed", "there is no such part"),
    )

    def report_ready(self, checkpoint: int) -> None:
        self.job.part_is_ready(checkpoint)

    def report_failed(self, checkpoint: int, reason: Opaque) -> None:
        self.job.part_has_failed(checkpoint)


class Lifecycle(Machine):
    """The job."""

    STATES = (THERE,)
    INITIAL = THERE
    system: HolderAlone
    job: SurroundingsPort = output(SurroundingsPort)

    fail_globally: Trigger
    give_up: Trigger

    ROWS = (
        Row("fail_globally", THERE, STAY, None, "report", "the coordinator has failed the job"),
        Row("give_up", THERE, STAY, None, "report", "the coordinator has failed the job for good"),
    )

    def report(self, reason: Opaque) -> None:
        self.job.job_fails()


class Newer(Machine, unchecked=True):
    """The gateways of newer checkpoints, which stand before these."""

    system: HolderAlone

    def held(self, subtask: int) -> int:
        return self.system.held_before(subtask)


class LaneGateway(Gateway):
    """A gateway behind those of newer checkpoints: what they hold back was sent as well."""

    system: HolderAlone  # type: ignore[assignment]  # it stands for the job

    def in_flight(self) -> int:
        return self.sent - self.confirmed + self.system.newer.held(self.subtask)


class HolderAlone(System):
    """One coordinator with its gateways and its part of one checkpoint."""

    INDEX_SETS: ClassVar[dict[str, str]] = {
        "subtask": "subtasks",
        "coordinator": "coordinators",
    }
    CONSTANTS: ClassVar[dict[str, int]] = {"subtasks": 1, "coordinators": 1, "periodic": 0}

    subtasks: int
    coordinators: int
    periodic: int
    held_before: Callable[[int], int]
    """How many sends to a subtask wait in front of these gateways."""

    attempt: list[Attempt] = machines(Attempt)
    holder: list[Holder] = machines(Holder)
    gateway: dict[tuple[int, int], LaneGateway] = machines(LaneGateway)
    snapshot: list[CoordinatorSnapshot] = machines(CoordinatorSnapshot)
    checkpoint: Checkpoint = machines(Checkpoint)
    lifecycle: Lifecycle = machines(Lifecycle)
    newer: Newer = machines(Newer)


class WithoutIndex:
    """A handler of effects that is not told the index of the machine which they left."""

    def __init__(self, system: System, name: str, port: str, handler: Port) -> None:
        for message, kind in system.MACHINES[name].EFFECTS[port].items():
            setattr(self, message, self._cut(getattr(handler, message), kind.index_size))

    @staticmethod
    def _cut(method: Callable[..., None], size: int) -> Callable[..., None]:
        return lambda *items: method(*items[size:])


def bind(system: System, name: str, port: str, handler: Port) -> None:
    """Let `handler`, a port of the same messages, carry out the effects of machines whose index it
    need not know.
    """
    system.bind(name, port, WithoutIndex(system, name, port, handler))


def fire(trigger: Callable[..., Any], *arguments: Any) -> None:
    """Let a trigger of a machine run to completion, and deliver its effects: one event, as a job's
    queue processes it.
    """
    trigger(*arguments)
    trigger.__self__.system.settle()  # type: ignore[attr-defined]  # a trigger is a bound method


class Coordinator(UserPort, CoordinatorPort):
    """The user's coordinator: says what it is told, keeps what it is handed."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.gateways: set[tuple[int, int]] = set()
        self.futures: dict[int, bool] = {}
        """The checkpoints that it was asked for, and whether it still has to answer."""
        self.state = "null"

    def start(self) -> None:
        self.say("coord start")

    def reset_to(self, checkpoint: int) -> None:
        self.say(f"coord resetTo {checkpoint} {self.state}")

    def checkpoint(self, checkpoint: int) -> None:
        self.say(f"coord checkpoint {checkpoint}")
        self.futures[checkpoint] = True

    def complete(self, checkpoint: int) -> None:
        self.say(f"coord complete {checkpoint}")

    def aborted(self, checkpoint: int) -> None:
        self.say(f"coord aborted {checkpoint}")

    def ready(self, subtask: int, attempt: int) -> None:
        self.say(f"coord ready {subtask} {attempt}")
        self.gateways.add((subtask, attempt))

    def failed(self, subtask: int, attempt: int, reason: Opaque) -> None:
        self.say(f"coord failed {subtask} {attempt}")

    def subtask_reset(self, subtask: int, checkpoint: int) -> None:
        self.say(f"coord subtaskReset {subtask} {checkpoint}")

    def event(self, subtask: int, attempt: int, event: str) -> None:
        self.say(f"coord event {subtask} {attempt} {event}")
