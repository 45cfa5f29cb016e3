"""Coordinators by name: a driver loads any that its Python can import.

The counterpart of the user code class loader that Apache Flink's OperatorCoordinator.Context hands
out. There a job's classes are unknown to the process that runs its coordinators; here coordinators
run in the user's own driver process, so what the program could import, a coordinator can too, by
the names that Python has for it. Tasks get their code otherwise, with the program (`by_value` and
Spark's own ways), and a name means the same on both sides where both have the module.

Decides nothing about trust: importing runs code. Give it names from the job's own configuration or
checkpoints, and look names that come from elsewhere up in a table instead. Nothing is unpickled.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from epochgate.errors import UsageError


class CannotLoad(UsageError):
    """A name does not lead to anything that the driver's Python has."""


def load(name: str) -> Any:
    """Return what `name`, "package.module:qualified.name", stands for; imports the module.

    Raises CannotLoad, which says whether the module or the name within it is missing.

    >>> load("json:decoder.JSONDecoder").__name__
    'JSONDecoder'
    """
    module_name, colon, qualified = name.partition(":")
    if not (module_name and colon and qualified):
        raise CannotLoad(f"{name!r} is no name of code; write it as 'package.module:name'")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise CannotLoad(
            f"{name!r} cannot be loaded: the driver's Python cannot import {module_name!r}: "
            f"{error}. Install the module on the driver, or put its folder on the driver's "
            f"PYTHONPATH; what was sent to the executors is not looked at"
        ) from error
    try:
        return functools.reduce(getattr, qualified.split("."), module)
    except AttributeError as error:
        raise CannotLoad(
            f"{name!r} cannot be loaded: {error}. A name within a function or made later than at "
            f"import cannot be reached by name"
        ) from error
