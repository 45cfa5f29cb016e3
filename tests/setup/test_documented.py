"""Every public name says what it is, and what it raises. Guards and actions of machines need not:
their rows do.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from epochgate.models.batch_decision import DecisionPort
from epochgate.models.batch_plan import PlanPort
from epochgate.models.control_update import VersionPort
from epochgate.models.created_once import EntryPort
from epochgate.runtime.api.restart_strategies import RestartStrategy
from epochgate.runtime.filesystem import FileSystem, LocalFileSystem, WrittenOnce
from epochgate.runtime.objects.client import ObjectStore
from epochgate.runtime.shell.blocking_work import BlockingWork
from epochgate.runtime.store import CheckpointStore
from tests.setup.raised import raised

PACKAGES = (
    "errors",
    "fsm",
    "fsm.closed",
    "fsm.checker",
    "reports",
    "runtime",
    "runtime.shell.clock",
    "runtime.collect",
    "runtime.testing.certification",
    "runtime.testing.faulty_filesystem",
    "runtime.testing.faulty_transport",
    "runtime.filesystem",
    "runtime.filtering",
    "runtime.observing.history",
    "runtime.observing.listening",
    "runtime.observing.log",
    "runtime.observing.metrics_page",
    "runtime.observing.own_thread",
    "runtime.observing.run_summary",
    "runtime.observing.status",
    "runtime.testing.in_process",
    "runtime.objects.client",
    "runtime.objects.files",
    "runtime.objects.log",
    "runtime.shell.blocking_work",
    "runtime.testing.playing",
    "runtime.testing.scripted",
    "runtime.api.restart_strategies",
    "runtime.testing.simulation",
    "runtime.savepoints",
    "runtime.savepoints.asking",
    "runtime.requests.listening",
    "runtime.requests.place",
    "runtime.source",
    "runtime.steering",
    "runtime.store",
    "pipeline",
    "testing",
    "spark",
    "spark.counting_sink",
    "spark.delta_sink",
    "spark.extras",
    "spark.files",
    "spark.iceberg_sink",
    "spark.ingest",
    "spark.job",
    "spark.parquet_sink",
    "spark.pipeline",
    "spark.postgres_sink",
    "spark.session",
    "spark.streaming",
    "spark.wire",
)


IMPLEMENTED: dict[str, tuple[type, ...]] = {
    "ComposedOperations": (FileSystem, WrittenOnce),
    "Deciding": (EntryPort, DecisionPort),
    "DirectoryCheckpointStore": (CheckpointStore,),
    "ExponentialDelay": (RestartStrategy,),
    "FaultyFileSystem": (FileSystem, WrittenOnce, LocalFileSystem),
    "FailureRate": (RestartStrategy,),
    "FixedDelay": (RestartStrategy,),
    "InMemoryCheckpointStore": (CheckpointStore,),
    "ObjectCheckpointStore": (CheckpointStore,),
    "LocalFileSystem": (FileSystem, WrittenOnce),
    "ObjectFiles": (WrittenOnce,),
    "ObstoreObjects": (ObjectStore,),
    "NoRestart": (RestartStrategy,),
    "SimulatedWork": (BlockingWork,),
    "ThreadedWork": (BlockingWork,),
    "Planning": (EntryPort, PlanPort),
    "Updating": (VersionPort,),
}
"""Classes that follow a protocol without deriving from it."""


def public(module: Any) -> Iterator[tuple[str, Any]]:
    own = [n for n, o in vars(module).items() if getattr(o, "__module__", "") == module.__name__]
    for name in getattr(module, "__all__", own):
        thing = getattr(module, name)
        if not name.startswith("_") and (inspect.isclass(thing) or inspect.isfunction(thing)):
            yield name, thing


def members(cls: type) -> Iterator[str]:
    for name, member in vars(cls).items():
        is_code = inspect.isfunction(member) or isinstance(
            member, property | classmethod | staticmethod
        )
        if is_code and not name.startswith("_"):
            yield name


def says_what_it_is(cls: type, name: str) -> bool:
    """Return whether a member has words of its own, or those of what it implements."""
    described = (*cls.__mro__, *IMPLEMENTED.get(cls.__name__, ()))
    return any(inspect.getdoc(vars(base)[name]) for base in described if name in vars(base))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_docstring(package: str) -> None:
    if package.startswith("spark"):
        pytest.importorskip("pyspark")
    silent = []
    for name, thing in public(importlib.import_module(f"epochgate.{package}")):
        if not thing.__doc__:
            silent.append(name)
        if inspect.isclass(thing):
            silent += [f"{name}.{m}" for m in members(thing) if not says_what_it_is(thing, m)]
    assert silent == []


SPECIAL = ("__init__", "__post_init__", "__iter__", "__next__", "__enter__", "__getitem__")


def callables(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Return what a caller may call of a class's own, constructors and properties included."""
    for name, member in vars(cls).items():
        function = member
        if isinstance(member, property):
            function = member.fget
        elif isinstance(member, classmethod | staticmethod):
            function = member.__func__
        is_its_own = inspect.isfunction(function) and function.__name__ == name
        is_written = is_its_own and function.__code__.co_filename != "<string>"
        if is_written and (name in SPECIAL or not name.startswith("_")):
            yield name, function


def words_about(cls: type, name: str) -> str:
    """List what is said of a member, where it stands or at its class, or by what it implements."""
    described = (*cls.__mro__, *IMPLEMENTED.get(cls.__name__, ()))
    known = [base for base in described if name in vars(base)]
    return " ".join(f"{inspect.getdoc(vars(base)[name])} {base.__doc__}" for base in known)


def undocumented(name: str, thing: Any) -> Iterator[str]:
    """Each error that it raises by itself and that nothing said about it names."""
    if not inspect.isclass(thing):
        yield from (f"{name}: {error}" for error in raised(thing) if error not in thing.__doc__)
        return
    for member, function in callables(thing):
        words = words_about(thing, member)
        errors = [error for error in raised(function, thing) if error not in words]
        yield from (f"{name}.{member}: {error}" for error in errors)


@pytest.mark.parametrize("package", PACKAGES)
def test_what_a_public_name_raises_by_itself_stands_in_its_docstring(package: str) -> None:
    if package.startswith("spark"):
        pytest.importorskip("pyspark")
    names = public(importlib.import_module(f"epochgate.{package}"))
    assert [problem for name, thing in names for problem in undocumented(name, thing)] == []


class Example:
    """Has a function for each way of raising."""

    def __init__(self, count: int) -> None:
        if count < 0:
            raise ValueError(count)

    def near(self) -> None:
        """Raises through a helper of its class and one of its module."""
        self._far()

    def made(self) -> None:
        """Raises what another function makes."""
        raise _made()

    def documented(self) -> None:
        """Raises KeyError."""
        raise KeyError

    def caught(self) -> None:
        """Raises nothing."""
        try:
            self._far()
        except (OSError, LookupError):
            return

    def passed_on(self) -> None:
        """Raises what it was told of."""
        try:
            self._far()
        except LookupError:
            raise

    def _far(self) -> None:
        _farther()


def _farther() -> None:
    raise LookupError


def _made() -> TimeoutError:
    return TimeoutError()


def test_an_error_is_found_behind_helpers_too() -> None:
    assert list(undocumented("Example", Example)) == [
        "Example.__init__: ValueError",
        "Example.near: LookupError",
        "Example.made: TimeoutError",
        "Example.passed_on: LookupError",
    ]
