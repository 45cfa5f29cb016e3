"""Names that every machine or every system has, and that a class may give no other meaning."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping

from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.source import class_place

LIBRARY = frozenset(
    f"epochgate.fsm.{name}" for name in ("machine", "run_to_completion", "system", "closed")
)
"""The modules of the bases that a class may have."""


def methods(cls: type) -> dict[str, str]:
    """The functions in a class body, but for those that Python calls by itself."""
    own = (name for name, member in vars(cls).items() if inspect.isfunction(member))
    return {name: "a method" for name in own if name[:2] != "__"}


def expect_free(cls: type, named: Mapping[str, str], more: Iterable[str]) -> None:
    """Raise DeclarationError if the bases of the library, or their instances (`more`), have one of
    these names; `named` says of each what it is in the class.
    """
    if cls.__module__ in LIBRARY:
        return
    bases = [base for base in cls.__mro__[1:] if base.__module__ in LIBRARY]
    taken = {*more}.union(*map(vars, bases))
    wrong = [name for name in named if name in taken]
    if not wrong:
        return
    for name in {*wrong} & vars(cls).keys():
        delattr(cls, name)  # a class that is kept all the same has to tell its fault
    file, line = class_place(cls)
    place = f"{file}:{line}: " if line else ""
    kind = "machine" if any(base.__name__ == "Machine" for base in bases) else "system"
    texts = [
        f"{place}{cls.__module__}.{cls.__name__}: {name!r} is {named[name]}, and a name that "
        f"every {kind} has; choose another word"
        for name in wrong
    ]
    raise DeclarationError("\n".join(texts), faults=tuple(texts))
