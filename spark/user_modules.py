"""The user's own modules, which executors may lack: their code travels with the program.

Decides which loaded modules these are: those in files of Python code that are not installed.
Installed packages are expected to be installed on the executors too, and epochgate sends itself
whole. Runs on the driver.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from types import ModuleType

_NEVER = ("epochgate", "pyspark", "py4j", "__main__")
"""The first three are on the executors; functions of `__main__` travel anyway."""


def user_modules() -> list[ModuleType]:
    """The user's modules that are loaded now."""
    installed = _installed()
    found = {}
    for module in list(sys.modules.values()):
        name, file = getattr(module, "__name__", None), getattr(module, "__file__", None)
        if isinstance(name, str) and isinstance(file, str) and file.endswith(".py"):
            is_known = sys.modules.get(name) is module and name.partition(".")[0] not in _NEVER
            if is_known and not os.path.realpath(file).startswith(installed):
                found[name] = module
    return list(found.values())


def _installed() -> tuple[str, ...]:
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [sysconfig.get_path(kind) for kind in kinds]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple({os.path.join(os.path.realpath(folder), "") for folder in folders})
