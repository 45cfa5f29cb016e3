"""The growth of the driver's work with the number of subtasks and coordinators.

A real job master on a virtual clock, over a transport that carries nothing: the subtasks' answers
are posted by the benchmark. Measured is the processor time of the one thread on which all of it
runs. The first checkpoint and the first events of a job are not measured; they make what later
ones find.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from epochgate.benchmarks.figures import Table, number
from epochgate.benchmarks.silent import RESTART_DELAY_S, SilentJob, timed_us
from epochgate.runtime import (
    CoordinatorContext,
    CoordinatorProvider,
    OperatorCoordinator,
    SubtaskGateway,
)

SUBTASKS = (4, 100, 1_000, 10_000)
COORDINATORS = (1, 2)
RUNS = 5
SUBTASKS_PER_SAMPLE = 4_000
BURSTS_PER_SAMPLE = 100
GATEWAYS_PER_BURST = 4
EVENTS_PER_CONFIRMATION = 64
FAILOVERS_PER_SAMPLE = 50
EVENT = ["split", "part-00017.parquet", {"row_group": 12, "rows": 65536}]


class QuietCoordinator(OperatorCoordinator):
    """Answers at once, and keeps its gateways for the benchmark."""

    def __init__(self, context: CoordinatorContext) -> None:
        self.context = context
        self.gateways: dict[int, SubtaskGateway] = {}

    def start(self) -> None:
        """Nothing to begin."""

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        """Nothing to keep."""
        result.set_result(b"")

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        """Nothing to take back."""

    def execution_attempt_ready(self, subtask: int, attempt: int, gateway: SubtaskGateway) -> None:
        """Remember the gateway."""
        self.gateways[subtask] = gateway


class QuietProvider(CoordinatorProvider):
    """Makes a quiet coordinator, and remembers it."""

    operator_id = ""

    def __init__(self, operator_id: str) -> None:
        self.operator_id = operator_id

    def create(self, context: CoordinatorContext) -> QuietCoordinator:
        """Make it."""
        self.made = QuietCoordinator(context)
        return self.made


class DrivenJob(SilentJob):
    """A running job whose subtasks say what the benchmark wants them to say."""

    def __init__(self, subtasks: int, coordinators: int) -> None:
        self._providers = [QuietProvider(f"operator-{c}") for c in range(coordinators)]
        self._sent = [[0] * subtasks for _ in self._providers]
        self._gateways = [(c, s) for s in range(subtasks) for c in range(coordinators)]
        super().__init__(subtasks, self._providers)

    def connect(self, subtask: int) -> None:
        """Let a process of the subtask come up, to which nothing was sent."""
        super().connect(subtask)
        for sent in self._sent:
            sent[subtask] = 0

    def events(self, bursts: int, events_per_gateway: int = EVENTS_PER_CONFIRMATION) -> None:
        """Send bursts of events, each to the next few gateways, and confirm what each got at
        once.
        """
        for burst in range(bursts):
            touched = [
                self._gateways[(burst * GATEWAYS_PER_BURST + i) % len(self._gateways)]
                for i in range(GATEWAYS_PER_BURST)
            ]
            for coordinator, subtask in touched:
                gateway = self._providers[coordinator].made.gateways[subtask]
                for _ in range(events_per_gateway):
                    gateway.send_event(EVENT)
                self._sent[coordinator][subtask] += events_per_gateway
            self.drain()
            for coordinator, subtask in touched:
                confirm = ["confirm", coordinator, self._sent[coordinator][subtask]]
                self.say(subtask, confirm)
            self.drain()

    def regional_failover(self, subtask: int) -> None:
        """Lose one process, and bring up its successor."""
        self.inbox.lost(subtask, self.identities[subtask], "killed")
        self.drain()
        self.advance(RESTART_DELAY_S)
        self.connect(subtask)
        self.drain()

    def global_failover(self) -> None:
        """Let a coordinator fail the job, and bring everything up again."""
        self._providers[0].made.context.fail_job("measured")
        self.drain()
        ended, self.transport.ended = self.transport.ended, []
        for subtask, identity in ended:
            self.inbox.lost(subtask, identity, "ended")
        self.drain()
        self.advance(RESTART_DELAY_S)
        for subtask in range(self.subtasks):
            self.connect(subtask)
        self.drain()


@dataclass(frozen=True)
class Costs:
    """The cost of one job, in microseconds of processor time."""

    checkpoint_us: float
    event_us: float
    regional_us: float
    global_us: float


def costs(subtasks: int, coordinators: int, bursts: int = BURSTS_PER_SAMPLE) -> Costs:
    """Measure one job of this size."""
    job = DrivenJob(subtasks, coordinators)
    job.events(subtasks * coordinators // GATEWAYS_PER_BURST + 1, events_per_gateway=1)
    job.checkpoint()
    gc.collect()
    events = bursts * GATEWAYS_PER_BURST * EVENTS_PER_CONFIRMATION
    return Costs(
        checkpoint_us=timed_us(max(2, SUBTASKS_PER_SAMPLE // subtasks), lambda _: job.checkpoint()),
        event_us=timed_us(1, lambda _: job.events(bursts)) / events,
        regional_us=timed_us(
            FAILOVERS_PER_SAMPLE, lambda turn: job.regional_failover(turn % subtasks)
        ),
        global_us=timed_us(
            max(1, SUBTASKS_PER_SAMPLE // subtasks), lambda _: job.global_failover()
        ),
    )


def measure(
    sizes: tuple[int, ...] = SUBTASKS,
    runs: int = RUNS,
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Measure jobs of all sizes in turn, `runs` times."""
    shapes = [(subtasks, coordinators) for coordinators in COORDINATORS for subtasks in sizes]
    samples: dict[tuple[int, int], list[Costs]] = {shape: [] for shape in shapes}
    for run in range(runs):
        for shape in shapes:
            note(f"run {run + 1} of {runs}: {shape[0]:,} subtasks, {shape[1]} coordinator(s)")
            samples[shape].append(costs(*shape))

    def middle(found: list[Costs], name: str, subtasks: int = 1) -> str:
        return number(statistics.median(getattr(cost, name) for cost in found) / subtasks)

    rows = tuple(
        (
            f"{subtasks:,} with {coordinators}",
            middle(found, "checkpoint_us"),
            middle(found, "checkpoint_us", subtasks),
            middle(found, "event_us"),
            middle(found, "regional_us"),
            middle(found, "global_us"),
            middle(found, "global_us", subtasks),
        )
        for (subtasks, coordinators), found in samples.items()
    )
    return Table(
        question="scaling",
        title="How the driver's work grows (microseconds of one thread)",
        header=(
            "subtasks with coordinators",
            "checkpoint",
            "per subtask",
            "event",
            "failover of one",
            "failover of all",
            "per subtask",
        ),
        rows=rows,
        notes=(
            f"Medians of {runs} runs in turn, without Spark. A checkpoint is everything from "
            "request to commit, an event is sending and confirmation, a failover is everything "
            "until the successors run. In large jobs the processor's caches and Python's garbage "
            "collector add to the cost of each subtask."
        ),
    )
