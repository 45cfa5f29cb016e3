"""Exactly-once coordination for Spark jobs, from protocols declared once as state machines.

Names are imported when they are first used, and so are the packages that have more of them:

    pipeline   jobs of a source, a function and a sink     spark     sessions, `run_job`
    runtime    coordinators, operators, sinks, events      testing   simulated tests
    fsm        machines, and claims about them             models    the machines that run

`epochgate.testing` and what checks machines are the distribution epochgate-proving.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from epochgate import proving
from epochgate.lazy import lazily

__version__ = "0.1.0"
_PACKAGES = ("fsm", "models", "pipeline", "runtime", "spark", "testing")

_get, _, _names = lazily(__name__)
__all__ = [*_names, "__version__"]

sys.meta_path.append(proving.Finder)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"epochgate.{name}")
    return _get(name)


def __dir__() -> list[str]:
    return [*__all__, *_PACKAGES]
