"""A log of numbered objects, to which exactly one of several writers appends each entry.

    _epochgate/log/000000000000017.json      created only if it is not there

Decides who may write, by conditional creation alone: no locks, no clocks. A writer appends behind
the last entry that it knows; where another has been faster, the store says so in the same request.
The first entry of a writer is its claim. A writer that finds the claim of another behind what it
knows has been replaced and can append nothing any more, also when it was suspended for a year
between two requests: there is no moment between looking and writing. Others may write beside it,
without a claim, as long as a condition holds for the state that their entry follows.
Leaves to others what the entries mean: `fold` makes the state of them. Each `STATE_EVERY`th entry
holds the state, so that a reader reads at most that many. Entries are never removed: a number that
came up again would let a replaced writer go on.
Runs on the driver and in readers, on one thread at a time.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, Final

from epochgate.errors import EpochgateError
from epochgate.runtime.objects.client import ObjectStore

FOLDER: Final = "_epochgate/log"
STATE_EVERY: Final = 64
TRIES: Final = 3

Entry = dict[str, Any]
State = dict[str, Any]


def _always(_state: State) -> bool:
    return True


class LogTakenOver(EpochgateError):
    """Another writer has claimed the log: URL, its entry."""

    def __str__(self) -> str:
        claim = self.args[1]
        return (
            f"{self.args[0]!r} was claimed by run {claim.get('run')} since. This driver was taken "
            "for dead and replaced; stop it. Nothing was changed."
        )


class LogOutcomeUnknown(EpochgateError):
    """The outcome of an append is unknown: URL, reason."""

    def __str__(self) -> str:
        return (
            f"whether an entry was written to {self.args[0]!r} is unknown: {self.args[1]}. It may "
            "take effect yet"
        )


class ObjectLog:
    """The log below one URL, as one writer or reader knows it; `refresh` reads what is new.

    `fold(state, entry)` returns the next state; state and entries are JSON. It may put the state's
    own containers into the next one and change them, so that an entry costs no more in a long log
    than in a short one; the state that it is given is not used again.
    Writer and run of the last claim are part of the state, whatever `fold` keeps.
    """

    def __init__(
        self, objects: ObjectStore, fold: Callable[[State, Entry], State], initial: State
    ) -> None:
        self._objects, self._fold = objects, fold
        self.number = 0
        """Of the last entry that is known."""
        self.state = _copied(initial)
        self._writer: str | None = None

    def refresh(self) -> None:
        """Read the entries that are new. Raises OSError, or ValueError for one that is damaged."""
        keys = self._objects.list(FOLDER)
        if not keys:
            return
        last = int(keys[-1].rpartition("/")[2].removesuffix(".json"))
        whole = last - last % STATE_EVERY
        if whole > self.number:
            entry = self._read(whole)
            self.number, self.state = whole, entry["state"]
        while self.number < last:
            self._apply(self._read(self.number + 1))

    def claim(self, writer: str, entry: Entry) -> None:
        """Append the first entry of a writer, unless another has claimed since `refresh`.

        Raises LogTakenOver then, LogOutcomeUnknown, OSError, and ValueError for a damaged entry.
        """
        self._writer = writer
        self._append(writer, {**entry, "kind": "claim"}, _always)

    def append(self, entry: Entry, is_valid: Callable[[State], bool] = _always) -> bool:
        """Write the next entry; appending the same again, after an error, has no second effect.

        False, and nothing is written, if `is_valid` does not hold for the state before the entry.
        Raises LogTakenOver, LogOutcomeUnknown, OSError, ValueError for a damaged entry, and
        RuntimeError before `claim`.
        """
        if self._writer is None:
            raise RuntimeError("a log is appended to by a writer that has claimed it")
        if self.state.get("writer") != self._writer:
            raise LogTakenOver(self._objects.url, self.state)
        return self._append(self._writer, entry, is_valid)

    def append_beside(self, writer: str, entry: Entry, is_valid: Callable[[State], bool]) -> bool:
        """The same for one who has not claimed the log, whatever its writer does; `writer` is a
        name of its own. LogTakenOver is for writers that have claimed it.

        Raises LogOutcomeUnknown, OSError, and ValueError for a damaged entry.
        """
        return self._append(writer, entry, is_valid, is_beside=True)

    def _append(
        self,
        writer: str,
        entry: Entry,
        is_valid: Callable[[State], bool],
        *,
        is_beside: bool = False,
    ) -> bool:
        while is_valid(self.state):
            number = self.number + 1
            body = {**entry, "number": number, "writer": writer}
            if number % STATE_EVERY == 0:
                body["state"] = self._next(_copied(self.state), body)
            found = self._create(number, body)
            is_mine = found["writer"] == writer
            self._apply(found)
            if is_mine and _content(found) == _content(body):
                return True
            # Of this writer, when it did not hear how an append ended; or what may come between.
            if not is_mine and not is_beside and found["kind"] == "claim":
                raise LogTakenOver(self._objects.url, found)
        return False

    def require_writer(self) -> None:
        """Raise LogTakenOver if another has claimed the log by now; OSError."""
        self.refresh()
        if self.state.get("writer") != self._writer:
            raise LogTakenOver(self._objects.url, self.state)

    def _create(self, number: int, body: Entry) -> Entry:
        """The entry of this number, which is `body` unless another was there first."""
        data = json.dumps(body, sort_keys=True).encode()
        reason: OSError | None = None
        for _ in range(TRIES):
            try:
                self._objects.create(_key(number), data)
                return body
            except FileExistsError:
                return self._read(number)
            except OSError as error:
                reason = error
        raise LogOutcomeUnknown(self._objects.url, str(reason)) from reason

    def _read(self, number: int) -> Entry:
        try:
            entry: Entry = json.loads(self._objects.get(_key(number)))
        except ValueError as error:
            raise ValueError(f"{self._objects.url}/{_key(number)} is damaged: {error}") from error
        return entry

    def _apply(self, entry: Entry) -> None:
        self.state, self.number = self._next(self.state, entry), entry["number"]

    def _next(self, state: State, entry: Entry) -> State:
        last_claim = entry if entry["kind"] == "claim" else state
        owner = {name: last_claim.get(name) for name in ("writer", "run")}
        return {**self._fold(state, entry), **owner}


def _key(number: int) -> str:
    return f"{FOLDER}/{number:015d}.json"


def _copied(state: State) -> State:
    """With containers of its own; what is in these is never changed."""
    return {name: copy.copy(value) for name, value in state.items()}


def _content(entry: Entry) -> Entry:
    return {name: value for name, value in entry.items() if name not in ("state", "number")}
