"""One call of the sink under test: told, and struck before and behind it.

Leaves to the run what follows from a call: `Run` hears of each that has returned or failed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from epochgate.runtime.api.committer import RetryLater
from epochgate.runtime.testing.certification.points import Actor, Stage


class InjectedError(Exception):
    """The error that a call of the sink raises at a fault point, in place of its store."""


class Director(Protocol):
    """The listener to the calls."""

    stage: Stage

    def begun(self, actor: Actor) -> None:
        """The actor can be used."""
        ...

    def moved(self, actor: Actor) -> None:
        """It has prepared, or committed, a checkpoint."""
        ...

    def look(self, moment: str) -> None:
        """Let a reader look."""
        ...

    def note(self) -> None:
        """Take notice of checkpoints that are stored."""
        ...

    def committed(self, checkpoint: int) -> None:
        """The commit of a checkpoint has returned."""
        ...


def called(
    director: Director,
    actor: Actor,
    name: str,
    function: Callable[[], Any],
    error: Callable[[], Exception],
    *,
    in_lane: bool = True,
) -> Any:
    """Call the sink as this actor, with a fault point before and behind; `error` is what a fault
    raises in its place.
    """
    stage = director.stage

    def whole() -> Any:
        stage.reach(actor, name, lambda: None, error=error, is_call=True)
        result = function()
        stage.reach(actor, f"the return of {name}", lambda: None, error=error, is_call=True)
        return result

    stage.tell(f"{actor.name}: {name}")
    try:
        return actor.call(name, whole, in_lane=in_lane)
    except Exception as raised:
        stage.tell(f"{actor.name}: {name} raises {type(raised).__name__}: {raised}")
        raise


def injected() -> Exception:
    """Make what a store raises that cannot be reached."""
    return InjectedError("the store gives no answer (made by certify-sink)")


def later() -> Exception:
    """Make what a committer raises that is to be called again."""
    return RetryLater("the store gives no answer (made by certify-sink)")
