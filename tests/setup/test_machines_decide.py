"""Outside of models/ no machine is read: shells hold handles, which have triggers alone, and a read
is refused by the type check and raises AttributeError (`tests/setup/test_planted_reads.py` plants
them). This search finds the ways around handles; who takes one stands in `deciding.py`.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from epochgate.fsm import Machine, Outcome, System, TransitionRefused, inside
from epochgate.fsm.handles import system_of
from epochgate.fsm.inside import machine_behind, machines_behind, shown
from tests.setup.deciding import DECISIONS, WAYS, Decision

ROOT = Path(__file__).parents[2]
ROOMS = ("runtime", "spark", "epochgate", "diagrams")
"""Where shells are; what of epochgate/ is a link to another room is looked at there."""

REFUSED = {
    machine_behind: "the machine behind a handle",
    machines_behind: "the machines behind handles",
    system_of: "the machines behind handles",
    shown: "the state and fields of a machine, for display",
    TransitionRefused: "that a machine has refused a trigger tells its state",
    Outcome: "how a trigger has ended tells the machine's state",
}


class Ways(ast.NodeVisitor):
    """Collect what in a file leads around handles."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._machines: set[str] = set()
        """The names by which the file knows classes of machines and of systems."""

    def look_at(self, tree: ast.AST) -> None:
        """Look at the imports first: a name may be imported below its use."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    self._whole_module(name.name)
            elif isinstance(node, ast.ImportFrom) and _is_of_machines(node.module or ""):
                self._imported(node)
        self.visit(tree)

    def _imported(self, node: ast.ImportFrom) -> None:
        module = importlib.import_module(node.module or "")
        for name in node.names:
            imported = getattr(module, name.name, None)
            if imported is None or isinstance(imported, ModuleType):
                self._whole_module(f"{node.module}.{name.name}")
            elif callable(imported) and imported in REFUSED:
                self.found.append(name.name)
            elif (
                isinstance(imported, type)
                and issubclass(imported, Machine | System)
                and _is_of_machines(imported.__module__, "models")
            ):
                self._machines.add(name.asname or name.name)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Nor does the annotation of a variable."""
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """The annotation of a parameter makes no machine."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._named(node.name)
        for one in (*node.decorator_list, node.args, *node.body):
            self.visit(one)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if _name_of(node.value) in ("Handle", "Handles"):
            return
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        given: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        if _name_of(node.func) == "Handles" and node.args and _name_of(node.args[0]):
            given = given[1:]
        for one in (node.func, *given):
            self.visit(one)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self._machines:
            self.found.append(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._named(node.attr)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        self._named(node.value)

    def _named(self, name: object) -> None:
        """`__self__` of a trigger is its machine; an event that a journal records has it too."""
        if name == "__self__" or name == "record_event" or name == inside.__name__:
            self.found.append(str(name))

    def _whole_module(self, name: str) -> None:
        if _is_of_machines(name):
            self.found.append(name)


def _is_of_machines(module: str, *rooms: str) -> bool:
    return module.split(".")[:1] == ["epochgate"] and module.split(".")[1:2] in (
        [[room] for room in rooms or ("fsm", "models")]
    )


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def ways(text: str) -> list[str]:
    """The ways around handles that a file's text takes."""
    visitor = Ways()
    visitor.look_at(ast.parse(text))
    return visitor.found


def files() -> Iterator[Path]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            inside = path.relative_to(ROOT / room).parts
            if not (ROOT / room / inside[0]).is_symlink():
                yield path


def test_who_goes_around_handles_stands_in_the_list_with_the_reason() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): set(taken)
        for path in files()
        if (taken := ways(path.read_text(encoding="utf-8")))
    }
    listed = {file: set(way.names) for file, way in WAYS.items()}
    assert found == listed, "let a row and an effect say what is read, or list it with the reason"


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    """The functions and methods of a file, by their qualified names."""
    found = {}

    def walk(body: list[ast.stmt], before: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                walk(node.body, f"{before}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                found[before + node.name] = node

    walk(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return found


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda one: f"{one.file}:{one.function}")
def test_a_decision_that_is_no_row_is_still_there(decision: Decision) -> None:
    found = functions(ROOT / decision.file).get(decision.function)
    assert found is not None, "take it off the list: there is no such function any more"
    assert decision.by in ast.unparse(found), "take it off the list: it does not decide by that"
