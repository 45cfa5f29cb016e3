"""The program factory as it travels to the tasks, and what is said when it cannot.

Decides which modules travel by value, and with them the source of the program's own code, which a
traceback in a task shows where no file has it; and which part of a factory is named as the one that
cannot be pickled: the variable of a function, or the attribute of an object, that fails by itself.
Runs on the driver.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any, Final

from epochgate.runtime.api.cells import WithSources, sources
from epochgate.runtime.api.operator import Program
from epochgate.spark.errors import ProgramNotPicklable
from epochgate.spark.user_modules import user_modules

DEPTH_MAX: Final = 5


def pickled(program_factory: Callable[[int], Program], by_value: Sequence[ModuleType]) -> bytes:
    """The program factory as it travels to the tasks. Raises ProgramNotPicklable."""
    try:
        try:
            modules = [*by_value, *user_modules()]
            data = _dumped(program_factory, modules)
            if not (texts := sources(data, modules)):
                return data
            return _dumped(WithSources(program_factory, texts), modules)
        except Exception:  # noqa: BLE001  # what is pickled may raise anything
            # What a module holds beside its code may not travel; executors may have the module.
            return _dumped(program_factory, by_value)
    except Exception as error:  # the same
        raise ProgramNotPicklable(
            f"the program factory {program_factory!r} cannot be sent to the tasks: "
            f"{_at_fault(program_factory, by_value)}{type(error).__name__}: {error}\n"
            "It and what it refers to must be picklable; open files, connections and the session "
            "itself belong into the program's operators, which open them in the task"
        ) from error


def _at_fault(program_factory: Any, by_value: Sequence[ModuleType]) -> str:
    path = culprit(program_factory, lambda value: _dumped(value, by_value))
    if path is None:
        return ""
    names, value = path
    return f"{' of '.join(map(repr, reversed(names)))} is a {type(value).__name__}, "


def culprit(
    value: Any, dumped: Callable[[Any], bytes], depth: int = 0
) -> tuple[list[str], Any] | None:
    """The names that lead from `value` to the innermost part that `dumped` raises for, and that
    part; none if no part raises by itself.
    """
    for name, part in _parts(value):
        try:
            dumped(part)
        except Exception:  # noqa: BLE001  # what is pickled may raise anything
            inner = culprit(part, dumped, depth + 1) if depth < DEPTH_MAX else None
            return ([name], part) if inner is None else ([name, *inner[0]], inner[1])
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, FunctionType):
        # Of a class body that is not filled, a variable has no value yet.
        with contextlib.suppress(ValueError):
            found = inspect.getclosurevars(value)
            yield from {**found.nonlocals, **found.globals}.items()
    elif not isinstance(value, type | ModuleType):
        yield from getattr(value, "__dict__", {}).items()


def _dumped(value: Any, by_value: Sequence[ModuleType]) -> bytes:
    with _traveling_by_value(by_value):
        data: bytes = _cloudpickle().dumps(value)
    return data


def _cloudpickle() -> Any:
    # Spark's own copy, which its tasks have too; it carries no types.
    from pyspark import cloudpickle

    return cloudpickle


@contextlib.contextmanager
def _traveling_by_value(modules: Sequence[ModuleType]) -> Iterator[None]:
    cloudpickle = _cloudpickle()
    known = cloudpickle.list_registry_pickle_by_value()
    added = {module.__name__: module for module in modules if module.__name__ not in known}
    for module in added.values():
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in added.values():
            cloudpickle.unregister_pickle_by_value(module)
