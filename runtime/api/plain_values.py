"""Plain values: those that may travel between driver, tasks and clients.

None, bool, int within 64 bits, float, str, bytes, and lists, tuples and dicts of these, where a
dict's keys are str or bytes. A tuple arrives as a list. Source: what the wire's msgpack frames
carry and their receiver accepts. Any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from epochgate.errors import UsageError
from epochgate.runtime.api.operator import FatalTaskError

if TYPE_CHECKING:
    from epochgate.runtime.api.transport import Message

DEPTH_MAX: Final = 100
PLAIN_TYPES: Final = frozenset({type(None), bool, int, float, str, bytes, list, tuple, dict})
_ATOMS: Final = frozenset({type(None), bool, float, str, bytes})
_KEYS: Final = frozenset({str, bytes})
_LEAST, _GREATEST = -(2**63), 2**64 - 1


class ValueNotPlain(FatalTaskError, UsageError):
    """A value that is to travel, or to be kept, holds something that cannot; trying again does not
    help.
    """


def problem_of(value: Any, depth: int = 0) -> str | None:
    """Say what in `value` is not plain; None when all of it is.

    >>> problem_of(["split", 7, {"rows": 65_536}])
    >>> problem_of({"path": {1, 2}})
    '{1, 2} is a set'
    """
    kind = type(value)
    if kind in _ATOMS:
        return None
    if kind is int:
        return None if _LEAST <= value <= _GREATEST else f"{value} does not fit into 64 bits"
    if depth > DEPTH_MAX:
        return f"it is nested deeper than {DEPTH_MAX} levels"
    if kind is list or kind is tuple:
        return _problem_of_items(value, depth + 1)
    if kind is dict:
        strange = [key for key in value if type(key) not in _KEYS]
        if strange:
            return f"the key {strange[0]!r} is no str or bytes"
        return _problem_of_items(value.values(), depth + 1)
    article = "an" if kind.__name__[0] in "aeiouAEIOU" else "a"
    return f"{value!r} is {article} {kind.__name__}"


def _problem_of_items(items: Iterable[Any], depth: int) -> str | None:
    for item in items:
        if type(item) not in _ATOMS and (problem := problem_of(item, depth)) is not None:
            return problem
    return None


def mismatch(name: str, known: Any, value: Any) -> str | None:
    """Say that `value` is of another type than `known`, the value that `name` has; None if it is of
    the same. All numbers are of one type, and a known None takes any.

    >>> mismatch("limit", 900, 0.5)
    >>> mismatch("limit", 900, "x")
    "limit = 900, a number, and 'x' is a str"
    """
    has, gets = kind_of(known), kind_of(value)
    if known is None or has == gets:
        return None
    return f"{name} = {known!r}, {has}, and {value!r} is {gets}"


def kind_of(value: Any) -> str:
    """Return what an error calls the type of a plain value."""
    if value is None:
        return "None"
    return "a number" if type(value) in (int, float) else f"a {type(value).__name__}"


def insist_on_plain_type(what: str, value: Any) -> None:
    """Raise ValueNotPlain, which begins with `what`, for a type that can never travel."""
    if not isinstance(value, tuple(PLAIN_TYPES)):
        insist_on_plain(what, value)


def insist_on_plain(what: str, value: Any) -> None:
    """Raise ValueNotPlain, which begins with `what`, unless `value` is plain."""
    if (problem := problem_of(value)) is not None:
        raise ValueNotPlain(
            f"{what} is not plain: {problem}. Only None, bool, int of 64 bits, float, str, bytes, "
            f"and lists, tuples and dicts of these (with str or bytes as keys) can travel; send "
            f"what it consists of, or pack it into bytes"
        )


def insist_on_plain_events(messages: Iterable[Message], coordinators: Sequence[str]) -> None:
    """Raise ValueNotPlain, which names the operator, for an event of user code that is not plain;
    `coordinators` are the operator ids in the job's order.
    """
    for tag, *arguments in messages:
        if tag in ("event", "registered_event"):
            operator_id = coordinators[arguments[0]]
            insist_on_plain(
                f"an event of operator {operator_id!r} to its coordinator", arguments[-1]
            )
