"""Each way in which a shell could decide by what it reads of a machine, planted in the text of a
shell, is refused when it runs, or by the search. What the type check refuses of it stands in
`refused_reads.py`, where mypy complains once a read passes.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from epochgate.fsm import Handle, Handles
from epochgate.fsm.inside import machine_behind
from epochgate.models.checkpoint import Checkpoint
from epochgate.models.job import Job
from epochgate.runtime.limited import Limit, LimitedCalls
from epochgate.runtime.shell import job_master
from epochgate.runtime.testing import in_process
from tests.runtime.scripted import Script, simulated
from tests.setup import refused_reads
from tests.setup.test_machines_decide import ROOT, ways
from tests.spark import scripted_spark
from tests.spark.compaction.test_steps import Scripted

TASKS = (
    "runtime/shell/tasks.py",
    "states = self._master.checkpoints.subtask_states(subtask, checkpoint)",
)
WORKER = "runtime/shell/worker.py", "committables = _committables_of(self._operators, checkpoint)"
PLACING = "spark/placing.py", "self._looked_at_s = now_s"
COMPACTING = "spark/compaction/run.py", "self._system.compaction.start()"
Place = tuple[str, str]

NO_TRIGGER, NO_MACHINE = "is no trigger: outside of its rows", "is no machine of this system"

RUNS: Mapping[str, tuple[Place, str, str]] = {
    "guard of an array": (TASKS, "if self._attempts[subtask].is_running(): return", NO_TRIGGER),
    "state of an array": (TASKS, "if self._attempts[subtask].state: return", NO_TRIGGER),
    "state of a machine": (PLACING, "if self._placement.state: return", NO_TRIGGER),
    "state behind the system": (COMPACTING, "if self._system.compaction.state: return", NO_TRIGGER),
    "field behind the system": (COMPACTING, "if self._system.compaction.tries: return", NO_TRIGGER),
    "instance": (TASKS, "if job.instance('attempt', (0,)).state: return", NO_MACHINE),
    "values": (TASKS, "if job.values()['checkpoint']['state']: return", NO_MACHINE),
    "getattr": (TASKS, "if getattr(job.checkpoint, 'state'): return", NO_TRIGGER),
    "vars": (TASKS, "if vars(job.checkpoint)['state']: return", "'state'"),
    "a parameter": (TASKS, "if (lambda m: m.state)(job.checkpoint): return", NO_TRIGGER),
    "a list": (TASKS, "c = [job.checkpoint][0]\nif c.state: return", NO_TRIGGER),
    "a tuple": (TASKS, "c, _ = job.checkpoint, 1\nif c.state: return", NO_TRIGGER),
    "a variable": (WORKER, "t = self.task\nif t.state: return", NO_TRIGGER),
    "a shell's machine": (WORKER, "worker = self\nif worker.task.state: return", NO_TRIGGER),
}
"""What raises where it is planted: in which file, in front of which line, and with which words."""

SEARCHED: Mapping[str, tuple[str, str]] = {
    "refusal": (
        "from epochgate.fsm import TransitionRefused",
        "try:\n    job.checkpoint.stored(1)\nexcept TransitionRefused: return",
    ),
    "outcome": (
        "from epochgate.fsm.steps import Outcome as How",
        "if job.checkpoint.stored(1) is How.IGNORED: return",
    ),
    "pattern": (
        "from epochgate.models import Checkpoint",
        "match job.checkpoint:\n    case Checkpoint(state='x'): return",
    ),
    "self of a trigger": ("", "if job.checkpoint.store.__self__.state: return"),
    "self by its name": ("", "if getattr(job.checkpoint.store, '__self__').state: return"),
    "door for display": (
        "from epochgate.fsm.inside import shown",
        "if shown(job.checkpoint)['state']: return",
    ),
    "door for tests": (
        "from epochgate.fsm.inside import machines_behind as opened",
        "if opened(job).checkpoint.state: return",
    ),
    "module of doors": ("from epochgate.fsm import inside", "if inside.shown(job.request): return"),
    "package": ("import epochgate.fsm.inside as i", "if i.shown(job.request): return"),
    "a system of its own": (
        "from epochgate.models.task import TaskSystem as S",
        "if S().task.state: return",
    ),
    "a journal of its own": ("", "def record_event(event): event[1][0].state"),
}
"""What the search finds: an import, and what is planted in the text of a shell."""


def planted(place: Place, code: str) -> str:
    """The text of a shell with `code` in front of a line; `job` is what it holds of the job."""
    file, line = place
    text = (ROOT / file).read_text(encoding="utf-8")
    assert text.count(f" {line}\n") == 1, f"{file} has no line {line!r}"
    indent = text.partition(f"{line}\n")[0].rpartition("\n")[2]
    held = "job = self._master.job" if place == TASKS else ""
    return text.replace(line, f"\n{indent}".join([held, *code.split("\n"), line]))


def module_of(patch: pytest.MonkeyPatch, place: Place, code: str) -> Any:
    module = types.ModuleType(f"planted_{Path(place[0]).stem}")
    patch.setitem(sys.modules, module.__name__, module)  # where dataclasses look
    exec(compile(planted(place, code), place[0], "exec"), module.__dict__)  # noqa: S102  # ours
    return module


def take_a_checkpoint(patch: pytest.MonkeyPatch, owner: Any, name: str, planted: Any) -> str:
    """Return why a checkpoint of a job with the planted shell was not taken."""
    patch.setattr(owner, name, getattr(planted, name))
    job = simulated(Script())
    job.settle()
    job.master.request_checkpoint()
    job.settle()
    return " ".join(one.reason for one in job.master.report.failures)


def look_after_processes(patch: pytest.MonkeyPatch, planted: Any) -> str:
    patch.setattr(scripted_spark, "Placing", planted.Placing)
    scripted_spark.ScriptedSpark("host").look()
    return ""


def compact(planted: Any) -> str:
    limit = Limit("commit_timeout_s", 1.0)
    planted.CompactionRun(Scripted(), limit, LimitedCalls("compaction")).run()
    return ""


def what_comes_of(patch: pytest.MonkeyPatch, place: Place, code: str) -> str:
    """The words of the error that a planted read raises; none if it passes."""
    ways_to_run: dict[Place, Callable[[Any], str]] = {
        TASKS: lambda module: take_a_checkpoint(patch, job_master, "Tasks", module),
        WORKER: lambda module: take_a_checkpoint(patch, in_process, "Worker", module),
        PLACING: lambda module: look_after_processes(patch, module),
        COMPACTING: compact,
    }
    try:
        return ways_to_run[place](module_of(patch, place, code))
    except (AttributeError, KeyError) as error:
        return str(error)


@pytest.mark.parametrize("name", RUNS)
def test_a_planted_read_raises_where_it_is_reached(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, code, words = RUNS[name]
    assert words in what_comes_of(monkeypatch, place, code)


@pytest.mark.parametrize("place", [TASKS, WORKER, PLACING, COMPACTING], ids=lambda at: at[0])
def test_without_a_read_the_planted_shell_does_its_work(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert what_comes_of(monkeypatch, place, "kept = self") == ""


@pytest.mark.parametrize("name", SEARCHED)
def test_a_planted_way_around_handles_is_found(name: str) -> None:
    imported, code = SEARCHED[name]
    assert ways(planted(TASKS, code) + imported)
    assert not ways(planted(TASKS, "self._running_state = job"))


def test_the_text_of_a_handle_is_the_same_in_every_state() -> None:
    handle = Handles(Job, coordinators=0).checkpoint
    before = str(handle), repr(handle), f"{handle}"
    handle.trigger_next()
    assert machine_behind(handle).state == "pending"
    assert (str(handle), repr(handle), f"{handle}") == before


@pytest.mark.parametrize(
    "read", [one for name, one in vars(refused_reads).items() if name.startswith("by_")]
)
def test_what_the_type_check_refuses_raises_as_well(read: Callable[..., object]) -> None:
    with pytest.raises(AttributeError, match=f"{NO_TRIGGER}|{NO_MACHINE}"):
        read(Handles(Job, coordinators=1, subtasks=2))


def test_a_handle_fires_the_triggers_of_its_machine_and_has_nothing_else() -> None:
    handle: Handle[Checkpoint] = Handles(Job).checkpoint
    assert {*vars(handle)} == {*Checkpoint.triggers()}
    handle.restore(3, 5)
    assert machine_behind(handle).number == 5
