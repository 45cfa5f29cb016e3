"""Declares a closed system whose source was written by a program."""

from __future__ import annotations

import linecache

from epochgate.fsm.closed import ClosedSystem


def declared(name: str, text: str) -> type[ClosedSystem]:
    """The class `System` of a text; the compiler finds the text in `linecache`, by `<name>`."""
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {"__name__": __name__}
    exec(compile(text, file, "exec"), names)  # noqa: S102  # of a text of this package
    made: type[ClosedSystem] = names["System"]  # type: ignore[assignment]  # of that text
    return made
