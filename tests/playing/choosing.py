"""The choices of a coordinator: each driver of `ChosenQuery` is a `Coordinated`, over one store."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, ClassVar, Final

from epochgate.models.closed.choosing import ChosenQuery
from epochgate.models.closed.steering import SteeredQuery
from epochgate.models.closed.surroundings.steering import GONE
from epochgate.runtime.api.coordinator import CoordinatorContext, CoordinatorProvider
from epochgate.runtime.steering import BatchCoordinator, Coordinated, NextBatch
from tests.playing.gates import Lie, the_truth
from tests.playing.stage import Act
from tests.playing.steering import CONTROL, INITIAL, QUERY, Decisions, Driver, HangingRemoval
from tests.playing.store import DENY

WAVER: Final = "waver"
"""The outcome of a choice of the other."""
REFUSED: Final = RuntimeError("the schedule lets the user's code raise")


class Chooser(BatchCoordinator):
    """Chooses one way or the other; its state is what it has chosen last."""

    def __init__(self, driver: ChoosingDriver) -> None:
        self._driver, self.choice, self._completed = driver, False, 0

    def start(self) -> None:
        """There is nothing to start."""

    def reset_to_checkpoint(self, checkpoint_id: int, state: bytes | None) -> None:
        self.choice, self._completed = state == b"1", checkpoint_id

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._completed = checkpoint_id

    def choose(self, next_batch: NextBatch) -> Mapping[str, Any]:
        self._driver.told = self._completed, next_batch.batch
        if self._driver.outcome == DENY:
            self.choice = not self.choice
            raise REFUSED
        self.choice = self._driver.outcome == WAVER
        return {"choice": self.choice}

    def checkpoint(self, checkpoint_id: int, result: Future[bytes]) -> None:
        result.set_result(b"%d" % self.choice)


class HangingCoordinated(HangingRemoval, Coordinated):
    """Decisions of a coordinator."""


class ChoosingDriver(Driver, CoordinatorProvider):
    """A process that drives the query, and makes its coordinators."""

    at_once: ClassVar[frozenset[str]] = frozenset()
    operator_id = "chooser"

    told: tuple[int, int] = (0, 0)
    """With its last choice: the checkpoint that its coordinator knows of, and Spark's batch."""
    coordinator: Chooser | None = None

    def made(self) -> Any:
        where = self.connection, "the store", CONTROL, QUERY
        return HangingCoordinated(*where, {**INITIAL, "choice": False}, self, now=lambda: 0.0)

    def create(self, context: CoordinatorContext) -> Chooser:
        if self.outcome == DENY:
            raise REFUSED
        self.coordinator = Chooser(self)
        return self.coordinator


class Choices(Decisions):
    """The world of `ChosenQuery`."""

    system: ChosenQuery
    driver: ClassVar[type[Driver]] = ChoosingDriver

    def facts(self) -> Any:
        yield from super().facts()
        for number, process in enumerate(self.processes):
            assert isinstance(process, ChoosingDriver)
            completed, batch = process.told
            yield f"what the coordinator of driver {number} knows", batch, completed
            if process.system.batch_decision[0].has_maker and process.coordinator is not None:
                model = self.system.client[number].choice
                yield f"the state of driver {number}", model, process.coordinator.choice

    def chosen(self, batch: int) -> dict[str, Any]:
        return {"choice": self.system.query.choice[batch]}

    def chosen_of_seen(self, batch: int) -> dict[str, Any]:
        return {"choice": self.system.query.seen_choice[batch]}

    def refused(self, number: int) -> None:
        process = self.processes[number]
        process.state, process.batch = GONE, 0

    acts: ClassVar[Mapping[str, Act]] = {
        **Decisions.acts,
        "client.waver": Act(
            lambda world, n: world.answer(n, WAVER),
            lambda world, n: world.processes[n].asked == "choose",
            "nothing is being chosen",
        ),
    }


def deciding(system: SteeredQuery, lie: Lie = the_truth) -> Decisions:
    """Return the world of a system, with a coordinator or without."""
    return Choices(system, lie) if isinstance(system, ChosenQuery) else Decisions(system, lie)
