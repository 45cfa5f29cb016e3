"""The plans of batches without one of their rules: each variant must fail by one claim."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import Row, machines
from epochgate.models.batch_plan import FETCHING
from epochgate.models.closed.planning import PlannedQuery
from epochgate.models.closed.surroundings.planning import Planner, Stream
from epochgate.models.created_once import CHOOSING, CONFIRMING, FORGETTING, IDLE, LOOKING, RESTORING

UNFILTERED = {**PlannedQuery.CONSTANTS, "versions": 0}


class UnwrittenPlanner(Planner):
    """Tells Spark of the batch once it knows the splits, before that is durable."""

    def ask_write(self) -> None:
        self.store.tell(self.batch)


class NothingWritten(PlannedQuery):
    """A batch is logged of which nothing can be read."""

    batch_plan: list[Planner] = machines(UnwrittenPlanner)


class CarelessPlanner(Planner):
    """Goes on with an enumerator whose splits are in no plan."""

    def give_up_maker(self) -> None:
        self.tries = self.tries + 0


class SplitsForgotten(PlannedQuery):
    """Splits that were taken for a plan which did not come about are read by no batch."""

    CONSTANTS: ClassVar[dict[str, int]] = {**UNFILTERED, "drivers": 1, "retained": 2}

    batch_plan: list[Planner] = machines(CarelessPlanner)


class TrustingPlanner(Planner):
    """Takes a plan that it has made for the only one."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Planner.ROWS if row.trigger != "confirmed"),
        Row("confirmed", CONFIRMING, FORGETTING, "is_there", "keep_maker, ask_forget", "the plan is durable"),
    )
    # fmt: on

    def is_there(self, later: int) -> bool:
        return True


class CredulousPlanner(Planner):
    """Reads whatever plan is there."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Planner.ROWS if row.trigger != "read"),
        Row("read", FETCHING, IDLE, "is_there", "give", "the plan is there"),
    )
    # fmt: on

    def is_there(self, later: int) -> bool:
        return True


class ForgottenBatchRead(PlannedQuery):
    """A plan is read that came after the batch was committed and forgotten."""

    CONSTANTS: ClassVar[dict[str, int]] = UNFILTERED

    batch_plan: list[Planner] = machines(CredulousPlanner)


class HastyPlanner(Planner):
    """Removes what others have left behind as soon as it finds a plan of theirs."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Planner.ROWS if row.trigger != "found"),
        Row("found", LOOKING, FORGETTING, "not is_forgotten", "ask_forget", "a plan is there"),
        Row("found", LOOKING, IDLE, "is_forgotten",     "refuse",      "the plan is forgotten"),
    )
    # fmt: on


class SweptTooEarly(PlannedQuery):
    """The driver whose plan was found plans the next batch, with what was removed meanwhile."""

    CONSTANTS: ClassVar[dict[str, int]] = UNFILTERED

    batch_plan: list[Planner] = machines(HastyPlanner)


class ForgottenBatchPlanned(PlannedQuery):
    """A driver that was suspended is told of a batch that was committed and forgotten."""

    CONSTANTS: ClassVar[dict[str, int]] = {**UNFILTERED, "F": 0}

    batch_plan: list[Planner] = machines(TrustingPlanner)


class SilentPlanner(Planner):
    """Says that there is nothing where all splits were pruned, and goes on behind them."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Planner.ROWS if row.trigger != "pruned"),
        Row("pruned", CHOOSING, IDLE, None, "tell_none", "nothing is left to read"),
    )
    # fmt: on


class PrunedUnrecorded(PlannedQuery):
    """Splits are pruned that no plan names: another driver, and another filter, may read them."""

    batch_plan: list[Planner] = machines(SilentPlanner)


class SettledPlanner(Planner):
    """Asks for the filter when it makes an enumerator, and keeps both."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Planner.ROWS if row.trigger != "missing"),
        Row("missing", LOOKING, CHOOSING,  "not is_overtaken and is_current",     "ask_choice",  "it has splits"),
        Row("missing", LOOKING, RESTORING, "not is_overtaken and not is_current", "ask_restore", "it has none"),
        Row("missing", LOOKING, IDLE,      "is_overtaken",                        "refuse",      "others went on"),
    )
    # fmt: on


class FilterOfAnEarlierBatch(PlannedQuery):
    """A change of the filter is seen by no batch until the next start."""

    batch_plan: list[Planner] = machines(SettledPlanner)


class PolledStream(Stream):
    """Its tasks look the filter up: each sees what is newest when it runs."""

    def version_for(self, batch: int) -> int:
        return self.version


class FilterLookedUp(PlannedQuery):
    """A batch that is run again is pruned by a filter that came after its first run."""

    stream: Stream = machines(PolledStream)
