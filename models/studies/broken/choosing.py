"""A coordinator of a control without one of its rules: each variant must fail by one claim."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Row, machines
from epochgate.models.closed.choosing import ChosenQuery
from epochgate.models.closed.surroundings.steering import Decider
from epochgate.models.created_once import IDLE, LOOKING, RESTORING, WRITING

SMALL = {**ChosenQuery.CONSTANTS, "batches": 2}


class EagerDecider(Decider):
    """Lets the coordinator choose in every run of a batch."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Decider.ROWS if row.trigger not in ("found", "taken")),
        Row("found", LOOKING, RESTORING, "not is_forgotten", "note_found, ask_restore", "it runs again"),
        Row("found", LOOKING, IDLE,      "is_forgotten",     "refuse",      "the batch is over"),
        Row("taken", WRITING, IDLE,      None,               "use_made",    "the choice is made"),
    )
    # fmt: on

    def note_found(self, later: int, version: int) -> None:
        self.version = version


class ChosenAtAReplay(ChosenQuery):
    """A batch that is run again sees another choice."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    batch_decision: list[Decider] = machines(EagerDecider)


class ForgetfulDecider(Decider):
    """Lets the coordinator choose before the decision of the batch before is read."""

    def ask_restore(self) -> None:
        self.store.restore(0)


class NothingRestored(ChosenQuery):
    """A coordinator begins without the state that the batch before has left."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    batch_decision: list[Decider] = machines(ForgetfulDecider)


class StaleDecider(Decider):
    """Goes on with its coordinator, whichever driver has decided for the batch before."""

    def is_current(self) -> bool:
        return self.has_maker


class EarlierState(ChosenQuery):
    """A coordinator chooses from the state of a batch before the one before."""

    CONSTANTS: ClassVar[dict[str, int]] = {**ChosenQuery.CONSTANTS, "F": 0}

    batch_decision: list[Decider] = machines(StaleDecider)


class CarelessDecider(Decider):
    """Goes on with a coordinator whose choice is in no decision."""

    def give_up_maker(self) -> None:
        self.tries = self.tries + 0


class ChosenTwice(ChosenQuery):
    """A coordinator chooses for one batch from the state behind a choice for the same batch."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    batch_decision: list[Decider] = machines(CarelessDecider)
