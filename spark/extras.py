"""Libraries that come with an extra of the package, imported when they are first needed.

Decides what a person is told where one is missing. Runs anywhere.
"""

from __future__ import annotations

import importlib
from typing import Any

from epochgate.errors import UsageError


class ExtraMissing(UsageError):
    """A library is not installed: what needs it, the library, the extra that brings it."""

    def __str__(self) -> str:
        what, library, extra = self.args
        return f"{what} needs {library}, which is not installed: `pip install epochgate[{extra}]`"


def library(name: str, *, what: str, extra: str) -> Any:
    """Import the module `name`. Raises ExtraMissing.

    >>> library("json", what="an example", extra="none").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise
        raise ExtraMissing(what, name.partition(".")[0], extra) from error
