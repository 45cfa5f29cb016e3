"""The sink under test, each of whose calls is a fault point, on a thread of its actor.

Leaves to the run what follows from a call: `Run` hears of each that has returned or failed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from epochgate.runtime.api.committer import Committables, Committer, RetryLater
from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.operator import OperatorContext
from epochgate.runtime.api.sink import Sink, SinkStart, SinkWriter
from epochgate.runtime.testing.certification.points import (
    Actor,
    CallHangs,
    Paused,
    SimulatedDeath,
    Stage,
)


class InjectedError(Exception):
    """What a call of the sink raises at a fault point, in place of its store."""


class Director(Protocol):
    """What hears of the calls."""

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


def _called(
    director: Director,
    actor: Actor,
    name: str,
    function: Callable[[], Any],
    error: Callable[[], Exception],
    *,
    in_lane: bool = True,
) -> Any:
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


def _injected() -> Exception:
    return InjectedError("the store gives no answer (made by certify-sink)")


def _later() -> Exception:
    return RetryLater("the store gives no answer (made by certify-sink)")


class WatchedWriter(SinkWriter):
    """The writer of one attempt."""

    def __init__(self, director: Director, actor: Actor, make: Callable[[], SinkWriter]) -> None:
        self._director, self.actor = director, actor
        try:
            self.real: SinkWriter = _called(director, actor, "create_writer", make, _injected)
        except Exception:
            actor.kill()  # its process ends, with what was made
            raise
        actor.close = self.close
        director.begun(actor)

    def may_write(self, batch: Any) -> bool:
        return bool(self.actor.call("may_write", lambda: self.real.may_write(batch)))

    def handle_event(self, event: Any) -> None:
        self.actor.call("handle_event", lambda: self.real.handle_event(event))

    def write(self, batch: Any) -> None:
        _called(self._director, self.actor, "write", lambda: self.real.write(batch), _injected)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        name = f"prepare_commit({checkpoint_id})"
        done: list[Any] = _called(
            self._director,
            self.actor,
            name,
            lambda: self.real.prepare_commit(checkpoint_id),
            _injected,
        )
        self._director.moved(self.actor)
        return done

    def snapshot(self, checkpoint_id: int) -> bytes:
        return bytes(self.actor.call("snapshot", lambda: self.real.snapshot(checkpoint_id)))

    def close(self) -> None:
        if self.actor.is_gone:
            return
        stage = self._director.stage
        try:
            _called(self._director, self.actor, "close", self.real.close, _injected)
        except SimulatedDeath:
            pass  # its process was about to end
        except Paused:
            stage.zombies.append(self.actor)
        except Exception:  # noqa: BLE001  # it is told; the attempt is over, and so is its process
            self.actor.kill()


class WatchedCommitter(Committer):
    """The committer of one start."""

    def __init__(self, director: Director, actor: Actor, real: Committer) -> None:
        self._director, self.actor, self.real = director, actor, real
        actor.close = self.close

    def open(self, run_id: str, restored: dict[int, Committables]) -> None:
        held = ", ".join(map(str, restored))
        told = f"open (to be committed again: {held})" if held else "open"
        self._call(told, lambda: self.real.open(run_id, restored), _injected)
        self._director.begun(self.actor)

    def check(self, committables: Committables) -> None:
        self.real.check(committables)

    def commit(self, checkpoint_id: int, committables: Committables) -> bool | None:
        name = f"commit({checkpoint_id})"
        self._director.note()
        done: bool | None = self._call(
            name, lambda: self.real.commit(checkpoint_id, committables), _later
        )
        self._director.committed(checkpoint_id)
        self._director.moved(self.actor)
        return done

    def close(self) -> None:
        if self.actor.is_gone:
            return
        try:
            self._call("close", self.real.close, _injected)
        except SimulatedDeath:
            pass  # its process was about to end
        except Paused:
            self._director.stage.zombies.append(self.actor)
        except Exception:
            self.actor.kill()  # its process ends
            raise

    def _call(self, name: str, function: Callable[[], Any], error: Callable[[], Exception]) -> Any:
        try:
            result = _called(self._director, self.actor, name, function, error)
        except CallHangs:
            raise
        except BaseException:
            self._director.look(f"after {name} has failed")
            raise
        self._director.look(f"after {name}")
        return result


class WatchedSink(Sink):
    """What makes both."""

    def __init__(self, director: Director, real: Sink) -> None:
        self._director, self.real = director, real

    def create_writer(self, context: OperatorContext, state: bytes | None) -> WatchedWriter:
        name = f"{context.run_id} subtask {context.subtask} attempt {context.attempt}"
        actor = Actor(self._director.stage, name, subtask=context.subtask, owner=self)
        return WatchedWriter(self._director, actor, lambda: self.real.create_writer(context, state))

    def create_committer(self, start: SinkStart) -> WatchedCommitter:
        actor = Actor(self._director.stage, f"driver {start.run_id}")
        told = f"create_committer(restored_checkpoint={start.restored_checkpoint}"
        told += ", may_withdraw=True)" if start.may_withdraw else ")"
        try:
            real = _called(
                self._director,
                actor,
                told,
                lambda: self.real.create_committer(start),
                _injected,
                in_lane=False,
            )
        except BaseException:
            actor.kill()  # its process ends, with what was made
            self._director.look("after create_committer has failed")
            raise
        return WatchedCommitter(self._director, actor, real)

    def create_coordinator(
        self, operator_id: str, committer: Committer
    ) -> CoordinatorProvider | None:
        assert isinstance(committer, WatchedCommitter)
        return self.real.create_coordinator(operator_id, committer.real)
