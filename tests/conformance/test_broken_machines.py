"""Each row that is broken on purpose shows in the golden traces, as something the list does not
explain: the comparison would see it.
"""

from __future__ import annotations

import pytest

from epochgate.fsm import Opaque, Row, machines
from epochgate.models.holder import Holder
from epochgate.models.snapshot import CoordinatorSnapshot
from tests.conformance.comparison import Comparison
from tests.conformance.shell import Shell
from tests.conformance.standins import HolderAlone, LaneGateway
from tests.conformance.traces import COUNTS, FOLDER, read


class NeverHolding(LaneGateway):
    """Passes events on although it is closed."""

    ROWS = tuple(
        Row("send", row.source, row.dest, row.when, "put_on_wire", row.because)
        if row.actions == ("hold",)
        else row
        for row in LaneGateway.ROWS
    )


class Overtaking(LaneGateway, unchecked=True):
    """Released events go out in the wrong order."""

    def release(self) -> None:
        for event in reversed(list(self.held.take_all())):
            self.pass_on(event)


class Keeping(LaneGateway):
    """A gateway that is renewed forgets what it held, and tells no sender."""

    def drop_held(self) -> None:
        self.held.clear()


class Forgiving(LaneGateway):
    """A checkpoint does not hear of a lost event that it waits for."""

    def fail_waiting(self, attempt: int, number: int, reason: Opaque) -> None:
        pass


class Accepting(LaneGateway):
    """Marks for a checkpoint that is older than another."""

    def is_newer(self, checkpoint: int) -> bool:
        return True


class Hasty(CoordinatorSnapshot):
    """Does not wait for sends that are on their way."""

    def has_in_flight(self) -> bool:
        return False


class Silent(Holder):
    """Tells its coordinator nothing of aborted checkpoints."""

    def call_aborted(self, checkpoint: int) -> None:
        pass


class WithNeverHolding(HolderAlone):
    gateway: dict[tuple[int, int], LaneGateway] = machines(NeverHolding)


class WithOvertaking(HolderAlone):
    gateway: dict[tuple[int, int], LaneGateway] = machines(Overtaking)


class WithKeeping(HolderAlone):
    gateway: dict[tuple[int, int], LaneGateway] = machines(Keeping)


class WithForgiving(HolderAlone):
    gateway: dict[tuple[int, int], LaneGateway] = machines(Forgiving)


class WithAccepting(HolderAlone):
    gateway: dict[tuple[int, int], LaneGateway] = machines(Accepting)


class WithHasty(HolderAlone):
    snapshot: list[CoordinatorSnapshot] = machines(Hasty)


class WithSilent(HolderAlone):
    holder: list[Holder] = machines(Silent)


@pytest.mark.parametrize(
    "system",
    [
        WithNeverHolding,
        WithOvertaking,
        WithKeeping,
        WithForgiving,
        WithAccepting,
        WithHasty,
        WithSilent,
    ],
)
def test_a_broken_machine_is_not_explained(system: type[HolderAlone]) -> None:
    found = Comparison()
    for kind in COUNTS:
        for _, commands, flink in read((FOLDER / f"{kind}.txt").read_text(encoding="utf-8")):
            found.add(commands, flink, Shell(system).run(commands))
            if found.unexplained:
                return
    pytest.fail(f"nothing shows that {system.__name__} is broken: {found}")
