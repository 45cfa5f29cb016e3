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
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NoReturn

import msgpack

from epochgate.runtime.api.state_parts import pieces_of
from epochgate.runtime.store.checkpoint import CompletedCheckpoint, problem_of
from epochgate.runtime.store.errors import (
    CheckpointDamaged,
    CheckpointFormatUnknown,
    CheckpointNotStorable,
    CheckpointOfAnotherJob,
)
from epochgate.runtime.store.parts import PART_BYTES_MIN, Part, is_part_name

Keep = Callable[[bytes], Part | None]
ReadPart = Callable[[str], bytes]

FORMAT_VERSION = 2
"""What is written; 1 is read, too. 2 has added versions of states, files, epoch and savepoint, and
states of which parts lie beside the checkpoint.
"""
MAGIC = b"\x89EPGCHK\n"

_HEADER = struct.Struct(">8sIQ")
_CHECKSUM_BYTES = hashlib.sha256().digest_size
_FIELDS = frozenset(field.name for field in fields(CompletedCheckpoint))
_NEVER_SET = "finished"
"""A field of both versions that jobs left empty: written for earlier readers, and not looked at."""
_SINCE_VERSION_2: dict[str, Any] = {
    "versions": {},
    "coordinator_versions": {},
    "files": None,
    "epoch": 0,
    "begun_from": "",
}
"""What a checkpoint of version 1 says of the fields that came with version 2."""


