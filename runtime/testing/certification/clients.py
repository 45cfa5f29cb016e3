"""The fault points of sinks that write through a client: each call of one is a point.

What `SinkCase.clients` names makes clients (`psycopg:connect`): for an actor it returns a stand-in
which passes everything on, and so do the cursors and transactions that come out of it. What
`SinkCase.calls` names is a single function or method, each call of which is a point. An actor that
dies has its clients closed, as the end of a process closes its connections.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from epochgate.errors import UsageError
from epochgate.runtime.testing.certification.points import Actor, Stage


class UnknownClient(UsageError):
    """A name in `SinkCase.clients` or `calls` leads to nothing that could be watched."""


class WatchedClient:
    """Stands in for a client, a cursor or a transaction of one actor."""

    def __init__(self, stage: Stage, actor: Actor, name: str, real: Any) -> None:
        self.__dict__.update(_stage=stage, _actor=actor, _name=name, _real=real, _cursors=[])

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if not callable(value) or isinstance(value, type):
            return self._wrapped(value, name)
        return partial(self._call, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)

    def _call(self, name: str, call: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        own = [_real(argument) for argument in arguments]
        named = {key: _real(value) for key, value in options.items()}
        operation = f"{self._name}.{name}{_shown(own)}"
        cursors = self._cursors if name == "close" else ()

        def do() -> Any:
            for cursor in cursors:  # a connection that is closed ends them, and their locks
                _closed(cursor())
            return call(*own, **named)

        try:
            result = self._stage.reach(self._actor, operation, do)
        except BaseException as error:
            # The traceback would keep a cursor that the sink has let go, and so a lock.
            del self, call, own
            error.__traceback__ = None
            raise
        return (
            self if result is self._real else self._wrapped(result, name + _shown(own) * bool(own))
        )

    def _wrapped(self, value: Any, name: str) -> Any:
        package = type(self._real).__module__.partition(".")[0]
        is_of_client = type(value).__module__.partition(".")[0] == package != "builtins"
        is_context = hasattr(value, "__enter__") and hasattr(value, "__exit__")
        if isinstance(value, BaseException | type) or not (is_of_client or is_context):
            return value
        # A cursor that is open holds its connection, and the locks of its transaction; this is not
        # to keep one alive that the sink has let go.
        with contextlib.suppress(TypeError):  # of a type without weak references
            reference = weakref.ref(value)
            self._actor.at_death.append(lambda: _closed(reference()))
            if hasattr(value, "fetchone"):
                self._cursors.append(reference)
        return WatchedClient(self._stage, self._actor, name, value)

    def __enter__(self) -> Any:
        """Enter; where the answer is lost, it is left again, for no caller leaves it then."""
        entered: list[Any] = []

        def failure() -> Exception:
            return self._broken_off() if entered else self._stage.error()

        operation = f"{self._name}: enter"
        self._stage.reach(
            self._actor, operation, lambda: entered.append(self._real.__enter__()), error=failure
        )
        return self if entered[0] is self._real else self._wrapped(entered[0], self._name)

    def __exit__(self, *error: Any) -> Any:
        """Leave; where that fails, it is left nevertheless, as with an error: a transaction is
        rolled back, and a COPY is broken off.
        """
        left: list[Any] = []

        def failure() -> Exception:
            return self._stage.error() if left else self._broken_off()

        operation = f"{self._name}: leave"
        self._stage.reach(
            self._actor, operation, lambda: left.append(self._real.__exit__(*error)), error=failure
        )
        return left[0]

    def _broken_off(self) -> Exception:
        error: Exception = self._stage.error()
        with contextlib.suppress(Exception):  # what is told is `error`
            self._real.__exit__(type(error), error, None)
        return error

    def __iter__(self) -> Iterator[Any]:
        return iter(self._real)

    def __bool__(self) -> bool:
        return bool(self._real)

    def __len__(self) -> int:
        return len(self._real)

    def __getitem__(self, key: Any) -> Any:
        return self._real[key]


def _real(value: Any) -> Any:
    return value.__dict__["_real"] if isinstance(value, WatchedClient) else value


def _shown(arguments: list[Any]) -> str:
    text = ", ".join(repr(argument) for argument in arguments)
    return f"({text if len(text) <= 60 else text[:57] + '...'})"


def _place_of(name: str) -> tuple[Any, str]:
    """Return what holds the function that is named, and its attribute there."""
    module, _, path = name.partition(":")
    *owners, attribute = path.split(".")
    try:
        owner = import_module(module)
        for part in owners:
            owner = getattr(owner, part)
        getattr(owner, attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownClient(
            f"{name!r} cannot be watched: {error}. Name a function as package.module:function or "
            "package.module:Class.method"
        ) from error
    return owner, attribute


@contextlib.contextmanager
def watched_clients(stage: Stage, clients: Iterable[str], calls: Iterable[str]) -> Iterator[None]:
    """While this lasts, what actors do with these clients and calls are fault points.

    Raises UnknownClient.
    """
    with contextlib.ExitStack() as restoring:
        for name, makes_client in [*((n, True) for n in clients), *((n, False) for n in calls)]:
            owner, attribute = _place_of(name)
            original = getattr(owner, attribute)
            restoring.callback(setattr, owner, attribute, original)
            try:
                setattr(owner, attribute, _watched(stage, name, original, makes_client))
            except TypeError as error:
                raise UnknownClient(f"{name!r} cannot be replaced: {error}") from error
        yield


def _watched(
    stage: Stage, name: str, original: Callable[..., Any], makes_client: bool
) -> Callable[..., Any]:
    shown = name.partition(":")[2]

    def watched(*arguments: Any, **options: Any) -> Any:
        actor = stage.actor()
        if actor is None:
            return original(*arguments, **options)
        own = [_real(argument) for argument in arguments]
        named = {key: _real(value) for key, value in options.items()}
        made: list[Any] = []

        def do() -> Any:
            made.append(original(*own, **named))
            if makes_client:
                actor.at_death.append(lambda: _closed(made[0]))
            return made[0]

        result = stage.reach(actor, f"{shown}(...)", do)
        return WatchedClient(stage, actor, shown, result) if makes_client else result

    return watched


def _closed(client: Any) -> None:
    """Close a client without its say, as the end of its process does."""
    close = getattr(client, "close", None)
    if close is not None:
        with contextlib.suppress(Exception):  # a process that ends hears no answer
            close()
