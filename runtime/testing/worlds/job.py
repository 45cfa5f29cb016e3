"""The job of a world, as a test sees it: what can be done to it and what can be looked at.

Methods do one thing and let the job move; attributes only look. Looking is what claims do, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

from epochgate.errors import UsageError
from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.operator import Operator
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.runtime.testing.worlds.claims import Place
from epochgate.runtime.testing.worlds.line import Line
from epochgate.runtime.testing.worlds.rig import INJECTED, Call, Rig, RowTaken


class NoSuchSubtask(UsageError):
    """A subtask that the job does not have."""


class Moving(Protocol):
    """The requests of a job to its world."""

    def strike(self, fault: str, which: int = 0) -> None:
        """Let a fault happen and the job move."""
        ...

    def move(self, seconds: float = 0.0) -> None:
        """Let the job move."""
        ...

    def say(self, text: str) -> None:
        """Note what the test does."""
        ...


class WorldJob:
    """One job of a test."""

    def __init__(self, world: Moving, rig: Rig) -> None:
        self._world, self.rig = world, rig
        self.line = Line(rig.simulated)
        self._requests: list[Future[int]] = []

    @property
    def simulated(self) -> SimulatedJob:
        """The simulated job underneath."""
        return self.rig.simulated

    # what a test looks at

    @property
    def coordinator(self) -> Any:
        """The coordinator of the first provider, the one of this start of the driver."""
        return next(iter(self.rig.coordinators.values()))

    @property
    def coordinators(self) -> Mapping[str, Any]:
        """The coordinators of this start of the driver, by operator id."""
        return self.rig.coordinators

    @property
    def operators(self) -> list[Any]:
        """The first operator of each subtask that is open, in the order of the subtasks."""
        opened = map(self.rig.operators, range(self.rig.setup.subtasks))
        return [next(iter(each.values())) for each in opened if each]

    def operators_of(self, operator_id: str) -> dict[int, Operator]:
        """The open operators of one id, by subtask."""
        found = {}
        for subtask in range(self.rig.setup.subtasks):
            opened = self.rig.operators(subtask)
            if opened is not None:
                found[subtask] = opened[operator_id]
        return found

    @property
    def committer(self) -> Any:
        """The committer of this start of the driver."""
        return self.rig.committers[-1]

    @property
    def committers(self) -> list[Committer]:
        """The committers of all starts of the driver, the first one first."""
        return self.rig.committers

    @property
    def checkpoints(self) -> list[int]:
        """The ids of the checkpoints in the store."""
        return self.simulated.store.ids()

    def checkpoint_of(self, checkpoint_id: int) -> CompletedCheckpoint:
        """Load a checkpoint from the store."""
        return self.simulated.store.load(checkpoint_id)

    @property
    def now_s(self) -> float:
        """Seconds on the simulated clock."""
        return self.simulated.clock.now_s()

    @property
    def starts(self) -> int:
        """The number of starts of a driver."""
        return self.simulated.starts

    @property
    def is_over(self) -> bool:
        """True if the job has ended."""
        return self.simulated.is_over

    @property
    def has_failed(self) -> bool:
        """True if the job has ended as failed."""
        return self.is_over and self.simulated.result.state == "failed"

    # what a test does

    def kill(self, subtask: int) -> None:
        """Kill the process of a subtask, if it has one at this moment. Raises NoSuchSubtask."""
        self._strike("die", subtask, self.simulated.transport.living())

    def cut(self, subtask: int) -> None:
        """Cut the connection of a subtask's process, which lives on. Raises NoSuchSubtask."""
        self._strike("lose-connection", subtask, self.simulated.transport.living(is_connected=True))

    def _strike(self, fault: str, subtask: int, processes: list[int]) -> None:
        if not 0 <= subtask < self.rig.setup.subtasks:
            raise NoSuchSubtask(
                f"there is no subtask {subtask}; this job has {self.rig.setup.subtasks}, from 0 on"
            )
        identity = self.rig.process_of(subtask)
        if identity in processes:
            self._world.strike(fault, processes.index(identity))
        else:
            self._world.say(f"subtask {subtask} has no such process at this moment")
            self._world.move()

    def restart_driver(self) -> None:
        """Kill the driver with all processes; another driver starts from the last checkpoint."""
        self._world.strike("crash")

    def go_back(self) -> None:
        """Let a coordinator fail the job, which restores its last checkpoint."""
        self._world.strike("fail-everything")

    def checkpoint(self) -> Future[int]:
        """Request a checkpoint and run the job; the future gives its id when it is completed."""
        self._world.say("requests a checkpoint")
        wanted = self.simulated.master.request_checkpoint()
        self._world.move()
        return wanted

    def tell(self, call: Callable[..., Any], *arguments: Any, operator_id: str = "") -> None:
        """Run `call(coordinator, *arguments)` on the job's event queue, as a timer of the
        coordinator would, and run the job.
        """
        name = operator_id or next(iter(self.coordinators))
        coordinator = self.coordinators[name]
        told = f"{_called(call)}({', '.join(map(repr, arguments))})"
        self._world.say(f"coordinator {name!r} runs {told}")
        self.rig.contexts[name].post(call, coordinator, *arguments)
        self._world.move()

    def request(self, request: Any, operator_id: str | None = None) -> Any:
        """Send a client's request to a coordinator and run the job.

        Return the answer, or None if there is none yet. An error of the coordinator is raised.
        """
        self._world.say(f"a client asks {request!r}")
        asked = self.simulated.master.request(operator_id or next(iter(self.coordinators)), request)
        self._world.move()
        return asked.result(timeout=0) if asked.done() else None

    def stop(self) -> None:
        """End the job with a last checkpoint."""
        self._world.say("the job is stopped")
        self.simulated.master.stop()
        self._world.move()

    # what its world needs

    def look_around(self) -> None:
        """See what has come up in the last step."""
        if self.line.simulated_start != self.simulated.starts:
            self.line = Line(self.simulated)
        self.rig.look_around()

    def take_rows(self) -> list[RowTaken]:
        """The rows of the last step."""
        rows = list(self.rig.rows)
        self.rig.rows.clear()
        return rows

    def take_calls(self) -> list[Call]:
        """The calls of the user's coordinators in the last step."""
        calls = list(self.rig.calls)
        self.rig.calls.clear()
        self.rig.sent.clear()
        return calls

    def is_at_rest(self) -> bool:
        """Return whether nothing is under way; what is late may come."""
        return self.simulated.is_steady() and not self.simulated.faults.late

    def release(self) -> bool:
        """Let what was held back, and what is late, go on; False if nothing was."""
        has_released = self.line.release()
        if self.simulated.faults.late and self.simulated.is_steady():
            self.simulated.faults.let_arrive(0)
            has_released = True
        return has_released

    def pass_time(self, until_s: float | None) -> bool:
        """Let time pass to the next timer, or to `until_s`; False when there is neither."""
        due_s = self.simulated.next_due_s()
        if due_s is None or (until_s is not None and due_s > until_s):
            if until_s is None:
                return False
            self.simulated.wait(max(0.0, until_s - self.now_s))
        else:
            self.simulated.advance()
        self.line.ask_again()
        self.look_around()
        return True

    def calm(self) -> None:
        """Let no more faults happen."""
        self.rig.strikes.snapshots.clear()
        self.rig.strikes.commits.clear()
        self.simulated.faults.calm()
        self.line.release()
        transport = self.simulated.transport
        for identity, process in list(transport.processes.items()):
            if process.is_cut:
                transport.kill(identity, INJECTED)

    def start_again(self) -> None:
        """Start another driver for a job that has failed, as who watches over it would."""
        self.simulated.crash_driver()
        self.look_around()

    def moment(self) -> str:
        """Tell what the job does, in a word: which fault met which moment is worth knowing."""
        job = self.simulated.machines
        if self.is_over:
            return "over"
        states = {attempt.state for attempt in job.attempt}
        doing = {
            "triggering": "snapshot",
            "pending": "barrier",
            "storing": "store",
        }.get(job.checkpoint.state)
        if job.lifecycle.state != "running":
            return str(job.lifecycle.state)
        if doing is not None:
            return doing
        if states - {"running"}:
            return "restore"
        return "commit" if not job.committer.is_settled() else "running"

    def why_not_at_rest(self) -> str:
        """One line of `account`, the first that says something."""
        failures = self.simulated.master.report.failures
        return failures[-1].reason.split("\n")[0] if failures else "something is under way"

    def account(self) -> str:
        """Tell what is not at rest, for a person to read."""
        return self.simulated.account()


def _called(call: Callable[..., Any]) -> str:
    """A function by its name, a lambda by its line."""
    function = call.func if isinstance(call, partial) else call
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__name__).rpartition("<locals>.")[2]
    if name == "<lambda>" and code is not None:
        return f"the lambda of {Place(code.co_filename, code.co_firstlineno)}"
    return str(name)
