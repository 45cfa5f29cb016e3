"""The source of code that has no file where it runs: cells of a notebook, and modules that travel
by value.

Decides which texts travel with a program: those of its own code alone, up to `BYTES_MAX`. A
traceback in a task then shows their lines, and names a cell as the notebook does. The driver gives,
a task takes.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar

BYTES_MAX: Final = 1 << 20
T = TypeVar("T")


class Source(NamedTuple):
    """A text by the file name of its code; `shown`: what a reader calls it, if anything else."""

    file: str
    shown: str
    lines: list[str]


_shown: dict[str, str] = {}
"""File name -> what a reader calls it, of the cells whose source has traveled here."""


def sources(program: bytes, modules: Iterable[ModuleType]) -> list[Source]:
    """The texts of the code in a pickled program: of cells, and of these modules."""
    # A name without a time of change is that of a text which was never in a file.
    cells = [name for name, entry in linecache.cache.items() if len(entry) == 4 and not entry[1]]
    files = [module.__file__ for module in modules if module.__file__]
    found, left = [], BYTES_MAX
    for name in dict.fromkeys([*cells, *files]):
        if name.encode() not in program:
            continue
        lines = linecache.getlines(name)
        left -= sum(map(len, lines))
        if lines and left >= 0:
            found.append(Source(name, shown_name(name), lines))
    return found


class WithSources:
    """Unpickled as the program, whose sources are known then."""

    def __init__(self, program: Any, texts: list[Source]) -> None:
        self._program, self._texts = program, texts

    def __reduce__(self) -> Any:
        return known, (self._program, self._texts)


def known(program: T, texts: list[Source]) -> T:
    """Let tracebacks show these texts, and return the program."""
    for name, shown, lines in texts:
        if not os.path.exists(name):
            linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
        if shown != name:
            _shown[name] = shown
    return program


def shown_name(file: str) -> str:
    """The name of a file of code for a reader: of a cell its number, as in `Cell In[3]`."""
    if file in _shown:
        return _shown[file]
    named = getattr(getattr(ipython(), "compile", None), "format_code_name", lambda _: None)(file)
    return file if named is None else " ".join(named)


def ipython() -> Any:
    """IPython's shell, if this process has one; IPython is never imported for it."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
