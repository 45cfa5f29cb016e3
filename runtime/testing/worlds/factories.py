"""The factories of a test: functions that make a new object for each start or process.

Says which argument is wrong, where an instance or another class was given. Pure; on the test's
thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epochgate.runtime.testing.worlds.rig import NotSimulated


def insist_on_factory(argument: str, given: Any, kind: type) -> None:
    """Raise NotSimulated unless `given` can be called."""
    if isinstance(given, kind) or not callable(given):
        raise NotSimulated(
            f"`{argument}` is {shown(given)}, and must be what makes one: a class derived from "
            f"{kind.__name__}, or a function without arguments"
        )


def made_by(argument: str, make: Callable[[], Any], kind: type) -> Any:
    """Return what `make` makes. Raises NotSimulated if it is of another kind."""
    made = make()
    if not isinstance(made, kind):
        raise NotSimulated(
            f"`{argument}` has made {shown(made)}, which is not derived from {kind.__name__}"
        )
    return made


def shown(value: Any) -> str:
    """A value by its class: an object's own text may be long, or an address."""
    kind = type(value).__name__
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"a{'n' * (kind[0] in 'AEIOUaeiou')} {kind}"
