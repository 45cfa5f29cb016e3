"""The examples in docstrings say what the functions do."""

from __future__ import annotations

import doctest
import importlib
import linecache
import pkgutil

import pytest

import epochgate

OF_OTHERS = "epochgate.benchmarks.peers.programs."
"""Run in environments of the loaders that they measure."""
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(epochgate.__path__, "epochgate.")
    if not module.name.endswith("__main__") and not module.name.startswith(OF_OTHERS)
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # For each docstring doctest makes a debugger, which would ask the disk whether any source file
    # that was ever shown has changed.
    monkeypatch.setattr(linecache, "checkcache", lambda *_: None)
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
