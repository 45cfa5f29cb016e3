"""A fingerprint of everything that decides how a run goes on: machines, queues, messages, store,
clock, the user's objects, and where the test's body stands with its variables.

Objects are walked as they are, with cycles; sets count without their order. What only reports or
counts is left out (`LEFT_OUT`). An object that cannot be walked has no fingerprint (`Opaque`), and
then no state is recognised: a search without that is slower, and as right.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from enum import Enum
from typing import Any, Final

from epochgate.fsm import EventQueue, Machine, Row, System
from epochgate.runtime.shell.job_master import JobMaster
from epochgate.runtime.shell.task_messages import MessageReader
from epochgate.runtime.testing.simulation import SimulatedJob
from epochgate.runtime.testing.worlds.escapes import is_of_user
from epochgate.runtime.testing.worlds.job import WorldJob
from epochgate.runtime.testing.worlds.rig import Rig
from epochgate.runtime.testing.worlds.world import World

PLAIN: Final = (type(None), bool, int, float, complex, str, bytes)
LEFT_OUT: Final[dict[type, frozenset[str]]] = {
    EventQueue: frozenset({"processed", "_timer_number", "wake"}),
    JobMaster: frozenset({"report", "observers", "result", "wall_clock"}),
    SimulatedJob: frozenset({"_configure", "_program", "_prepare", "_listeners"}),
}
SKIPPED: Final = (World, WorldJob, Rig, Row, MessageReader, type, types.ModuleType)
"""What is looked at elsewhere, or never changes."""
LOCKS: Final = ("Condition", "lock", "RLock", "Event", "local")


class Opaque(Exception):
    """An object that cannot be walked."""


def fingerprint(world: World, job: WorldJob) -> bytes:
    """Digest a moment of a run; raises Opaque."""
    rig, line = job.rig, job.line
    roots = (
        world.at[0],
        world.claims.reached,
        rig.simulated,
        rig.strikes,
        rig.coordinators,
        rig.committers,
        line,
        [(frame.f_code, frame.f_lasti, frame.f_locals) for frame in frames_of_user()],
    )
    return _Walk().digest(roots)


def frames_of_user() -> Iterator[types.FrameType]:
    """The frames of the test's body and what it calls, innermost first."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "") != RUNNING:
        if is_of_user(frame):
            yield frame
        frame = frame.f_back


RUNNING: Final = "epochgate.runtime.testing.worlds.running"
"""The module that calls the body; what stands below it is pytest's."""


class _Walk:
    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []
        """What was seen stays alive, since the numbers are by its identity."""
        self._said: list[str] = []

    def digest(self, root: Any) -> bytes:
        self._walk(root)
        return hashlib.blake2b("\x1f".join(self._said).encode(), digest_size=16).digest()

    def _walk(self, value: Any) -> None:
        kind = type(value)
        if kind in PLAIN:
            self._said.append(repr(value))
            return
        if isinstance(value, SKIPPED):
            self._said.append(kind.__qualname__)
            return
        number = self._numbers.get(id(value))
        if number is not None:
            self._said.append(f"#{number}")
            return
        self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)
        self._said.append(f"{kind.__qualname__}(")
        for part in self._parts(value, kind):
            self._walk(part)
        self._said.append(")")

    def _parts(self, value: Any, kind: type) -> Iterator[Any]:
        if kind in (list, tuple, deque):
            return iter(value)
        if isinstance(value, dict):
            return itertools.chain.from_iterable(list(value.items()))
        if isinstance(value, set | frozenset):
            return iter(sorted(_Walk().digest(each) for each in value))
        for kinds, parts in PARTS:
            if isinstance(value, kinds):
                return iter(parts(value))
        if kind.__name__ in LOCKS:
            return iter(())
        return iter(_attributes(value, kind))


def _function(value: types.FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in value.__closure__ or () if _has_contents(cell)]
    return [value.__qualname__, cells, value.__defaults__]


def _has_contents(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _suspended(value: Any) -> list[Any]:
    frame = value.gi_frame if isinstance(value, types.GeneratorType) else value.cr_frame
    return [value.__qualname__] if frame is None else [frame.f_lasti, frame.f_locals]


PARTS: Final[tuple[tuple[Any, Callable[[Any], list[Any]]], ...]] = (
    (types.FunctionType, _function),
    (types.MethodType, lambda value: [value.__func__.__qualname__, value.__self__]),
    (types.BuiltinMethodType, lambda value: [value.__qualname__, _self(value)]),
    (types.CodeType, lambda value: [value.co_filename, value.co_firstlineno]),
    (functools.partial, lambda value: [value.func, value.args, value.keywords]),
    (Future, lambda value: [value._state, value._result, value._exception]),
    (BaseException, lambda value: [value.args]),
    (Enum, lambda value: [value.name]),
    (itertools.count, lambda value: [repr(value)]),
    ((types.GeneratorType, types.CoroutineType), _suspended),
    (Machine, lambda value: [value.index, value.state, _fields(value)]),
    (System, lambda value: [list(map(value.instances, value.MACHINES)), list(value.emitted)]),
)


def _fields(value: Machine) -> list[Any]:
    return [getattr(value, name) for name in value.FIELDS]


def _self(value: types.BuiltinMethodType) -> Any:
    return None if isinstance(value.__self__, types.ModuleType) else value.__self__


def _attributes(value: Any, kind: type) -> list[Any]:
    """Return the attributes of an object, or what it would be copied by."""
    named: dict[str, Any] = dict(getattr(value, "__dict__", {}))
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                named[name] = getattr(value, name)
    if not named and not hasattr(value, "__dict__"):
        try:
            return list(value.__reduce_ex__(4)[1:])
        except Exception as error:
            raise Opaque(f"{kind.__module__}.{kind.__qualname__}") from error
    left_out = next((names for base, names in LEFT_OUT.items() if isinstance(value, base)), ())
    return [part for name, held in named.items() if name not in left_out for part in (name, held)]
