"""Every public name says what it is. Guards and actions of machines need not: their rows do."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from epochgate.runtime.store import CheckpointStore

PACKAGES = (
    "errors",
    "fsm",
    "fsm.closed",
    "fsm.explore",
    "fsm.testing",
    "reports",
    "runtime",
    "runtime.collect",
    "runtime.faulty_transport",
    "runtime.filtering",
    "runtime.replay",
    "runtime.simulation",
    "runtime.source",
    "runtime.store",
    "spark",
    "spark.ingest",
    "spark.job",
    "spark.session",
)


IMPLEMENTED: dict[str, tuple[type, ...]] = {
    "DirectoryCheckpointStore": (CheckpointStore,),
    "InMemoryCheckpointStore": (CheckpointStore,),
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
    """Whether a member has words of its own, or those of what it implements."""
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
