"""A completed checkpoint: everything that a job needs to go on from where it was.

Decides: what a checkpoint consists of, and which values may be in it (those that come back from
storage exactly as they went in). Leaves to others: when it is complete (the checkpoint
coordinator), what the bytes inside mean (coordinators, operators, committers), and how it is
stored. Pure values; immutable by agreement once handed to a store, on whichever thread.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

PLAIN_DEPTH_MAX = 64
"""Lists and mappings may be nested this deep inside a plain value."""

CHECKPOINT_ID_MAX = 2**63 - 1


DEBTS = "epochgate.debts"
"""The property that holds the work after commits which is not known to be done: earlier checkpoint
id -> its committables, as in `uncommitted`.
"""


GIVEN_UP = "epochgate.given_up"
"""The property that keeps what was given up by command: [checkpoint, committables, seconds since
1970] each.
"""

RUNTIME_FOLDERS = frozenset(("_epochgate", "checkpoints", "history", "parts", "requests"))
"""The folders beside checkpoints that the runtime writes: a savepoint from elsewhere says which
files are copied there, and may not name these.
"""


PLACES = "epochgate.committing"
"""The property of a job whose commits take several steps: earlier checkpoint id -> where that is on
its way to the global committer, as `places` says.
"""


COMMITTED = "epochgate.committed"
"""The property that keeps what is known as committed: label of the sink, "" without one -> the
newest checkpoint with committables of this sink.
"""


MISSING = "epochgate.missing"
"""The property that keeps which committed checkpoints a target may lack, by command: [after, upto,
seconds since 1970] each.
"""


@dataclass(frozen=True)
class CompletedCheckpoint:
    """One checkpoint after all coordinators and subtasks have acknowledged it.

    A plain value is none, a bool, an int of 64 bits, a float, a str, bytes, a list of plain values,
    or a dict from str or int to plain values: no tuples, no subclasses, since those would come back
    changed.

    checkpoint_id: from 0, increasing over the life of the job.
    job_id: which job; a checkpoint is never restored into another one.
    run_id: which start of the job's driver took it.
    created_at: seconds since 1970, handed in by the taker of the checkpoint.
    coordinators: operator id -> state of its coordinator; none if it had no state.
    subtasks: subtask -> operator id -> state.
    committables: subtask -> what it handed over for this checkpoint, as plain values.
    uncommitted: earlier checkpoint id -> committables of it that are not known to be committed.
    parallelism: number of subtasks; subtasks are numbered from 0.
    properties: name -> plain value, for whatever else has to survive.
    versions: subtask -> operator id -> version of its state; coordinator_versions: operator id ->
    version of its coordinator's; each where that is not 1.
    files: names of the files beside the checkpoints that the states refer to, in folders of their
    own (`is_beside`); none: not known.
    epoch: which opening of its store has taken it.
    begun_from: id of the savepoint that the job's checkpoints began with, or that this is; empty
    for a job that began with nothing.
    """

    checkpoint_id: int
    job_id: str
    run_id: str
    created_at: float
    parallelism: int
    coordinators: dict[str, bytes | None] = field(default_factory=dict)
    subtasks: dict[int, dict[str, bytes]] = field(default_factory=dict)
    committables: dict[int, list[Any]] = field(default_factory=dict)
    uncommitted: dict[int, list[Any]] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    versions: dict[int, dict[str, int]] = field(default_factory=dict)
    coordinator_versions: dict[str, int] = field(default_factory=dict)
    files: list[str] | None = field(default_factory=list)
    epoch: int = 0
    begun_from: str = ""


def flat_of(committables: dict[int, list[Any]]) -> list[Any]:
    """Committables by subtask as a list, which `uncommitted` has: [[subtask, values], ...]."""
    return [[subtask, values] for subtask, values in committables.items()]


def debts_of(checkpoint: CompletedCheckpoint) -> dict[int, list[Any]]:
    """The committables of each earlier checkpoint whose work after its commit is owed."""
    debts: dict[int, list[Any]] = checkpoint.properties.get(DEBTS, {})
    return debts


def committed_of(checkpoint: CompletedCheckpoint) -> dict[str, int]:
    """The newest checkpoint of each sink that is known as committed; none of it before one is."""
    return dict(checkpoint.properties.get(COMMITTED, {}))


def missing_of(checkpoint: CompletedCheckpoint) -> list[list[Any]]:
    """The committed checkpoints that a target may lack: after, upto, seconds since 1970."""
    found: list[list[Any]] = checkpoint.properties.get(MISSING, [])
    return found


def in_doubt(checkpoint: CompletedCheckpoint) -> dict[int, dict[int, list[Any]]]:
    """Return what a start from this checkpoint would commit, by checkpoint, oldest first.

    A checkpoint does not know of its own commit, so its own committables are among them.
    """
    ledger = ledger_of(checkpoint)
    return {number: held for number, held in ledger.items() if any(held.values())}


def ledger_of(checkpoint: CompletedCheckpoint) -> dict[int, dict[int, list[Any]]]:
    """The same with checkpoints that have no committables. What the tasks have committed is in
    doubt until the global committer has committed it too.
    """
    ledger = unsettled_of(checkpoint)
    for number, place in checkpoint.properties.get(PLACES, {}).items():
        for share in place.get("shares", ()):
            subtask, done = share[0], share[3] if share[5] is None else share[5]
            if done:
                ledger[number][subtask] = ledger[number].get(subtask, []) + done
    return ledger


def unsettled_of(checkpoint: CompletedCheckpoint) -> dict[int, dict[int, list[Any]]]:
    """The committables themselves that a start hands on, by checkpoint, oldest first."""
    held = {earlier: dict(flat) for earlier, flat in sorted(checkpoint.uncommitted.items())}
    held[checkpoint.checkpoint_id] = checkpoint.committables
    return held


def problem_of(checkpoint: CompletedCheckpoint) -> str | None:
    """The first thing that keeps `checkpoint` from being stored or restored, or none.

    >>> good = CompletedCheckpoint(1, "job", "run", 0.0, parallelism=2)
    >>> problem_of(good)
    >>> problem_of(CompletedCheckpoint(1, "job", "run", 0.0, 2, committables={0: [{"a": (1,)}]}))
    "committables[0][0]['a'] is a tuple, not a plain value"
    >>> problem_of(CompletedCheckpoint(1, "job", "run", 0.0, 2, subtasks={2: {}}))
    'subtasks: subtask 2, expected 0 to 1'
    """
    return next(_problems(checkpoint), None)


def problem_of_values(values: list[Any], where: str) -> str | None:
    """The first thing in a list that no checkpoint can hold, or none.

    >>> problem_of_values([{"a": [1, b"c"]}], "committables")
    >>> problem_of_values([{b"a": 1}], "committables")
    "committables[0] has the key b'a', expected a str or an int of 64 bits"
    """
    return next(_plain_problems(values, where, 0), None)


def _problems(checkpoint: CompletedCheckpoint) -> Iterator[str]:
    if not _is_id(checkpoint.checkpoint_id):
        yield f"checkpoint_id is {checkpoint.checkpoint_id!r}, expected an int from 0"
        return
    if type(checkpoint.parallelism) is not int or not 1 <= checkpoint.parallelism < 2**31:
        yield f"parallelism is {checkpoint.parallelism!r}, expected an int from 1"
        return
    for name, text in (("job_id", checkpoint.job_id), ("run_id", checkpoint.run_id)):
        if not _is_text(text) or not text:
            yield f"{name} is {text!r}, expected a text that is not empty"
    if not _is_time(checkpoint.created_at):
        yield f"created_at is {checkpoint.created_at!r}, expected seconds since 1970"
    yield from _coordinator_problems(checkpoint)
    yield from _subtask_problems(checkpoint)
    yield from _committable_problems(checkpoint)
    yield from _history_problems(checkpoint)
    if type(checkpoint.properties) is not dict or not all(map(_is_text, checkpoint.properties)):
        yield "properties is not a dict from str"
        return
    yield from _plain_problems(checkpoint.properties, "properties", 0)


def _coordinator_problems(checkpoint: CompletedCheckpoint) -> Iterator[str]:
    if type(checkpoint.coordinators) is not dict:
        yield f"coordinators is a {type(checkpoint.coordinators).__name__}, expected a dict"
        return
    for operator, state in checkpoint.coordinators.items():
        if not _is_text(operator):
            yield f"coordinators: operator id {operator!r} is not a text"
        if state is not None and type(state) is not bytes:
            yield f"coordinators[{operator!r}] is a {type(state).__name__}, expected bytes or none"


def _subtask_problems(checkpoint: CompletedCheckpoint) -> Iterator[str]:
    yield from _subtask_key_problems("subtasks", checkpoint.subtasks, checkpoint.parallelism)
    for subtask, states in checkpoint.subtasks.items():
        if type(states) is not dict:
            yield f"subtasks[{subtask}] is a {type(states).__name__}, expected a dict"
            return
        for operator, state in states.items():
            if not _is_text(operator):
                yield f"subtasks[{subtask}]: operator id {operator!r} is not a text"
            if type(state) is not bytes:
                kind = type(state).__name__
                yield f"subtasks[{subtask}][{operator!r}] is a {kind}, expected bytes"


def _committable_problems(checkpoint: CompletedCheckpoint) -> Iterator[str]:
    yield from _subtask_key_problems(
        "committables", checkpoint.committables, checkpoint.parallelism
    )
    if type(checkpoint.uncommitted) is not dict:
        yield f"uncommitted is a {type(checkpoint.uncommitted).__name__}, expected a dict"
        return
    for earlier in checkpoint.uncommitted:
        if not _is_id(earlier) or earlier >= checkpoint.checkpoint_id:
            latest = checkpoint.checkpoint_id
            yield f"uncommitted: checkpoint {earlier!r}, expected one before {latest}"
    for name, lists in (
        ("committables", checkpoint.committables),
        ("uncommitted", checkpoint.uncommitted),
    ):
        for key, values in lists.items():
            if type(values) is not list:
                yield f"{name}[{key}] is a {type(values).__name__}, expected a list"
            else:
                yield from _plain_problems(values, f"{name}[{key}]", 0)


def _history_problems(checkpoint: CompletedCheckpoint) -> Iterator[str]:
    """Return what is wrong with versions, files, epoch and the savepoint."""
    if checkpoint.coordinator_versions != {}:
        yield from _version_problems("coordinator_versions", checkpoint.coordinator_versions)
    if checkpoint.versions != {}:  # of most jobs all versions are 1
        yield from _subtask_key_problems("versions", checkpoint.versions, checkpoint.parallelism)
        for subtask, versions in checkpoint.versions.items():
            yield from _version_problems(f"versions[{subtask}]", versions)
    if checkpoint.files is not None:
        if type(checkpoint.files) is not list:
            yield f"files is a {type(checkpoint.files).__name__}, expected a list or none"
        else:
            yield from (
                f"files: {name!r}, expected a file in a folder that the runtime does not use"
                for name in checkpoint.files
                if not is_beside(name)
            )
    if not _is_id(checkpoint.epoch):
        yield f"epoch is {checkpoint.epoch!r}, expected an int from 0"
    if not _is_text(checkpoint.begun_from):
        yield f"begun_from is {checkpoint.begun_from!r}, expected a text"


def _version_problems(name: str, versions: object) -> Iterator[str]:
    if type(versions) is not dict:
        yield f"{name} is a {type(versions).__name__}, expected a dict"
        return
    for operator, version in versions.items():
        if not _is_text(operator) or type(version) is not int or not 0 <= version < 2**31:
            yield f"{name}[{operator!r}] is {version!r}, expected an int from 0"


def is_beside(name: object) -> bool:
    """Return whether this can be the name of a file beside the checkpoints to which states refer:
    in a folder that is none of `RUNTIME_FOLDERS`, of printable characters, and nothing of it
    hidden.

    >>> is_beside("known-files/known-1.segment"), is_beside("../x"), is_beside("claim.json")
    (True, False, False)
    """
    if type(name) is not str or not name.isprintable():
        return False
    folder, *rest = name.split("/")
    is_free = folder.lower() not in RUNTIME_FOLDERS
    return bool(rest) and is_free and all(part and part[0] != "." for part in (folder, *rest))


def _subtask_key_problems(name: str, mapping: object, parallelism: int) -> Iterator[str]:
    if type(mapping) is not dict:
        yield f"{name} is a {type(mapping).__name__}, expected a dict"
        return
    for subtask in mapping:
        if type(subtask) is not int or not 0 <= subtask < parallelism:
            yield f"{name}: subtask {subtask!r}, expected 0 to {parallelism - 1}"


def _plain_problems(value: object, where: str, depth: int) -> Iterator[str]:
    if isinstance(value, list | dict) and depth == PLAIN_DEPTH_MAX:
        yield f"{where} is nested deeper than {PLAIN_DEPTH_MAX}"
    elif type(value) is list:
        yield from _item_problems(enumerate(value), where, depth)
    elif type(value) is dict:
        for key in value:
            if not _is_text(key) and not _is_int_of_64_bits(key):
                yield f"{where} has the key {key!r}, expected a str or an int of 64 bits"
        yield from _item_problems(value.items(), where, depth)
    elif type(value) is int:
        yield f"{where} does not fit into 64 bits"
    elif type(value) is str:
        yield f"{where} is a text that has no UTF-8 form"
    else:
        yield f"{where} is a {type(value).__name__}, not a plain value"


def _item_problems(items: Iterable[tuple[object, object]], where: str, depth: int) -> Iterator[str]:
    for key, item in items:
        if not _is_plain_scalar(item):
            yield from _plain_problems(item, f"{where}[{key!r}]", depth + 1)


def _is_plain_scalar(value: object) -> bool:
    if value is None or type(value) in (bool, float, bytes):
        return True
    return _is_text(value) or _is_int_of_64_bits(value)


def _is_int_of_64_bits(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**64


def _is_time(value: object) -> bool:
    return _is_int_of_64_bits(value) or (type(value) is float and math.isfinite(value))


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value <= CHECKPOINT_ID_MAX


def _is_text(value: object) -> bool:
    if type(value) is not str:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
