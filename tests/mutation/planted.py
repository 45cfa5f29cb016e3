"""A broken machine in the place of the right one, for whatever test runs meanwhile.

`planted` breaks the classes themselves, so that every job, worker and variant that is made from
them meanwhile is broken too. As a plugin of pytest,

    pytest -p tests.mutation.planted --mutant "request: submit from chosen: without note_more" TESTS

this module runs each test as it stands, and again with each of the mutants in place; with
`--mutants-out FILE` it writes their outcomes: mutant -> test -> how it failed, for the tests
that fail with the mutant and pass without it. With `--mutants-once` a mutant that has failed a test
is not planted any more.
"""

from __future__ import annotations

import json
import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import pytest
from _pytest.runner import CallInfo, runtestprotocol
from _pytest.tmpdir import tmppath_result_key

from epochgate.fsm import Machine, System
from epochgate.fsm.errors import DeclarationError
from tests.mutation.every import named
from tests.mutation.mutants import AnyMutant

EFFECTS_MAX = 20_000
ACCOUNT_MAX = 300
WORK_MAX_S = 10
"""Of processor time for one test with one mutant, which may never end: the same on every machine,
whatever else it does.
"""
WAIT_MAX_S = 120
"""For one that waits for what never comes, which costs no work."""


class Restless(Exception):
    """A job has had more effects than any job that ends."""


class Bounded(deque[Any]):
    """Not more than EFFECTS_MAX, over all."""

    added = 0

    def append(self, item: Any) -> None:
        self.added += 1
        if self.added > EFFECTS_MAX:
            raise Restless(f"it goes on after {EFFECTS_MAX} effects or triggers")
        super().append(item)


def bounded_queues() -> tuple[Bounded, Bounded, Bounded]:
    """Make outbox, inner and outer queue of a system that may never come to rest."""
    return Bounded(), Bounded(), Bounded()


@contextmanager
def planted(mutant: AnyMutant) -> Iterator[None]:
    """Break a machine, and all variants of it that have its rows, wherever they stand."""
    family = tuple(_family(mutant.home.machine))
    with pytest.MonkeyPatch.context() as patch:
        for machine, attributes in zip(family, _broken(mutant, family), strict=True):
            for name, value in attributes.items():
                patch.setattr(machine, name, value, raising=False)
        patch.setattr(System, "_queues", lambda _: bounded_queues())
        yield


def _family(right: type[Machine]) -> list[type[Machine]]:
    found = [right]
    for machine in found:
        found += [
            kind
            for kind in machine.__subclasses__()
            if not kind.__name__.startswith("Broken") and kind.ROWS[: len(right.ROWS)] == right.ROWS
        ]
    return found


@cache
def _broken(mutant: AnyMutant, family: tuple[type[Machine], ...]) -> list[dict[str, Any]]:
    """Return what is different in each class; made once, since a class is validated as a whole."""
    return [_different(mutant, machine) for machine in family]


def _different(mutant: AnyMutant, machine: type[Machine]) -> dict[str, Any]:
    try:
        broken = mutant.of(machine)
    except DeclarationError:
        if machine is mutant.home.machine:
            raise
        return {}  # a variant that cannot be declared any more stays as it is
    return {
        name: value for name, value in vars(broken).items() if name == "ROWS" or callable(value)
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mutants")
    group.addoption("--mutant", action="append", default=[], help="plant it; may be repeated")
    group.addoption("--mutants-once", action="store_true", help="one failing test is enough")
    group.addoption("--mutants-out", type=Path, help="write there which tests fail with which")


def pytest_configure(config: pytest.Config) -> None:
    wanted = config.getoption("--mutant")
    try:
        found = [*named(wanted).values()]
    except KeyError as unknown:
        raise pytest.UsageError(f"there is no mutant {unknown}") from unknown
    if found:
        config.pluginmanager.register(Planter(config, found))


class Planter:
    """Runs each test as it stands, and then with each mutant."""

    def __init__(self, config: pytest.Config, wanted: list[AnyMutant]) -> None:
        self._wanted = wanted
        self._is_once = config.getoption("--mutants-once")
        self._out: Path | None = config.getoption("--mutants-out")
        self.failed: dict[str, dict[str, str]] = {mutant.name: {} for mutant in wanted}

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Report the test as passed if it passes as it stands, whatever mutants do to it."""
        if self._is_once and all(self.failed.values()):
            item.session._setupstate.teardown_exact(nextitem)
            return True  # no mutant is left that this test could fail with
        own = item.ihook
        own.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, log=False, nextitem=_beside(item))
        for report in reports:
            own.pytest_runtest_logreport(report=report)
        if all(report.passed for report in reports):
            for mutant in self._wanted:
                if self._is_once and self.failed[mutant.name]:
                    continue
                if failure := self._lasting_failure(item, mutant):
                    self.failed[mutant.name][item.nodeid] = failure
        item.session._setupstate.teardown_exact(nextitem)
        own.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @staticmethod
    def _lasting_failure(item: pytest.Item, mutant: AnyMutant) -> str:
        """Return how a test fails with a mutant each time, and never without it."""
        with planted(mutant), _in_time():
            failure = _failure(item)
        if not failure:
            return ""
        with _in_time():
            if _failure(item):
                return ""
        with planted(mutant), _in_time():
            return _failure(item)

    def pytest_sessionfinish(self) -> None:
        """Hand the result over."""
        if self._out is not None:
            self._out.write_text(json.dumps(self.failed, indent=1), encoding="utf-8")


def _failure(item: pytest.Item) -> str:
    """Run a test once more: how it failed, or empty; the full report would take longer than it."""
    if isinstance(item, pytest.Function):
        item._initrequest()
    item.stash[tmppath_result_key] = {}  # `tmp_path` looks for it, and no report fills it
    hook = item.ihook
    failure = _of(lambda: hook.pytest_runtest_setup(item=item), "setup")
    failure = failure or _of(lambda: hook.pytest_runtest_call(item=item), "call")
    torn = _of(lambda: hook.pytest_runtest_teardown(item=item, nextitem=_beside(item)), "teardown")
    return failure or torn


def _of(call: Callable[[], None], when: Literal["setup", "call", "teardown"]) -> str:
    error = CallInfo.from_call(call, when).excinfo
    return "" if error is None else f"{when}: {error.exconly()[:ACCOUNT_MAX]}"


def _beside(item: pytest.Item) -> Any:
    """Return what stays set up after a test that runs once more: all that it shares with others."""
    return item.parent


@contextmanager
def _in_time() -> Iterator[None]:
    def too_much(_: int, __: FrameType | None) -> None:
        raise Restless(f"it goes on after {WORK_MAX_S} s of work")

    def too_late(_: int, __: FrameType | None) -> None:
        raise Restless(f"it waits for {WAIT_MAX_S} s")

    before = signal.signal(signal.SIGPROF, too_much), signal.signal(signal.SIGALRM, too_late)
    signal.setitimer(signal.ITIMER_PROF, WORK_MAX_S)
    signal.alarm(WAIT_MAX_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])
