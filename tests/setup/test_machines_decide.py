"""Code outside models/ that reads a machine's state, field or guard takes a decision that no row
shows and no check explores; what remains stands below, with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochgate.fsm import Machine, System
from epochgate.models.batch_decision import BatchDecisions
from epochgate.models.batch_plan import BatchPlans
from epochgate.models.batch_snapshot import BatchSnapshots
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.models.control_update import ControlUpdates
from epochgate.models.in_flight import RecordsInFlight
from epochgate.models.job import Job
from epochgate.models.placement import Placements
from epochgate.models.query_batch import QueryBatches
from epochgate.models.receive_window import ReceiveWindows
from epochgate.models.recreation import Recreations
from epochgate.models.resident import Residents
from epochgate.models.send_window import SendWindows
from epochgate.models.setting_change import SettingChanges
from epochgate.models.split_assignment import SplitAssignments
from epochgate.models.task import TaskSystem

ROOT = Path(__file__).parents[2]

SYSTEMS: tuple[type[System], ...] = (
    Job,
    ConcurrentJob,
    TaskSystem,
    BatchSnapshots,
    Recreations,
    SplitAssignments,
    QueryBatches,
    BatchDecisions,
    ControlUpdates,
    BatchPlans,
    Placements,
    Residents,
    RecordsInFlight,
    SettingChanges,
    SendWindows,
    ReceiveWindows,
)
"""The systems that run; each machine goes by the same name in all of them."""

ROOMS = ("runtime", "spark", "epochgate/commands", "epochgate/benchmarks", "diagrams")

READS = {
    "epochgate/benchmarks/silent.py": "a benchmark acknowledges the checkpoint under way",
    "runtime/testing/fuzzing/job.py": "the fuzzer judges what it sees",
    "runtime/testing/fuzzing/walks.py": "the fuzzer goes on until a situation is reached",
    "runtime/shell/recreate_on_reset.py": "a test or a debugger asks for the coordinator",
    "runtime/testing/playing/actions.py": "a schedule names an attempt and a checkpoint",
    "runtime/testing/playing/interleaving.py": "the closed job has no fence around coordinators",
    "runtime/testing/playing/late.py": "a played schedule waits until its next step can happen",
    "runtime/testing/playing/scripted.py": "a played schedule says which process speaks",
    "runtime/testing/playing/stage.py": "a played schedule says which attempt a message is for",
    "runtime/testing/worlds/job.py": "a report says what a job was doing when a fault struck",
    "runtime/testing/worlds/trace.py": "the page of a failure shows the states behind each step",
    "runtime/testing/worlds/rig.py": "a claim looks at the operators that are open",
    "runtime/testing/simulation.py": "a simulation runs until its job is steady",
    "runtime/source/assignment.py": "the user's call is refused whole, before any split is sent",
    "runtime/steering/history.py": "what is forgotten by its number is not shown either",
    "spark/job.py": "the status of a job is shown",
}


def machine_classes() -> dict[str, list[type[Machine]]]:
    """The classes that go by each name."""
    found: dict[str, list[type[Machine]]] = {}
    for system in SYSTEMS:
        for name, machine in system.MACHINES.items():
            found.setdefault(name, []).append(machine)
    return found


def readable(machine: type[Machine]) -> set[str]:
    """The names of a machine's fields, guards and actions, and of its state."""
    named = {name for name in dir(machine) if not name.startswith("_")} - {*dir(Machine)}
    triggered = {*machine.triggers(), *machine.PORTS, *machine.INDEX}
    return (named | {*machine.FIELDS}) - triggered | {"state", "accepted"}


READABLE = {
    name: set[str]().union(*map(readable, classes)) for name, classes in machine_classes().items()
}
TRIGGERS = {
    name for classes in machine_classes().values() for each in classes for name in each.triggers()
}
ANY_MACHINE = set[str]().union(*READABLE.values()) - TRIGGERS


class Reads(ast.NodeVisitor):
    """Collect the reads of machines in a file; a variable stands for the machine it was given."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._variables: dict[str, set[str]] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, self._variables = self._variables, dict(self._variables)
        self.generic_visit(node)
        self._variables = outer

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._bind(target, node.value)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._bind(node.target, node.value)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._bind(node.target, node.iter)
        self.generic_visit(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._visit_comprehension(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._visit_comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._visit_comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._visit_comprehension(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in self._readable(node.value):
            self.found.append(f"{node.lineno}: {ast.unparse(node)}")
        self.generic_visit(node)

    def _visit_comprehension(
        self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp
    ) -> None:
        for clause in node.generators:
            self._bind(clause.target, clause.iter)
        self.generic_visit(node)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        readable = self._readable(value)
        last = target.elts[-1] if isinstance(target, ast.Tuple) else target
        if isinstance(last, ast.Name) and readable:
            self._variables[last.id] = readable

    def _readable(self, value: ast.expr) -> set[str]:
        """What may be read of a machine that this expression gives; nothing, if it gives none."""
        match value:
            case ast.Subscript(value=inner) | ast.NamedExpr(value=inner):
                return self._readable(inner)
            case ast.Attribute(attr="machine" | "_machine") | ast.Name(id="machine"):
                return ANY_MACHINE
            case ast.Attribute(attr=name) if name in READABLE:
                return READABLE[name]
            case ast.Name(id=name):
                return self._variables.get(name, set())
            case ast.Call(func=ast.Attribute(attr="values" | "items", value=inner)):
                return self._readable(inner)
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
                return self._readable(inner)
            case _:
                return set()


def reads(text: str) -> list[str]:
    """The line and the expression of each read of a machine in a file's text."""
    visitor = Reads()
    visitor.visit(ast.parse(text))
    return visitor.found


def files_that_read() -> Iterator[tuple[str, list[str]]]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if found := reads(path.read_text(encoding="utf-8")):
                yield path.relative_to(ROOT).as_posix(), found


def test_what_reads_a_machine_stands_in_the_list_with_its_reason() -> None:
    found = dict(files_that_read())
    unlisted = {name: lines for name, lines in found.items() if name not in READS}
    assert not unlisted, "a row and an effect must say what is read here"
    assert not READS.keys() - found.keys(), "take the file off the list: it reads no machine"


@pytest.mark.parametrize(
    "code",
    [
        "if self._job.attempt[place].is_running(): pass",
        "for place, attempt in enumerate(job.attempt):\n    attempt.number",
        "machine = self.job.checkpoint\nmachine.state",
        "[gateway for gateway in job.gateway.values() if gateway.attempt]",
        "lambda: self._machine.state",
        "if (holder := job.holder[0]).has_failed: pass",
    ],
)
def test_a_read_of_a_machine_is_found(code: str) -> None:
    assert len(reads(code)) == 1


@pytest.mark.parametrize(
    "code",
    ["self._job.attempt[place].fail(identity, reason, False)", "result.state", "attempt + 1"],
)
def test_a_trigger_or_anything_else_is_no_read(code: str) -> None:
    assert reads(code) == []
