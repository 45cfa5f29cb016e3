"""Escapes, which user code may not reach while a world runs: the real clock, chance, sockets,
threads and processes. None of them would replay, and each has something in its place.

The functions are replaced while a body runs, in their modules and under the names that modules of
the user have imported. A call of the user's code raises `EscapedSimulation` at that line; calls of
libraries pass, and the check that a run repeats finds what they let in. Blind spots: a function
that was kept in an object or a default argument, and code in C.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import random
import secrets
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.runtime.testing.worlds.claims import ClaimBroken, Place

CLOCK: Final = (
    "use the job's clock: `context.now_s()` of an operator, `context.post_later` of a coordinator, "
    "or a `now_s` that your class is given, `job.now_s` in a test"
)
SLEEP: Final = (
    "a simulated job waits for nothing: use `context.post_later` in a coordinator, "
    "`context.wake_after` in an operator, `await asyncio.sleep` in a coroutine, "
    "`world.move(seconds)` in a test"
)
CHANCE: Final = (
    "give your class a `random.Random`, which is `world.random` in a test; for values use "
    "`world.draw(strategy)`"
)
SOCKET: Final = (
    "give your class its client, and a fake one in a test; call it in `context.run_async`, which "
    "the schedule moves"
)
THREAD: Final = (
    "use `context.run_async` for what blocks and `context.run_coroutine` for what waits: both are "
    "moved by the schedule"
)
PROCESS: Final = (
    "give your class what runs the program, and a fake one in a test; call it in "
    "`context.run_async`"
)


class EscapedSimulation(EpochgateError):
    """User code used what no simulation can repeat; the message says what to use instead."""


class Escapes:
    """The escapes in one run, so that each is told although user code or runtime caught it."""

    def __init__(self) -> None:
        self.found: list[tuple[EscapedSimulation, Place]] = []

    def raise_first(self) -> None:
        """Raise ClaimBroken for the first escape."""
        if self.found:
            error, place = self.found[0]
            self.found.clear()
            raise ClaimBroken("escape", str(error), place=place) from error

    def note(self, name: str, instead: str, frame: FrameType) -> EscapedSimulation:
        """Keep an escape, to be raised."""
        place = Place(frame.f_code.co_filename, frame.f_lineno)
        error = EscapedSimulation(f"{name} was called at {place}; {instead}")
        self.found.append((error, place))
        return error


FUNCTIONS: Final[tuple[tuple[ModuleType, tuple[str, ...], str], ...]] = (
    (
        time,
        ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
        CLOCK,
    ),
    (time, ("sleep",), SLEEP),
    (
        random,
        (
            *("random", "randint", "randrange", "choice", "choices", "sample", "shuffle"),
            *("uniform", "gauss", "expovariate", "getrandbits", "randbytes", "seed"),
        ),
        CHANCE,
    ),
    (secrets, ("token_bytes", "token_hex", "token_urlsafe", "randbelow", "choice"), CHANCE),
    (uuid, ("uuid1", "uuid4"), CHANCE),
    (os, ("urandom",), CHANCE),
    (os, ("fork", "system", "popen"), PROCESS),
)
"""Functions that only the caller's own line counts for: libraries read clocks without harm."""
METHODS: Final[tuple[tuple[type, str, str, str], ...]] = (
    (socket.socket, "__init__", "a socket", SOCKET),
    (threading.Thread, "start", "a thread", THREAD),
    (subprocess.Popen, "__init__", "a process", PROCESS),
)
"""What counts also where a library makes it for the user's code."""
NOW: Final = ("now", "utcnow", "today")


@contextlib.contextmanager
def guarded() -> Iterator[Escapes]:
    """Replace all of them for a while."""
    escapes = Escapes()
    undo: list[tuple[Any, str, Any]] = []
    replaced = {
        id(real): (real, stand_in)
        for module, names, instead in FUNCTIONS
        for name in names
        if (real := getattr(module, name, None)) is not None
        for stand_in in [_function(escapes, f"{module.__name__}.{name}", real, instead)]
    }
    replaced[id(datetime.datetime)] = datetime.datetime, _datetime(escapes)
    try:
        for module in [*{m for m, *_ in FUNCTIONS}, datetime, *_modules_of_users()]:
            for name, value in list(vars(module).items()):
                if id(value) in replaced and replaced[id(value)][0] is value:
                    undo.append((module, name, value))
                    setattr(module, name, replaced[id(value)][1])
        for kind, name, what, instead in METHODS:
            undo.append((kind, name, getattr(kind, name)))
            setattr(kind, name, _method(escapes, what, getattr(kind, name), instead))
        yield escapes
    finally:
        for owner, name, value in reversed(undo):
            setattr(owner, name, value)


def _function(
    escapes: Escapes, name: str, real: Callable[..., Any], instead: str
) -> Callable[..., Any]:
    def stand_in(*arguments: Any, **named: Any) -> Any:
        caller = sys._getframe(1)
        if is_of_user(caller):
            raise escapes.note(name, instead, caller)
        return real(*arguments, **named)

    return stand_in


def _method(
    escapes: Escapes, what: str, real: Callable[..., Any], instead: str
) -> Callable[..., Any]:
    def stand_in(self: Any, *arguments: Any, **named: Any) -> Any:
        if (frame := _user_behind(sys._getframe(1))) is not None:
            raise escapes.note(what, instead, frame)
        return real(self, *arguments, **named)

    return stand_in


def _datetime(escapes: Escapes) -> type:
    real = datetime.datetime

    class Kind(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(kind, real)

    def now(name: str) -> Any:
        def stand_in(cls: type, *arguments: Any, **named: Any) -> Any:
            caller = sys._getframe(1)
            if is_of_user(caller):
                raise escapes.note(f"datetime.{name}", CLOCK, caller)
            return getattr(real, name)(*arguments, **named)

        return classmethod(stand_in)

    def new(cls: type, *arguments: Any, **named: Any) -> datetime.datetime:
        return real(*arguments, **named)  # nothing outlives the run that is of this class

    return Kind("datetime", (real,), {"__new__": new, **{name: now(name) for name in NOW}})


PATHS_OF_LIBRARIES: Final = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def is_of_user(frame: FrameType) -> bool:
    """Return whether a frame runs code that is neither a library's nor epochgate's."""
    module = frame.f_globals.get("__name__", "")
    return module.partition(".")[0] != "epochgate" and not _is_library(frame.f_code.co_filename)


def _is_library(file: str) -> bool:
    return file.startswith(("<frozen", *PATHS_OF_LIBRARIES)) or "site-packages" in file


def _user_behind(frame: FrameType | None) -> FrameType | None:
    """The user's frame that leads here through libraries, if one does."""
    while frame is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame if frame is not None and is_of_user(frame) else None


def _modules_of_users() -> list[ModuleType]:
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name.partition(".")[0] != "epochgate" and not _is_library(str(Path(file))):
            found.append(module)
    return found
