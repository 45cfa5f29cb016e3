"""The steps of a sink under test between its writers and its committer: a task's committer, and the
operators between, each of whose calls is a fault point.

They act as the process that they run in: the actor of the attempt's writer, or that of the driver's
committer. Leaves to the run what follows from a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from epochgate.runtime.api.commit_topology import CommittableBatch, CommittableOperator
from epochgate.runtime.api.committer import Committables
from epochgate.runtime.api.task_committer import CommitRequest, TaskCommitter
from epochgate.runtime.testing.certification.calls import Director, called, injected, later
from epochgate.runtime.testing.certification.points import Actor, Paused, SimulatedDeath


class WatchedTaskCommitter(TaskCommitter):
    """The committer of one attempt."""

    def __init__(
        self, director: Director, actor: Actor, make: Callable[[], TaskCommitter | None]
    ) -> None:
        self._director, self._actor = director, actor
        made = called(director, actor, "create_task_committer", make, injected)
        self._real: TaskCommitter | None = made
        closes_writer = actor.close

        def close() -> None:
            try:
                self.close()
            finally:
                closes_writer()

        actor.close = close

    def commit(self, requests: Sequence[CommitRequest]) -> None:
        if (real := self._real) is None:
            return
        name = f"commit({requests[0].checkpoint_id})"
        try:
            called(self._director, self._actor, name, lambda: real.commit(requests), injected)
        finally:
            self._director.look(f"after {name} in a task")
        self._director.moved(self._actor)

    def close(self) -> None:
        if self._real is not None:
            close_step(self._director, self._actor, self._real.close)


class WatchedOperator(CommittableOperator):
    """One operator between. In a task an error fails the attempt; on the driver the answer of its
    store is awaited by another try.
    """

    def __init__(self, director: Director, actor: Actor, real: CommittableOperator) -> None:
        self._director, self._actor, self._real = director, actor, real
        self.parallelism = real.parallelism
        self._error = later if actor.is_driver else injected

    def open(self, state: bytes | None) -> None:
        self._call("open", lambda: self._real.open(state))

    def process(self, batch: CommittableBatch) -> Committables:
        name = f"process({batch.checkpoint_id})"
        done: Committables = self._call(name, lambda: self._real.process(batch))
        return done

    def snapshot(self) -> bytes:
        state: bytes = self._actor.call("snapshot", self._real.snapshot)
        return state

    def close(self) -> None:
        close_step(self._director, self._actor, self._real.close)

    def _call(self, name: str, function: Callable[[], Any]) -> Any:
        told = f"{type(self._real).__name__}.{name}"
        return called(self._director, self._actor, told, function, self._error)


def close_step(director: Director, actor: Actor, close: Callable[[], None]) -> None:
    """Close what a process has made beside its writer or committer."""
    if actor.is_gone:
        return
    try:
        actor.call("close", close)
    except SimulatedDeath:
        pass  # its process was about to end
    except Paused:
        director.stage.zombies.append(actor)
    except Exception:  # noqa: BLE001  # of the sink: the attempt is over, and so is its process
        actor.kill()
