"""Finds the user's transform by its name, `module:function`.

Decides what is wrong with the name before Spark starts. Leaves calling it to
`epochgate.spark.files.transform`. Runs on the driver.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from epochgate.errors import UsageError
from epochgate.spark.files import TransformFunction


class TransformNotFound(UsageError):
    """The name of the transform leads nowhere."""


class TransformNotCallable(UsageError):
    """The name of the transform leads to something that cannot be called."""


class TransformBroken(UsageError):
    """The module of the transform cannot be imported."""


def load_transform(name: str) -> TransformFunction:
    """The function that `module:function` names; the working directory is searched as well.

    Raises TransformNotFound, TransformNotCallable or TransformBroken.
    """
    module_name, colon, path = name.partition(":")
    if not colon or not module_name or not path:
        raise TransformNotFound(
            f"transform {name!r} is not of the form module:function, such as my_rules:clean"
        )
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise _broken(module_name, error) from error
        raise TransformNotFound(
            f"transform {name!r}: there is no module {error.name!r}. It was looked for in "
            f"{os.getcwd()!r} and on Python's path; run the command from the directory that holds "
            f"{error.name.split('.')[0]}.py, or set PYTHONPATH"
        ) from error
    except (Exception, SystemExit) as error:  # the user's module may be a script
        raise _broken(module_name, error) from error
    for attribute in path.split("."):
        if not hasattr(found, attribute):
            defined = [n for n, v in vars(found).items() if callable(v) and not n.startswith("_")]
            raise TransformNotFound(
                f"transform {name!r}: module {module_name!r} has no {path!r}; it has "
                f"{', '.join(sorted(defined)) or 'no function'}"
            )
        found = getattr(found, attribute)
    return require_callable(found, name)


def require_callable(function: Any, name: str) -> TransformFunction:
    """`function`, or TransformNotCallable."""
    if not callable(function):
        raise TransformNotCallable(
            f"transform {name!r} is a {type(function).__name__}, and must be a function that takes "
            "a pyarrow.RecordBatch and returns one (or a Table, several, or None); or a DataFrame"
        )
    checked: TransformFunction = function
    return checked


def _broken(module_name: str, error: BaseException) -> TransformBroken:
    return TransformBroken(
        f"the transform's module {module_name!r} cannot be imported: "
        f"{type(error).__name__}: {error}. Correct it, or install what it needs"
    )
