"""User code that raises once at one of its doors, whichever class the door is of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass
class Door:
    """`name` of a door, "reader.open_split" for instance, at which one call raises: the first, or
    that after `before` others.
    """

    name: str
    raised: type[BaseException]
    before: int = 0
    has_raised: bool = False

    def come(self, name: str) -> None:
        """Raise if `name` is the door, and it is due."""
        if name == self.name and self._is_due():
            raise self.raised("by order of the test")

    def _is_due(self) -> bool:
        if self.has_raised or self.before:
            self.before = max(0, self.before - 1)
            return False
        self.has_raised = True
        return True

    def of(self, user_code: type[T], stands_for: str) -> type[T]:
        """Return a subclass each method of which comes to its door first."""
        methods: dict[str, Any] = {}
        for kind in reversed(user_code.__mro__[:-1]):
            for name, member in vars(kind).items():
                if name.startswith("_"):
                    continue
                if isinstance(member, property) and member.fget is not None:
                    read = self._before(f"{stands_for}.{name}", member.fget)
                    methods[name] = property(read)
                elif isinstance(member, int):  # which a class of the user's may work out
                    methods[name] = property(self._before(f"{stands_for}.{name}", held(member)))
                elif callable(member):
                    methods[name] = self._before(f"{stands_for}.{name}", member)
        return type(user_code.__name__, (user_code,), methods)

    def function(self, call: Callable[..., T], name: str) -> Callable[..., T]:
        """Return a function that comes to its door first."""
        return self._before(name, call)

    def _before(self, name: str, call: Callable[..., T]) -> Callable[..., T]:
        def called(*arguments: Any, **named: Any) -> T:
            self.come(name)
            return call(*arguments, **named)

        return called


def held(value: int) -> Callable[[Any], int]:
    return lambda _: value
