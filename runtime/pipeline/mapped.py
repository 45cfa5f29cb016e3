"""The values that a map may return, and the place of the map for an error.

A batch is a list of rows, or a table: anything with a length that is no single value. Decides that
an iterator yields tables alone: whether a list that it yields is a batch or a row cannot be told.
Pure; runs in the task.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

from epochgate.runtime.api.operator import FatalTaskError

SHOWN_CHARS: Final = 200
_SINGLE: Final = (str, bytes, bytearray, memoryview, Mapping, Set)


class MapReturned(FatalTaskError):
    """A map has returned, or an iterator has yielded, what is no batch."""


def batches_of(mapped: Any, place: str) -> list[Any]:
    """Return the batches in what a map has returned: itself, those of an iterator, or none for
    None. Raises MapReturned for the rest.

    >>> batches_of([1, 2], "the map")
    [[1, 2]]
    """
    if type(mapped) is list:  # the usual case; the checks below cost half a microsecond
        return [mapped]
    if mapped is None:
        return []
    if isinstance(mapped, Iterator):
        return [_table(each, place) for each in mapped if each is not None]
    if isinstance(mapped, _SINGLE) or not hasattr(mapped, "__len__"):
        raise MapReturned(
            f"{place} returned {_shown(mapped)}, which is no batch. Return a list of rows, such as "
            "[row] for one row; an Arrow record batch; an iterator of Arrow record batches; or "
            "None for no rows"
        )
    return [mapped]


def _table(each: Any, place: str) -> Any:
    if isinstance(each, (*_SINGLE, Sequence)) or not hasattr(each, "__len__"):
        raise MapReturned(
            f"{place} yielded {_shown(each)}, and an iterator must yield tables, such as Arrow "
            "record batches. Return a list of all rows instead: write `return [row for ...]` in "
            "the place of `yield row`"
        )
    return each


def _shown(value: Any) -> str:
    written = repr(value)
    if len(written) > SHOWN_CHARS:
        written = f"{written[:SHOWN_CHARS]}..."
    kind = type(value).__name__
    return f"{written}, {'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def place_of(map: Callable[..., Any] | None) -> str:  # the usual word
    """Return what an error calls the map: its name, file and line.

    >>> place_of(None)
    'the source, in a pipeline without a map,'
    """
    if map is None:
        return "the source, in a pipeline without a map,"
    function = inspect.unwrap(getattr(map, "__func__", map))
    name = getattr(map, "__qualname__", type(map).__qualname__)
    if (code := getattr(function, "__code__", None)) is None:
        return f"the map {name}"
    return f"the map {name} ({code.co_filename}, line {code.co_firstlineno})"
