"""Importing what a user names on the command line as module:Class."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from epochgate.errors import UsageError


def named_class(name: str, unknown: type[UsageError]) -> tuple[str, str, Any]:
    """Import what is named as module:Class, and return the module's name, the class's, and the
    class, or None if the module has none of that name; the current folder is looked into first.

    Raises `unknown` for a name without a module, and for a module that is not there.
    """
    module_name, _, attribute = name.partition(":")
    if module_name.endswith(".py"):
        dotted = ".".join(Path(module_name).with_suffix("").parts)
        raise unknown(
            f"{name!r} names a file; write the module: {dotted}{':' * bool(attribute)}{attribute}"
        )
    if not module_name or module_name.startswith("."):
        raise unknown(f"{name!r} names no module; write it as package.module:Class")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise unknown(
            f"{name!r} cannot be imported: there is no module {error.name!r} on the path; "
            f"run this from the folder that holds it, or install it"
        ) from error
    finally:
        sys.path.pop(0)
    return module_name, attribute, getattr(module, attribute, None)
