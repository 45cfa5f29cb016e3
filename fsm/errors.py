"""The errors of the machine layer: a declaration that cannot be meant, a transition refused, a
replay that differs.
"""

from __future__ import annotations

from collections.abc import Sequence

from epochgate.errors import EpochgateError, UsageError


class DeclarationError(UsageError):
    """A machine or system is declared in a way that cannot be meant; raised when its class is
    created, or a system with constants or handlers that do not fit it. `faults` has a text for each
    thing that is wrong.
    """

    def __init__(self, text: str, *, faults: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.faults = faults or (text,)


class TransitionRefused(EpochgateError):
    """A trigger was fired in a state in which no row takes it.

    The machine is left as it was: guards are evaluated before anything changes.
    """

    def __init__(self, machine: str, state: str, trigger: str, accepted: Sequence[str]) -> None:
        self.machine, self.state, self.trigger, self.accepted = machine, state, trigger, accepted
        would = ", ".join(accepted) if accepted else "nothing"
        super().__init__(
            f"{machine} refuses {trigger!r} in state {state!r}: no row for this pair holds; "
            f"accepted here: {would}"
        )


class EndlessStep(EpochgateError):
    """The machines of a closed system trigger each other without end within one step."""

    def __init__(self, calls_max: int) -> None:
        super().__init__(
            f"one step of the closed system has more than {calls_max} triggers, effects or events; "
            f"its machines trigger each other without end, or CALLS_MAX of the system is too small"
        )


class QueueReentered(EpochgateError):
    """An event asked the queue that is processing it to process more."""


class ReplayDiverged(EpochgateError):
    """A journal does not lead to the state that it led to when it was recorded."""
