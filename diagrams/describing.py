"""Machines as plain data, read from their classes; run as a script, in a child, of a revision.

`epochgate.diagrams.revision` starts it with the names of machines, on the code of another revision,
and reads JSON from its output. It therefore uses only what every revision of `epochgate.fsm` has,
and imports nothing of `epochgate.diagrams`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
import textwrap
from typing import Any

from epochgate.fsm import Machine, System


def data_of(name: str, machine: Any) -> dict[str, Any]:
    """Describe one machine: its states, its rows, and the text of each of its methods."""
    about = (inspect.getdoc(machine) or "").split("\n\n")[0].replace("\n", " ")
    return {
        "name": name,
        "title": machine.__name__,
        "about": about,
        "index": [*machine.INDEX],
        "states": [*machine.STATES],
        "initial": machine.INITIAL,
        "terminal": [*machine.TERMINAL],
        "is_read": bool(getattr(machine, "IS_READ", False)),
        "fields": {name: repr(field) for name, field in machine.FIELDS.items()},
        "rows": [_row(machine, row) for row in machine.ROWS],
        "methods": methods(machine),
    }


def _row(machine: Any, row: Any) -> dict[str, Any]:
    sources = machine.STATES if row.source == "*" else row.source
    return {
        "trigger": row.trigger,
        "source": [sources] if isinstance(sources, str) else [*sources],
        "dest": row.dest,
        "when": row.when,
        "after": [*row.actions],
        "because": row.because,
        "is_ignored": bool(row.is_ignored),
    }


def methods(machine: Any) -> dict[str, tuple[str, str]]:
    """Return each method as two texts: without comments, docstrings and line breaks of its own, to
    compare, and as it is written, to read.
    """
    found: dict[str, tuple[str, str]] = {}
    for kind in machine.__mro__:
        if kind.__module__.startswith("epochgate.fsm.") or kind is object:
            continue
        for name, value in vars(kind).items():
            if name in found or getattr(value, "is_trigger", False):
                continue
            if inspect.isfunction(value) and (texts := texts_of(value)):
                found[name] = texts
    return found


def texts_of(function: Any) -> tuple[str, str] | None:
    """Return the two texts of a function; None where its source is not to be had."""
    try:
        written = textwrap.dedent(inspect.getsource(function)).rstrip()
        tree = ast.parse(written)
    except (OSError, TypeError, SyntaxError):
        return None
    node = tree.body[0]
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
        node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(node), written


def named(name: str) -> dict[str, Any]:
    """Return the machines that `module:attribute` stands for: a machine, a system, or a dict of
    machines. LookupError where the module or the attribute is not there.
    """
    module_name, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise LookupError(name) from error
        raise
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise LookupError(name)
    if isinstance(found, dict):
        return found
    if isinstance(found, type) and issubclass(found, System):
        return dict(found.MACHINES)
    if not (isinstance(found, type) and issubclass(found, Machine)):
        from epochgate.fsm.existing import read_if_machine

        read = read_if_machine(found)
        if read is None:
            raise LookupError(name)
        found = read.machine
    return {attribute or module_name: found}


def main(names: list[str]) -> None:
    """Print the machines of all names that are there, each with its name, and the names' files."""
    described: dict[str, Any] = {}
    files: dict[str, str] = {}
    for name in names:
        try:
            machines = named(name)
        except LookupError:
            continue
        files[name] = str(sys.modules[name.partition(":")[0]].__file__)
        described |= {key: (name, data_of(key, each)) for key, each in machines.items()}
    json.dump({"machines": described, "files": files}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
