"""Savepoints: checkpoints of a job that stay, each whole in a place of its own, to start from."""

from __future__ import annotations

from epochgate.runtime.savepoints.errors import (
    CheckpointsNotFresh,
    NoSavepoint,
    SavepointFailed,
    SavepointIncomplete,
    SavepointOfAnotherJob,
    SavepointPlaceTaken,
)
from epochgate.runtime.savepoints.savepoint import (
    Savepoint,
    StoredSavepoint,
    begin_from,
    default_place,
    read_savepoint,
    write_savepoint,
)

__all__ = [
    "CheckpointsNotFresh",
    "NoSavepoint",
    "Savepoint",
    "SavepointFailed",
    "SavepointIncomplete",
    "SavepointOfAnotherJob",
    "SavepointPlaceTaken",
    "StoredSavepoint",
    "begin_from",
    "default_place",
    "read_savepoint",
    "write_savepoint",
]
