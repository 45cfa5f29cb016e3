"""Of several writers one appends, at each number; a replaced one never does again."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from obstore.store import MemoryStore

from epochgate.runtime.objects.client import (
    ObstoreObjects,
    open_url,
    require_conditions as require,
)
from epochgate.runtime.objects.errors import ConditionsIgnored, ObjectStoreUnusable
from epochgate.runtime.objects.log import (
    STATE_EVERY,
    LogOutcomeUnknown,
    LogTakenOver,
    ObjectLog,
)
from epochgate.runtime.testing.faulty_filesystem import Fault
from tests.runtime.objects.faulty_objects import FaultyObjects
from tests.runtime.objects.stores import Forgetful, Lying, Memory

URL = "memory://log"


def fold(state: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    return {"words": [*state["words"], entry.get("word", entry["kind"])]}


def log_on(memory: Memory | FaultyObjects) -> ObjectLog:
    log = ObjectLog(memory.open(URL), fold, {"words": []})
    log.refresh()
    return log


def say(log: ObjectLog, word: str) -> None:
    log.append({"kind": "say", "word": word})


def test_a_reader_finds_what_was_appended_however_long_the_log_is() -> None:
    memory = Memory()
    log = log_on(memory)
    log.claim("a", {"run": "r1"})
    early = log_on(memory)
    words = [f"word {number}" for number in range(3 * STATE_EVERY)]
    for word in words:
        say(log, word)
        if word == "word 5":
            early.refresh()
    early.refresh()
    late = log_on(memory)
    assert late.state == early.state == log.state
    assert late.state["words"] == ["claim", *words]
    assert late.number == 3 * STATE_EVERY + 1


def test_a_writer_that_was_replaced_appends_nothing_any_more() -> None:
    memory = Memory()
    first = log_on(memory)
    first.claim("a", {"run": "r1"})
    say(first, "one")
    second = log_on(memory)
    second.claim("b", {"run": "r2"})
    for _ in range(2):
        with pytest.raises(LogTakenOver, match="claimed by run r2"):
            say(first, "two")
    with pytest.raises(LogTakenOver):
        first.require_writer()
    say(second, "three")
    assert log_on(memory).state["words"] == ["claim", "one", "claim", "three"]


def test_of_two_that_claim_at_once_one_goes_on() -> None:
    memory = Memory()
    logs = {name: log_on(memory) for name in "abcd"}
    refused: list[str] = []
    barrier = threading.Barrier(4)

    def claim(name: str) -> None:
        barrier.wait()
        try:
            logs[name].claim(name, {"run": name})
        except LogTakenOver:
            refused.append(name)

    threads = [threading.Thread(target=claim, args=(name,)) for name in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    (winner,) = set(logs) - set(refused)
    say(logs[winner], "mine")
    assert log_on(memory).state["words"] == ["claim", "mine"]


def test_an_entry_whose_answer_was_lost_is_appended_once() -> None:
    memory = Memory()
    for when in ("before", "after"):
        faults = FaultyObjects(memory.open, Fault(1, "error", when))
        log = log_on(faults)
        log.claim(when, {"run": when})
        say(log, when)
    assert log_on(memory).state["words"] == ["claim", "before", "claim", "after"]


class Silent:
    """Loses the answers of the first `times` creates; the last takes effect if `is_done`."""

    def __init__(self, inner: Any, times: int, is_done: bool) -> None:
        self.inner, self.times, self.is_done = inner, times, is_done
        self.url = inner.url

    def create(self, key: str, data: bytes) -> None:
        self.times -= 1
        if self.times < 0:
            self.inner.create(key, data)
            return
        if self.is_done and self.times == 0:
            self.inner.create(key, data)
        raise OSError(5, "no answer", key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.mark.parametrize("is_done", [True, False])
def test_an_entry_of_unknown_outcome_may_be_appended_again(is_done: bool) -> None:
    memory = Memory()
    log = log_on(memory)
    log.claim("a", {"run": "r1"})
    log._objects = Silent(log._objects, 3, is_done)
    with pytest.raises(LogOutcomeUnknown, match="may take effect yet"):
        say(log, "one")
    say(log, "one")
    say(log, "two")
    assert log_on(memory).state["words"] == ["claim", "one", "two"]


def test_what_was_written_late_comes_before_what_is_written_next() -> None:
    memory = Memory()
    log = log_on(memory)
    log.claim("a", {"run": "r1"})
    log._objects = Silent(log._objects, 3, True)
    with pytest.raises(LogOutcomeUnknown):
        say(log, "one")
    say(log, "two")
    assert log_on(memory).state["words"] == ["claim", "one", "two"]


def test_nothing_is_appended_without_a_claim() -> None:
    with pytest.raises(RuntimeError, match="has claimed it"):
        say(log_on(Memory()), "one")


def test_a_damaged_entry_is_named() -> None:
    memory = Memory()
    log = log_on(memory)
    log.claim("a", {"run": "r1"})
    (key,) = memory.open(URL).list("_epochgate/log")
    memory.open(URL).put(key, b"{")
    with pytest.raises(ValueError, match=r"000000000000001\.json is damaged"):
        log_on(memory)


def test_a_store_that_ignores_conditions_is_refused() -> None:
    require(Memory().open(URL))
    with pytest.raises(ConditionsIgnored, match="ignores conditions"):
        require(Lying(URL, MemoryStore()))
    with pytest.raises(ObjectStoreUnusable, match="does not list"):
        require(Forgetful(URL, MemoryStore()))


def test_a_url_that_cannot_be_opened_is_named() -> None:
    with pytest.raises(ObjectStoreUnusable, match="cannot use 's3:///nothing'"):
        open_url("s3:///nothing")


def test_every_order_of_two_writers_requests_leaves_one_history() -> None:
    """Both know the same log; each claims and says two words, in every interleaving."""
    for order in set(itertools.permutations("aaabbb")):
        memory = Memory()
        logs = {name: log_on(memory) for name in "ab"}
        done: dict[str, list[str]] = {"a": [], "b": []}
        for name in order:
            log, said = logs[name], done[name]
            try:
                if not said:
                    log.claim(name, {"run": name})
                    said.append("claim")
                else:
                    say(log, f"{name}{len(said)}")
                    said.append(f"{name}{len(said)}")
            except LogTakenOver:
                said.append("refused")
        words = log_on(memory).state["words"]
        winner = order[0]
        assert done["b" if winner == "a" else "a"][0] == "refused", order
        assert words == ["claim", f"{winner}1", f"{winner}2"], order


class Unheard(ObstoreObjects):
    """Makes an object, and tells that there is one: a client that hears no answer asks again."""

    def create(self, key: str, data: bytes) -> None:
        super().create(key, data)
        raise FileExistsError(key)


def test_a_store_whose_first_answer_was_lost_keeps_its_conditions_all_the_same() -> None:
    require(Unheard("memory", MemoryStore()))
