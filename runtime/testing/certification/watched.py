"""The sink under test, its writers and its committer on the driver, each of whose calls is a fault
point, on a thread of its actor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from epochgate.runtime.api.commit_topology import CommittableOperator
from epochgate.runtime.api.committer import CombiningCommitter, Committables, Committer
from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.operator import OperatorContext
from epochgate.runtime.api.sink import Sink, SinkStart, SinkWriter
from epochgate.runtime.api.task_committer import TaskCommitter
from epochgate.runtime.testing.certification.calls import Director, called, injected, later
from epochgate.runtime.testing.certification.points import (
    Actor,
    CallHangs,
    Paused,
    SimulatedDeath,
)
from epochgate.runtime.testing.certification.watched_steps import (
    WatchedOperator,
    WatchedTaskCommitter,
)


class WatchedWriter(SinkWriter):
    """The writer of one attempt."""

    def __init__(self, director: Director, actor: Actor, make: Callable[[], SinkWriter]) -> None:
        self._director, self.actor = director, actor
        try:
            self.real: SinkWriter = called(director, actor, "create_writer", make, injected)
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
        called(self._director, self.actor, "write", lambda: self.real.write(batch), injected)

    def prepare_commit(self, checkpoint_id: int) -> list[Any]:
        name = f"prepare_commit({checkpoint_id})"
        done: list[Any] = called(
            self._director,
            self.actor,
            name,
            lambda: self.real.prepare_commit(checkpoint_id),
            injected,
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
            called(self._director, self.actor, "close", self.real.close, injected)
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
        self._call(told, lambda: self.real.open(run_id, restored), injected)
        self._director.begun(self.actor)

    def check(self, committables: Committables) -> None:
        self.real.check(committables)

    def commit(self, checkpoint_id: int, committables: Committables) -> bool | None:
        name = f"commit({checkpoint_id})"
        self._director.note()
        done: bool | None = self._call(
            name, lambda: self.real.commit(checkpoint_id, committables), later
        )
        self._director.committed(checkpoint_id)
        self._director.moved(self.actor)
        return done

    def close(self) -> None:
        if self.actor.is_gone:
            return
        try:
            self._call("close", self.real.close, injected)
        except SimulatedDeath:
            pass  # its process was about to end
        except Paused:
            self._director.stage.zombies.append(self.actor)
        except Exception:
            self.actor.kill()  # its process ends
            raise

    def _call(self, name: str, function: Callable[[], Any], error: Callable[[], Exception]) -> Any:
        try:
            result = called(self._director, self.actor, name, function, error)
        except CallHangs:
            raise
        except BaseException:
            self._director.look(f"after {name} has failed")
            raise
        self._director.look(f"after {name}")
        return result


class WatchedCombining(WatchedCommitter, CombiningCommitter):
    """The committer of one start that combines the committables of a checkpoint."""

    real: CombiningCommitter

    def combine(self, checkpoint_id: int, committables: Committables) -> Any:
        return self._call(
            f"combine({checkpoint_id})",
            lambda: self.real.combine(checkpoint_id, committables),
            later,
        )

    def commit_combined(self, checkpoint_id: int, combined: Any) -> bool | None:
        return self.commit(checkpoint_id, {0: [combined]})


class WatchedSink(Sink):
    """The maker of the sink's parts: the sink as one process has it, the driver or an attempt."""

    def __init__(self, director: Director, real: Sink) -> None:
        self._director, self.real = director, real
        self._actor: Actor | None = None

    def create_writer(self, context: OperatorContext, state: bytes | None) -> WatchedWriter:
        name = f"{context.run_id} subtask {context.subtask} attempt {context.attempt}"
        actor = Actor(self._director.stage, name, subtask=context.subtask, owner=self)
        self._actor = actor
        return WatchedWriter(self._director, actor, lambda: self.real.create_writer(context, state))

    def create_committer(self, start: SinkStart) -> WatchedCommitter:
        actor = self._actor = Actor(self._director.stage, f"driver {start.run_id}")
        told = f"create_committer(restored_checkpoint={start.restored_checkpoint}"
        told += ", may_withdraw=True)" if start.may_withdraw else ")"
        try:
            real = called(
                self._director,
                actor,
                told,
                lambda: self.real.create_committer(start),
                injected,
                in_lane=False,
            )
        except BaseException:
            actor.kill()  # its process ends, with what was made
            self._director.look("after create_committer has failed")
            raise
        kind = WatchedCombining if isinstance(real, CombiningCommitter) else WatchedCommitter
        return kind(self._director, actor, real)

    def create_task_committer(self, context: OperatorContext) -> TaskCommitter:
        return WatchedTaskCommitter(
            self._director, self._acting, lambda: self.real.create_task_committer(context)
        )

    @property
    def has_task_committer(self) -> bool:
        return self.real.has_task_committer

    def pre_commit_topology(self) -> Sequence[CommittableOperator]:
        return self._watched(self.real.pre_commit_topology())

    def post_commit_topology(self) -> Sequence[CommittableOperator]:
        return self._watched(self.real.post_commit_topology())

    def _watched(self, operators: Sequence[CommittableOperator]) -> list[CommittableOperator]:
        return [WatchedOperator(self._director, self._acting, one) for one in operators]

    @property
    def _acting(self) -> Actor:
        assert self._actor is not None, "a writer or a committer is made first"
        return self._actor

    def create_coordinator(
        self, operator_id: str, committer: Committer
    ) -> CoordinatorProvider | None:
        assert isinstance(committer, WatchedCommitter)
        return self.real.create_coordinator(operator_id, committer.real)
