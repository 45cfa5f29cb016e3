"""The placement of tasks without one of its rules: each variant must fail by one claim."""

from __future__ import annotations

from typing import ClassVar

from epochgate.fsm import STAY, Opaque, Row, machines
from epochgate.models.closed.placing import PlacedTask
from epochgate.models.placement import GOING_ON, Placement

SMALL = {**PlacedTask.CONSTANTS, "hosts": 2}


class HastyPlacement(Placement):
    """Gives an executor up for one process that it does not end in time."""

    def is_heard(self, host: int, attempt: Opaque, is_heard: bool) -> bool:
        return False


class HeardHostGivenUp(PlacedTask):
    """An executor is given up although another process of its host is heard."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    placement: Placement = machines(HastyPlacement)


class PatientPlacement(Placement):
    """Waits for a silent process to continue, on a host that it avoids."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Placement.ROWS if row.trigger != "silenced"),
        Row("silenced", GOING_ON, STAY, None, "avoid_only", "a process there is silent"),
    )
    # fmt: on

    def avoid_only(self, host: int, attempt: Opaque) -> None:
        if not self.suspects[host]:
            self.suspect(host)


class SilentProcessKept(PlacedTask):
    """A process that is not heard any more is not ended."""

    CONSTANTS: ClassVar[dict[str, int]] = {**SMALL, "F": 1}

    placement: Placement = machines(PatientPlacement)


class TrustingPlacement(Placement):
    """Ends a silent process, and lets its successor come up beside it."""

    # fmt: off
    ROWS: ClassVar[tuple[Row, ...]] = (
        *(row for row in Placement.ROWS if row.trigger != "silenced"),
        Row("silenced", GOING_ON, STAY, None, "turn_away", "a process there is silent: it is ended"),
    )
    # fmt: on


class SilentHostTrusted(PlacedTask):
    """A host is not suspect although a process there is silent."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    placement: Placement = machines(TrustingPlacement)


class NarrowPlacement(Placement):
    """Turns attempts away from a suspect host whether there is room elsewhere or not."""

    def has_room_elsewhere(self, host: int) -> bool:
        return True


class TurnedAwayInVain(PlacedTask):
    """An attempt is turned away although no other host has room."""

    CONSTANTS: ClassVar[dict[str, int]] = SMALL

    placement: Placement = machines(NarrowPlacement)
