"""Variables of the environment for as long as a block runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

__all__ = ["set_in_environment"]


@contextlib.contextmanager
def set_in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Let this process, and those that it starts, have these variables until the block's end."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