def encode_checkpoint(checkpoint: CompletedCheckpoint, keep: Keep | None = None) -> bytes:
    """The bytes of `checkpoint`. Raises `CheckpointNotStorable`.

    `keep` is given the parts of each state of at least `PART_BYTES_MIN` bytes, and says which of
    them lie beside the checkpoint; by default none does, and the bytes are all of it.

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
            "coordinators": _in_parts(checkpoint.coordinators, keep),
            "subtasks": {
                subtask: _in_parts(states, keep)
                for subtask, states in sorted(checkpoint.subtasks.items())
            },
            "committables": _ascending(checkpoint.committables),
            "uncommitted": _ascending(checkpoint.uncommitted),
            _NEVER_SET: [],
            "properties": checkpoint.properties,
            "versions": {
                subtask: _ascending(versions)
                for subtask, versions in _ascending(checkpoint.versions).items()
            },
            "coordinator_versions": _ascending(checkpoint.coordinator_versions),
            "files": checkpoint.files,
            "epoch": checkpoint.epoch,
            "begun_from": checkpoint.begun_from,
        },
        strict_types=True,
    )
    return seal(content, FORMAT_VERSION)


def _ascending(mapping: dict[Any, Any]) -> dict[Any, Any]:
    """By key; most that come here are empty."""
    return dict(sorted(mapping.items())) if mapping else mapping


def _in_parts(states: Mapping[str, bytes | None], keep: Keep | None) -> dict[str, Any]:
    """States by operator, ascending; one of which parts lie elsewhere is a list of bytes and of
    [name, sha256, length], which put together are the state.
    """
    return {name: _state_in_parts(states[name], keep) for name in sorted(states)}


def _state_in_parts(state: bytes | None, keep: Keep | None) -> Any:
    if state is None or keep is None or len(state) < PART_BYTES_MIN:
        return state
    items: list[Any] = []
    for piece in pieces_of(state):
        part = keep(piece) if len(piece) < len(state) else None
        if part is not None:
            items.append([part.name, part.digest, part.length])
        elif items and type(items[-1]) is bytes:
            items[-1] += piece
        else:
            items.append(piece)
    return state if len(items) == 1 else items


def decode_checkpoint(
    data: bytes,
    *,
    source: str,
    job_id: str | None = None,
    read_part: ReadPart | None = None,
) -> CompletedCheckpoint:
    """The checkpoint in `data`, whose every value has been checked; `source` names it in errors.
    `read_part` reads a file beside it.

    Raises what `read_part` raises but for FileNotFoundError, `CheckpointDamaged`,
    `CheckpointFormatUnknown`, and `CheckpointOfAnotherJob` if `job_id` is given and is not the
    checkpoint's; nothing else, whatever the bytes.
    """
    version, values = _content_of(data, source)
    if version > 1:
        values = _put_together(values, source, read_part)
    checkpoint = _READERS[version](values, source)
    if job_id is not None and checkpoint.job_id != job_id:
        raise CheckpointOfAnotherJob(
            f"checkpoint {source} was taken by job {checkpoint.job_id!r}, and this is job "
            f"{job_id!r}. Give each job a checkpoint directory of its own"
        )
    return checkpoint


def parts_in(data: bytes, *, source: str) -> list[Part]:
    """The parts beside a checkpoint that it refers to, each once.

    Raises `CheckpointDamaged`, `CheckpointFormatUnknown`.
    """
    found: list[Part] = []

    def note(part: Part) -> bytes:
        found.append(part)
        return b""

    version, values = _content_of(data, source)
    if version > 1:
        _each_state(values, lambda state: _joined(state, source, note))
    return list(dict.fromkeys(found))


def _content_of(data: bytes, source: str) -> tuple[int, Any]:
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
    return version, values


def _put_together(values: Any, source: str, read_part: ReadPart | None) -> Any:
    """The content with states that are whole."""

    def read(part: Part) -> bytes:
        if read_part is None:
            raise CheckpointDamaged(source, f"its part {part.name!r} is not in it")
        try:
            content = read_part(part.name)
        except FileNotFoundError as error:
            raise CheckpointDamaged(source, f"its part {part.name!r} is not there") from error
        if hashlib.sha256(content).digest() != part.digest:
            raise CheckpointDamaged(source, f"its part {part.name!r} is not what was written")
        return content

    return _each_state(values, lambda state: _joined(state, source, read))


def _each_state(values: Any, change: Callable[[Any], Any]) -> Any:
    """The content with states that were changed; what is no content is checked later."""
    if type(values) is not dict:
        return values
    changed = dict(values)
    if type(values.get("coordinators")) is dict:
        changed["coordinators"] = {n: change(s) for n, s in values["coordinators"].items()}
    if type(values.get("subtasks")) is dict:
        changed["subtasks"] = {
            subtask: {n: change(s) for n, s in states.items()} if type(states) is dict else states
            for subtask, states in values["subtasks"].items()
        }
    return changed


def _joined(state: Any, source: str, read: Callable[[Part], bytes]) -> Any:
    if type(state) is not list:
        return state
    pieces = []
    for item in state:
        if type(item) is bytes:
            pieces.append(item)
        elif (
            type(item) is list
            and [type(one) for one in item] == [str, bytes, int]
            and is_part_name(item[0])
        ):
            pieces.append(read(Part(*item)))
        else:
            raise CheckpointDamaged(source, "a state in it is neither bytes nor parts")
    return b"".join(pieces)


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
    if type(values) is not dict or set(values) - {_NEVER_SET} != _FIELDS:
        raise CheckpointDamaged(source, "its content does not have the fields of a checkpoint")
    checkpoint = CompletedCheckpoint(**{name: values[name] for name in _FIELDS})
    problem = problem_of(checkpoint)
    if problem is not None:
        raise CheckpointDamaged(source, problem)
    return checkpoint


def _checkpoint_of_version_1(values: Any, source: str) -> CompletedCheckpoint:
    if type(values) is not dict or set(values) - {_NEVER_SET} != _FIELDS - set(_SINCE_VERSION_2):
        raise CheckpointDamaged(source, "its content does not have the fields of a checkpoint")
    return _checkpoint_of({**values, **_SINCE_VERSION_2}, source)


_READERS: dict[int, Callable[[Any, str], CompletedCheckpoint]] = {
    1: _checkpoint_of_version_1,
    2: _checkpoint_of,
}
"""Format version -> what makes a checkpoint of the content."""


def _refuse_extension(code: int, data: bytes) -> NoReturn:
    raise ValueError(f"extension type {code} with {len(data)} bytes")
