"""A completed checkpoint as bytes, and back.

Decides: the format. Leaves to others: where the bytes are kept, and what to do with damaged ones.
Pure functions, for any thread.

    magic      8 bytes    fixed for all format versions to come, as is the frame itself
    version    4 bytes    big endian
    length     8 bytes    big endian, of the content
    content               msgpack: a map from the fields' names to their values
    checksum   32 bytes   sha256 of everything before it

The checksum covers the version, so that a flipped bit in it is reported as damage and not as a file
of another version. Equal checkpoints have equal bytes: mappings are written in ascending order of
their keys, except inside plain values, which keep the order they came in.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NoReturn

import msgpack

from epochgate.runtime.store.checkpoint import CompletedCheckpoint, problem_of
from epochgate.runtime.store.errors import (
    CheckpointDamaged,
    CheckpointFormatUnknown,
    CheckpointNotStorable,
    CheckpointOfAnotherJob,
)

FORMAT_VERSION = 2
"""What is written. 2 has added versions of states, files, epoch and savepoint; 1 is read, too."""
MAGIC = b"\x89EPGCHK\n"

_HEADER = struct.Struct(">8sIQ")
_CHECKSUM_BYTES = hashlib.sha256().digest_size
_FIELDS = frozenset(field.name for field in fields(CompletedCheckpoint))
_SINCE_VERSION_2: dict[str, Any] = {
    "versions": {},
    "coordinator_versions": {},
    "files": None,
    "epoch": 0,
    "begun_from": "",
}
"""What a checkpoint of version 1 says of the fields that came with version 2."""


def encode_checkpoint(checkpoint: CompletedCheckpoint) -> bytes:
    """The bytes of `checkpoint`. Raises `CheckpointNotStorable`.

    >>> checkpoint = CompletedCheckpoint(7, "job", "run", 0.0, parallelism=1)
    >>> decode_checkpoint(encode_checkpoint(checkpoint), source="example") == checkpoint
    True
    """
    problem = problem_of(checkpoint)
    if problem is not None:
        raise CheckpointNotStorable(
            f"checkpoint {checkpoint.checkpoint_id!r} cannot be stored: {problem}. "
            "Have the coordinator, operator or writer that made this value turn it into bytes or "
            "plain values (lists, dicts, str, bytes, numbers)"
        )
    content: bytes = msgpack.packb(
        {
            "checkpoint_id": checkpoint.checkpoint_id,
            "job_id": checkpoint.job_id,
            "run_id": checkpoint.run_id,
            "created_at": float(checkpoint.created_at),
            "parallelism": checkpoint.parallelism,
            "coordinators": dict(sorted(checkpoint.coordinators.items())),
            "subtasks": {
                subtask: dict(sorted(states.items()))
                for subtask, states in sorted(checkpoint.subtasks.items())
            },
            "committables": dict(sorted(checkpoint.committables.items())),
            "uncommitted": dict(sorted(checkpoint.uncommitted.items())),
            "finished": checkpoint.finished,
            "properties": checkpoint.properties,
            "versions": dict(sorted(checkpoint.versions.items())),
            "coordinator_versions": dict(sorted(checkpoint.coordinator_versions.items())),
            "files": checkpoint.files,
            "epoch": checkpoint.epoch,
            "begun_from": checkpoint.begun_from,
        },
        strict_types=True,
    )
    return seal(content, FORMAT_VERSION)


def decode_checkpoint(
    data: bytes, *, source: str, job_id: str | None = None
) -> CompletedCheckpoint:
    """The checkpoint in `data`, whose every value has been checked; `source` names it in errors.

    Raises `CheckpointDamaged`, `CheckpointFormatUnknown`, and `CheckpointOfAnotherJob` if `job_id`
    is given and is not the checkpoint's; nothing else, whatever the bytes.
    """
    version, content = unseal(data, source)
    if version not in _READERS:
        raise CheckpointFormatUnknown(
            f"checkpoint {source} has format version {version}, and this epochgate reads versions "
            f"{min(_READERS)} to {max(_READERS)}. Resume the job with the epochgate that wrote it, "
            "or a newer one; or start it again with an empty checkpoint directory"
        )
    try:
        values = msgpack.unpackb(content, strict_map_key=False, ext_hook=_refuse_extension)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        reason = f"its content does not decode ({type(error).__name__}: {error})"
        raise CheckpointDamaged(source, reason) from error
    checkpoint = _READERS[version](values, source)
    if job_id is not None and checkpoint.job_id != job_id:
        raise CheckpointOfAnotherJob(
            f"checkpoint {source} was taken by job {checkpoint.job_id!r}, and this is job "
            f"{job_id!r}. Give each job a checkpoint directory of its own"
        )
    return checkpoint


def seal(content: bytes, version: int) -> bytes:
    """`content` framed by header and checksum."""
    framed = _HEADER.pack(MAGIC, version, len(content)) + content
    return framed + hashlib.sha256(framed).digest()


def unseal(data: bytes, source: str) -> tuple[int, bytes]:
    """The format version and the content of what `seal` made. Raises `CheckpointDamaged`."""
    least = _HEADER.size + _CHECKSUM_BYTES
    if len(data) < least:
        raise CheckpointDamaged(
            source, f"it ends after {len(data)} bytes, and none has less than {least}"
        )
    magic, version, length = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise CheckpointDamaged(source, f"it begins with {magic!r} instead of {MAGIC!r}")
    if len(data) - least != length:
        raise CheckpointDamaged(
            source, f"its content has {len(data) - least} bytes instead of {length}"
        )
    view = memoryview(data)
    found = hashlib.sha256(view[:-_CHECKSUM_BYTES]).digest()
    if not hmac.compare_digest(found, view[-_CHECKSUM_BYTES:]):
        raise CheckpointDamaged(source, "its checksum does not fit its content")
    return version, bytes(view[_HEADER.size : -_CHECKSUM_BYTES])


def _checkpoint_of(values: Any, source: str) -> CompletedCheckpoint:
    if type(values) is not dict or set(values) != _FIELDS:
        raise CheckpointDamaged(source, "its content does not have the fields of a checkpoint")
    checkpoint = CompletedCheckpoint(**values)
    problem = problem_of(checkpoint)
    if problem is not None:
        raise CheckpointDamaged(source, problem)
    return checkpoint


def _checkpoint_of_version_1(values: Any, source: str) -> CompletedCheckpoint:
    if type(values) is not dict or set(values) != _FIELDS - set(_SINCE_VERSION_2):
        raise CheckpointDamaged(source, "its content does not have the fields of a checkpoint")
    return _checkpoint_of({**values, **_SINCE_VERSION_2}, source)


_READERS: dict[int, Callable[[Any, str], CompletedCheckpoint]] = {
    1: _checkpoint_of_version_1,
    2: _checkpoint_of,
}
"""Format version -> what makes a checkpoint of the content."""


def _refuse_extension(code: int, data: bytes) -> NoReturn:
    raise ValueError(f"extension type {code} with {len(data)} bytes")
