"""The stage on which a schedule is played twice: by the closed job's machines and by the production
runtime, which are compared after every step.

Compared are the state and every field of each machine of the job, and of the task machine in each
living process; of channels of opaque values, which hold real events here and numbers there, the
lengths; of identities their order, since the transport numbers all processes together, and where
the closed job renames attempts and identities, which of them are the same. Not compared
is what stands for the world in the model: it has its counterpart in what is possible next, which
must be the same, and in the record of real values, against which I1 to I3 are held.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from epochgate.errors import InvariantBroken, UsageError
from epochgate.fsm import machines
from epochgate.fsm.checker.schedule import ClaimBroken, MachineStage, StateForbidden, play_on
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.fields import ArrayField, FieldSpec, FifoField, IntField
from epochgate.fsm.inside import machine_behind
from epochgate.fsm.machine import Machine
from epochgate.models.closed.job import ClosedJob
from epochgate.models.job import Job
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.testing.fuzzing.record import InvariantViolated
from epochgate.runtime.testing.playing.action import Action
from epochgate.runtime.testing.playing.actions import ACTIONS
from epochgate.runtime.testing.playing.scripted import ScriptedJob

IDENTITIES, ATTEMPTS, CHECKPOINTS = "identities", "attempts", "checkpoints"
FORGOTTEN = ("gateway.latest", "lifecycle.restarts")
"""What a closed job that renames numbers forgets once nothing can differ by it any more."""


class Diverged(InvariantBroken):
    """The runtime did not do what the closed job's machines did; the message says where first."""


class NotPlayable(UsageError):
    """A closed system whose schedules mean nothing to the production runtime."""


def playable(system: type[ClosedSystem], actions: Mapping[str, Action] = ACTIONS) -> str:
    """Return why schedules of the system cannot be played on the production runtime by these
    actions; empty if they can.
    """
    if not issubclass(system, ClosedJob):
        return f"{system.__name__} is not made of the runtime's machines"
    if system.MACHINES["task"] is not ClosedJob.MACHINES["task"]:
        return f"{system.__name__} has a task machine of its own, and worker processes have theirs"
    keys = [f"{step.machine}.{step.trigger}" for step in system.STEPS]
    if unknown := [key for key in keys if key not in actions]:
        return f"{system.__name__} has the step {unknown[0]}, which is no action of the runtime"
    return ""


def machines_of(system: type[ClosedJob]) -> type[Job]:
    """The job that runs with the machines of a closed system, variants included."""
    own = {n: m for n, m in system.MACHINES.items() if n in Job.MACHINES and m != Job.MACHINES[n]}
    if not own:
        return Job
    body = {"__module__": system.__module__, **{n: machines(m) for n, m in own.items()}}
    return type(f"{system.__name__}Machines", (Job,), body)


