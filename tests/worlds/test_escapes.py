"""User code that reaches for what no simulation can repeat gets an error at its own line, which
says what to use instead; libraries are left alone, and everything is as it was afterwards.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import os
import random
import secrets
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime as moment
from time import monotonic as ticks
from typing import Any

import pytest

from epochgate.errors import EpochgateError
from epochgate.runtime import CoordinatorContext
from epochgate.testing import SimulationFailed, World, simulate
from tests.worlds.rules import Applying, Rules, RulesProvider


def in_a_coordinator(call: Callable[[], Any]) -> Callable[[], None]:
    """A simulated test whose coordinator calls it."""

    class Reaching(Rules):
        def __init__(self, context: CoordinatorContext) -> None:
            super().__init__(context)
            self.reached = call()

    @simulate(runs=2)
    def test(world: World) -> None:
        world.job(RulesProvider(Reaching), operators=Applying)

    return test


REACHES: dict[str, tuple[Callable[[], Any], str]] = {
    "time.time": (lambda: time.time(), "use the job's clock"),
    "a name that was imported": (lambda: ticks(), "use the job's clock"),
    "datetime.now": (lambda: datetime.datetime.now(), "use the job's clock"),
    "datetime under another name": (lambda: moment.now(), "use the job's clock"),
    "time.sleep": (lambda: time.sleep(1), "a simulated job waits for nothing"),
    "random": (lambda: random.random(), "give your class a `random.Random`"),
    "uuid": (lambda: uuid.uuid4(), "give your class a `random.Random`"),
    "secrets": (lambda: secrets.token_hex(), "give your class a `random.Random`"),
    "urandom": (lambda: os.urandom(4), "give your class a `random.Random`"),
    "a socket": (lambda: socket.socket(), "give your class its client, and a fake one"),
    "a connection": (
        lambda: socket.create_connection(("127.0.0.1", 1)),
        "give your class its client, and a fake one",
    ),
    "a thread": (lambda: threading.Thread(target=print).start(), "use `context.run_async`"),
    "a pool": (lambda: ThreadPoolExecutor().submit(print), "use `context.run_async`"),
    "a process": (lambda: subprocess.run(["true"], check=True), "what runs the program"),
}


@pytest.mark.parametrize("name", REACHES)
def test_what_leaves_the_simulation_is_named_at_its_line(name: str) -> None:
    call, instead = REACHES[name]
    with pytest.raises(SimulationFailed) as refused:
        in_a_coordinator(call)()
    told = str(refused.value)
    assert "user code left the simulation" in told
    assert instead in told
    assert f"claimed at tests/worlds/test_escapes.py:{call.__code__.co_firstlineno}" in told


def test_an_escape_that_user_code_swallows_is_told_all_the_same() -> None:
    def swallowed() -> float:
        try:
            return time.time()
        except EpochgateError:
            return 0.0

    with pytest.raises(SimulationFailed, match=r"time\.time was called"):
        in_a_coordinator(swallowed)()


def test_work_that_is_handed_over_is_user_code_as_well() -> None:
    class Asking(Rules):
        def start(self) -> None:
            self.context.run_async(lambda: time.sleep(1), lambda result, error: None)

    @simulate(runs=2)
    def test(world: World) -> None:
        world.job(RulesProvider(Asking), operators=Applying)

    with pytest.raises(SimulationFailed, match="a simulated job waits for nothing"):
        test()


def test_what_goes_through_the_context_is_simulated() -> None:
    class Waiting(Rules):
        def start(self) -> None:
            self.context.post_later(60.0, self.change, "later")
            self.context.run_async(lambda: "b", lambda result, error: self.change(result))
            self.context.run_coroutine(self._wait(), lambda result, error: self.change(result))

        async def _wait(self) -> str:
            await asyncio.sleep(5)
            return "c"

    @simulate(runs=30, faults=("die", "slow", "hear-again"))
    def test(world: World) -> None:
        job = world.job(RulesProvider(Waiting), operators=Applying)
        world.move(100)
        world.calm()
        assert job.coordinator.rule == job.operators[0].rule == [4, "later"]

    test()


def test_libraries_may_read_clocks_and_locks_are_no_threads() -> None:
    def harmless() -> Any:
        logging.getLogger("stranger").info("it has begun")
        with threading.Lock():
            parsed = datetime.datetime.fromisoformat("2026-01-01")
        assert type(parsed + datetime.timedelta(1)) is type(parsed)
        assert isinstance(parsed, datetime.datetime)
        return random.Random(3).random()

    in_a_coordinator(harmless)()


def test_everything_is_as_before_afterwards() -> None:
    before = [time.time, random.random, datetime.datetime, socket.socket.__init__, moment, ticks]
    with pytest.raises(SimulationFailed):
        in_a_coordinator(lambda: time.time())()
    after = [time.time, random.random, datetime.datetime, socket.socket.__init__, moment, ticks]
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert sys.modules["time"].time() > 0
