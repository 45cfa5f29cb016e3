"""A store of entries that answers as a schedule tells, and the steps of what asks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochgate.runtime.entries.errors import NotCreated
from epochgate.runtime.limited import CallLate
from tests.playing.gates import WELL, Process
from tests.playing.stage import Act

DENY: Final = "deny"
LOSE: Final = "lose"
HANG: Final = "hang"


class Kept:
    """The entries that all processes see."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}

    def create(self, key: str, data: bytes) -> None:
        if key in self.entries:
            raise FileExistsError(key)
        self.entries[key] = data


class Connection:
    """A process's connection to the store: what `place.Entries` says."""

    def __init__(self, kept: Kept, process: Process) -> None:
        self._kept, self._process = kept, process
        self.late: tuple[str, bytes] | None = None
        """A request whose answer was lost, and that may take effect yet."""

    def get(self, key: str) -> bytes:
        self._strike(OSError("the store refuses"))
        if key not in self._kept.entries:
            raise FileNotFoundError(key)
        return self._kept.entries[key]

    def create(self, key: str, data: bytes) -> None:
        self._strike(NotCreated("the store refuses"))
        if self._process.outcome == LOSE:
            self.late = key, data
            raise OSError("the answer is lost")
        self._kept.create(key, data)

    def delete(self, key: str) -> None:
        self._strike(OSError("the store refuses"))
        self._kept.entries.pop(key, None)

    def list(self, folder: str) -> list[str]:
        self._strike(OSError("the store refuses"))
        return sorted(
            key for key in self._kept.entries if not folder or key.startswith(f"{folder}/")
        )

    def sweep(self, folder: str) -> None:
        self._strike(OSError("the store refuses"))

    def place(self, key: str) -> str:
        return f"store/{key}"

    def arrive(self) -> None:
        """Let the late request take effect."""
        assert self.late is not None, "a request is late"
        (key, data), self.late = self.late, None
        self._kept.entries.setdefault(key, data)

    def _strike(self, error: OSError) -> None:
        if self._process.outcome == DENY:
            raise error
        if self._process.outcome == HANG:
            raise CallLate("the request does not end")


class Clients:
    """The processes of a world that ask one store, each with its `connection`."""

    system: Any
    processes: list[Any]
    failures: int

    def look(self, number: int) -> None:
        """Go on where the call of a process has ended."""
        raise NotImplementedError

    def close(self) -> None:
        """End what is under way."""
        for process in self.processes:
            process.kill()

    def may_fail(self) -> bool:
        """Return whether the closed system allows another failure."""
        return bool(self.failures < self.system.F)

    def answer(self, number: int, outcome: str) -> None:
        """Answer what the process asks."""
        self.processes[number].answer(outcome)
        self.look(number)

    def fail(self, number: int, outcome: str) -> None:
        """Answer by a failure."""
        self.failures += 1
        self.answer(number, outcome)

    def replace(self, number: int, process: Any) -> None:
        """Kill a process, whose late request stays; another takes its place."""
        ended = self.processes[number]
        cut(ended)
        self.processes[number] = process
        process.connection.late = ended.connection.late


def cut(process: Any) -> None:
    """Kill a process; a request that it was sending may take effect yet."""
    if process.asked == "write" and process.connection.late is None:
        process.answer(LOSE)
    process.kill()


def _asked(world: Any, number: int) -> str | None:
    asked: str | None = world.processes[number].asked
    return asked


def _may_deny(world: Any, number: int) -> bool:
    asked = _asked(world, number)
    return asked is not None and asked not in world.never_denied and world.may_fail()


def _may_lose(world: Any, number: int) -> bool:
    is_late = world.processes[number].connection.late is not None
    return _asked(world, number) == "write" and not is_late and bool(world.may_fail())


STORE_ACTS: Mapping[str, Act] = {
    "client.answer": Act(
        lambda world, n: world.answer(n, WELL), _asked, "the process asks for nothing"
    ),
    "client.arrive": Act(
        lambda world, n: world.processes[n].connection.arrive(),
        lambda world, n: world.processes[n].connection.late is not None,
        "no request is late",
    ),
    "client.lose": Act(lambda world, n: world.fail(n, LOSE), _may_lose, "nothing is being written"),
    "client.deny": Act(
        lambda world, n: world.fail(n, DENY), _may_deny, "the process asks the store for nothing"
    ),
    "client.hang": Act(
        lambda world, n: world.fail(n, HANG),
        lambda world, n: _asked(world, n) == "forget" and world.may_fail(),
        "nothing is being removed",
    ),
}
"""The steps of a client of the store. The world has `processes`, each with a `connection`, `answer`
and `fail`, `may_fail`, and `never_denied`: questions that the store does not hear.
"""