class ProductionStage:
    """Plays on a production job with the constants and machines of `system`.

    Raises NotPlayable.
    """

    actions: ClassVar[Mapping[str, Action]] = ACTIONS
    scripted: ClassVar[type[ScriptedJob]] = ScriptedJob

    def __init__(self, system: ClosedSystem) -> None:
        if why := playable(type(system), self.actions):
            raise NotPlayable(f"{why}; play its schedules with epochgate.fsm.checker.schedule.play")
        assert isinstance(system, ClosedJob)
        self.machines = MachineStage(system)
        self.job = self.scripted(system, self.machines_of(type(system)), self.prepare)
        self._is_renaming = system.constants.get("renumbered", 0) > 0
        counts_again = any(step.trigger == "wrap" for step in system.STEPS)
        self._forgotten = FORGOTTEN if self._is_renaming or counts_again else ()
        self._actions: dict[str, tuple[str, tuple[int, ...]]] = {
            name: (f"{step.machine}.{step.trigger}", machine.index)
            for name, (step, machine) in zip(
                self.machines.steps, system.step_instances(), strict=True
            )
        }

    def machines_of(self, system: type[ClosedJob]) -> type[Job]:
        """Return the job that runs with the machines of a closed system, variants included."""
        return machines_of(system)

    def prepare(self, master: JobMaster) -> None:
        """See the job master of each start, before it begins."""

    @property
    def system(self) -> ClosedSystem:
        """Return the model whose schedule is played."""
        return self.machines.system

    @property
    def steps(self) -> dict[str, bool]:
        """Return what can be done next, by name."""
        return self.machines.steps

    def changes_nothing(self, step: str) -> bool:
        """Return whether a step is one that must make no difference."""
        return self.machines.changes_nothing(step)

    def possible(self) -> list[str]:
        """Return what is possible here and there; raises Diverged when that is not the same."""
        expected, found = self.machines.possible(), self.really_possible()
        for step in dict.fromkeys((*expected, *found)):
            if step not in found:
                why = self.actions[self._actions[step][0]].else_
                raise Diverged(f"{step} is possible in the model, and in the runtime not: {why}")
            if step not in expected:
                raise Diverged(f"{step} is possible in the runtime, and not in the model")
        return expected

    def really_possible(self) -> list[str]:
        """Return what the runtime has something for, within the bounds of the closed job."""
        return [
            name
            for name, (key, index) in self._actions.items()
            if self.actions[key].is_possible(self.job, *index)
        ]

    def take(self, step: str) -> None:
        """Take a step here and there; raises ClaimBroken for what the runtime shows, and Diverged.

        A violation that only the model shows is a divergence too, but for a property of machines
        whose state is the same in both.
        """
        __tracebackhide__ = True
        expected: ClaimBroken | None = None
        try:
            self.machines.take(step)
        except ClaimBroken as broken:
            expected = broken
        key, index = self._actions[step]
        try:
            self.actions[key].happen(self.job, *index)
        except InvariantViolated as violated:
            raise ClaimBroken(str(violated)) from None
        except Exception as error:
            # Whatever it is, in production the queue would have stopped with it.
            raise ClaimBroken(f"the job master has stopped: {error}") from error
        different = self.differences()
        if different:
            why = f" (the model: {expected})" if expected else ""
            raise Diverged(f"after {step}: {different[0]}{why}")
        if expected is not None and not isinstance(expected, StateForbidden):
            raise Diverged(
                f"{step} breaks a claim in the model, and not in the runtime: {expected}"
            )
        if expected is not None:
            raise expected

    def differences(self) -> list[str]:
        """Every field that holds something else in the runtime than in the model."""
        found = []
        for name in self.job.job.MACHINES:
            for real in self.job.job.instances(name):
                model = self.system.instance(name, real.index)
                found += self._compared(name, model, real)
        for subtask, model in enumerate(self.system.instances("task")):
            process = self.job.living(subtask)
            if process is not None and not process.worker.is_over:
                found += self._compared("task", model, machine_behind(process.worker.task))
        return found

    def _compared(self, name: str, model: Machine, real: Machine) -> list[str]:
        place = name + "".join(f"[{i}]" for i in model.index)
        expected, found = model.values(), real.values()
        translated = self._related if self._is_renaming else self._ranked
        different = []
        for field, value in expected.items():
            spec = model.FIELDS.get(field)
            told, seen = shape(spec, value), shape(spec, found[field])
            if isinstance(spec, IntField) and spec.bound in (ATTEMPTS, IDENTITIES):
                told, seen = translated(model, spec, told), translated(real, spec, seen)
            if isinstance(spec, IntField) and spec.bound == CHECKPOINTS:
                seen = self.job.renaming.checkpoint(name, seen)
            if isinstance(spec, FifoField) and spec.item == CHECKPOINTS:
                seen = [self.job.renaming.checkpoint(name, number) for number in seen]
            if told != seen and f"{name}.{field}" not in self._forgotten:
                different.append(f"{place}.{field} is {told!r} in the model, and really {seen!r}")
        return different

    def _ranked(self, machine: Machine, spec: IntField, value: int) -> int:
        """An identity as the closed job counts it: how many processes of its subtask connected."""
        if spec.bound == ATTEMPTS or machine.system is self.system or not value:
            return value
        return self.job.identities[machine.index[0]].index(value) + 1

    def _related(self, machine: Machine, spec: IntField, value: int) -> object:
        """Return how a number stands to the current one, which is what it says where numbers are
        renamed.
        """
        attempt = machine.system.attempt[machine.index[machine.INDEX.index("subtask")]]
        if spec.bound == ATTEMPTS:
            return value - attempt.number
        return "newer" if value > attempt.identity else "known" if value else "none"


def shape(spec: FieldSpec | None, value: Any) -> Any:
    """A field's value; of a channel, which may hold opaque values, the length, or the checkpoints
    that it holds.
    """
    if isinstance(spec, ArrayField):
        return [shape(spec.item, item) for item in value]
    if isinstance(spec, FifoField):
        return list(value) if spec.item == CHECKPOINTS else len(value)
    return value


def play(
    system: ClosedSystem, *schedule: str, cycle: int | None = None, promise: str = ""
) -> list[str]:
    """Play a schedule on the production runtime with the machines of a closed job, as
    `fsm.checker.schedule.play_on` does.

    Raises ClaimBroken, Diverged, NotPlayable and StepUnknown.
    """
    __tracebackhide__ = True
    return play_on(ProductionStage(system), schedule, cycle=cycle, promise=promise)
