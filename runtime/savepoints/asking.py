"""Asking for a savepoint from another process: of the job that runs, or of the one that has ended.

Of a job that has ended, its newest whole checkpoint is copied; nothing is claimed or changed for
that. Runs in the process that asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final

from epochgate.errors import UsageError
from epochgate.runtime.filesystem import LocalFileSystem
from epochgate.runtime.objects.client import ObjectStore, is_url, open_url
from epochgate.runtime.requests.asking import ask_job
from epochgate.runtime.requests.listening import Answer, Handler
from epochgate.runtime.savepoints.savepoint import Savepoint, default_place, write_savepoint
from epochgate.runtime.shell.futures import follow
from epochgate.runtime.store.checkpoint import CompletedCheckpoint
from epochgate.runtime.store.errors import CheckpointDamaged
from epochgate.runtime.store.inspection import StoredCheckpoint, last_epoch, stored_checkpoints

KIND: Final = "savepoint"
"""Of the request to a job."""


class NothingToCopy(UsageError):
    """A job has ended, and none of its checkpoints can be made a savepoint of."""


def ask_savepoint(
    checkpoints: str,
    to: str | None = None,
    *,
    timeout_s: float,
    open_objects: Callable[[str], ObjectStore] = open_url,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Savepoint, bool]:
    """A savepoint of the job with these checkpoints, and whether the job made it, which runs.

    Raises NothingToCopy, and what `ask_job`, `write_savepoint` and the reading of checkpoints
    raise.
    """
    request = {"kind": KIND, "to": to}
    answer = ask_job(
        checkpoints, request, timeout_s=timeout_s, open_objects=open_objects, clock=clock
    )
    if answer is not None:
        return Savepoint(**{name: one for name, one in answer.items() if name != "state"}), True
    return copy_newest(checkpoints, to, open_objects=open_objects), False


def requested(ask: Callable[[str | None], Future[Savepoint]]) -> Handler:
    """Return the job's half: a handler of such requests, which has `ask` make the savepoint."""

    def handle(request: dict[str, Any]) -> Future[Answer]:
        to = request.get("to")
        if not (to is None or isinstance(to, str)):
            raise ValueError(f"'to' is {to!r}, and no path")
        answer: Future[Answer] = Future()
        follow(answer, ask(to), Savepoint.to_json)
        return answer

    return handle


def copy_newest(
    checkpoints: str,
    to: str | None = None,
    *,
    open_objects: Callable[[str], ObjectStore] = open_url,
) -> Savepoint:
    """Make a savepoint of the newest whole checkpoint of a job that has ended.

    Raises NothingToCopy, and what `write_savepoint` raises.
    """
    for one in reversed(_retained(checkpoints, open_objects)):
        try:
            checkpoint = one.load()
        except CheckpointDamaged:
            continue
        return _copied(checkpoint, checkpoints, to, open_objects)
    raise NothingToCopy(
        f"{checkpoints} holds no whole checkpoint to make a savepoint of, and no job runs there"
    )


def copy_retained(
    checkpoints: str,
    checkpoint_id: int,
    to: str | None = None,
    *,
    open_objects: Callable[[str], ObjectStore] = open_url,
) -> Savepoint:
    """Make a savepoint of one of the checkpoints that a job keeps, whether it runs or not.

    Raises NothingToCopy, CheckpointDamaged, CheckpointNotFound where a job that runs has removed it
    since, and what `write_savepoint` raises.
    """
    kept = {one.checkpoint_id: one for one in _retained(checkpoints, open_objects)}
    if checkpoint_id not in kept:
        ids = ", ".join(map(str, kept)) or "none"
        raise NothingToCopy(
            f"{checkpoints} holds no checkpoint {checkpoint_id}; its job keeps {ids}"
        )
    return _copied(kept[checkpoint_id].load(), checkpoints, to, open_objects)


def _retained(
    checkpoints: str, open_objects: Callable[[str], ObjectStore]
) -> list[StoredCheckpoint]:
    stored = stored_checkpoints(checkpoints, open_objects=open_objects)
    return [one for one in stored if not one.is_aside]


def _copied(
    checkpoint: CompletedCheckpoint,
    checkpoints: str,
    to: str | None,
    open_objects: Callable[[str], ObjectStore],
) -> Savepoint:
    where = to or default_place(checkpoints, checkpoint.checkpoint_id)
    epoch = max(checkpoint.epoch, last_epoch(checkpoints, open_objects))
    return write_savepoint(
        where,
        replace(checkpoint, epoch=epoch),
        _reader(checkpoints, open_objects),
        open_objects=open_objects,
    )


def _reader(checkpoints: str, open_objects: Callable[[str], ObjectStore]) -> Callable[[str], bytes]:
    if is_url(checkpoints):
        return open_objects(checkpoints).get
    files = LocalFileSystem()
    return lambda name: files.read_bytes(f"{checkpoints}/{name}")
