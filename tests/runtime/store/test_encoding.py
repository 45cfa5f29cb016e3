"""The bytes of a checkpoint: whole or refused, whatever was done to them."""

from __future__ import annotations

import dataclasses
import doctest
import hashlib
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given, strategies as st

from epochgate.runtime.store import (
    CheckpointDamaged,
    CheckpointFormatUnknown,
    CheckpointNotStorable,
    CheckpointOfAnotherJob,
    CompletedCheckpoint,
    checkpoint,
    claim,
    decode_checkpoint,
    directory,
    encode_checkpoint,
    encoding,
)
from epochgate.runtime.store.checkpoint import PLAIN_DEPTH_MAX
from epochgate.runtime.store.encoding import FORMAT_VERSION, seal, unseal
from tests.runtime.store.mediums import checkpoint_of

ENCODED = encode_checkpoint(checkpoint_of(7))

texts = st.text(st.characters(codec="utf-8"), max_size=5)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | texts
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts | st.integers(-(2**63), 2**64 - 1), inner, max_size=3)
    ),
    max_leaves=6,
)
checkpoints = st.builds(
    CompletedCheckpoint,
    checkpoint_id=st.integers(10, 2**63 - 1),
    job_id=texts.filter(bool),
    run_id=texts.filter(bool),
    created_at=st.floats(allow_nan=False, allow_infinity=False),
    parallelism=st.just(4),
    coordinators=st.dictionaries(texts, st.none() | st.binary(max_size=9), max_size=3),
    subtasks=st.dictionaries(
        st.integers(0, 3), st.dictionaries(texts, st.binary(max_size=9), max_size=2), max_size=4
    ),
    committables=st.dictionaries(st.integers(0, 3), st.lists(plain, max_size=3), max_size=4),
    uncommitted=st.dictionaries(st.integers(0, 9), st.lists(plain, max_size=3), max_size=3),
    properties=st.dictionaries(texts, plain, max_size=3),
    versions=st.dictionaries(
        st.integers(0, 3), st.dictionaries(texts, st.integers(0, 2**31 - 1), max_size=2), max_size=4
    ),
    coordinator_versions=st.dictionaries(texts, st.integers(0, 2**31 - 1), max_size=2),
    files=st.none() | st.just(["a/b", "c/d"]),
    epoch=st.integers(0, 2**63 - 1),
    begun_from=texts,
)


@pytest.mark.parametrize("module", [checkpoint, claim, directory, encoding])
def test_the_examples_in_the_documentation_hold(module: Any) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


@given(checkpoints)
def test_every_checkpoint_comes_back_as_it_went_in(given_one: CompletedCheckpoint) -> None:
    data = encode_checkpoint(given_one)
    back = decode_checkpoint(data, source="test", job_id=given_one.job_id)
    assert back == given_one
    assert repr(back.properties) == repr(given_one.properties), "types and order included"
    assert encode_checkpoint(back) == data


def test_equal_checkpoints_have_equal_bytes() -> None:
    one = checkpoint_of(7)
    other = dataclasses.replace(
        one,
        coordinators=dict(reversed(one.coordinators.items())),
        subtasks={
            subtask: dict(reversed(states.items()))
            for subtask, states in reversed(one.subtasks.items())
        },
    )
    assert list(other.subtasks) != list(one.subtasks)
    assert encode_checkpoint(other) == encode_checkpoint(one)


def test_every_flipped_bit_is_detected() -> None:
    for position in range(len(ENCODED)):
        changed = bytearray(ENCODED)
        changed[position] ^= 1 << (position % 8)
        with pytest.raises(CheckpointDamaged):
            decode_checkpoint(bytes(changed), source="test")


def test_every_truncation_is_detected() -> None:
    for length in range(len(ENCODED)):
        with pytest.raises(CheckpointDamaged):
            decode_checkpoint(ENCODED[:length], source="test")


def test_a_length_that_does_not_fit_is_named() -> None:
    framed = ENCODED[:12] + (1).to_bytes(8, "big") + ENCODED[20:-32]
    with pytest.raises(CheckpointDamaged, match=f"has {len(ENCODED) - 52} bytes instead of 1"):
        decode_checkpoint(framed + hashlib.sha256(framed).digest(), source="test")


@given(st.integers(0, len(ENCODED)), st.integers(0, 40), st.binary(max_size=40))
def test_every_replaced_piece_is_detected(at: int, cut: int, piece: bytes) -> None:
    changed = ENCODED[:at] + piece + ENCODED[at + cut :]
    if changed != ENCODED:
        with pytest.raises(CheckpointDamaged):
            decode_checkpoint(changed, source="test")


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_but_damage(data: bytes) -> None:
    with pytest.raises(CheckpointDamaged, match="checkpoint some/file is damaged"):
        decode_checkpoint(data, source="some/file")


@given(st.binary(max_size=60))
def test_no_content_under_a_right_checksum_raises_anything_but_damage(content: bytes) -> None:
    with pytest.raises(CheckpointDamaged):
        decode_checkpoint(seal(content, FORMAT_VERSION), source="test")


anything = st.recursive(
    plain | st.just(msgpack.ExtType(5, b"x")) | st.just(msgpack.Timestamp(1)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.integers(0, 5), inner),
    max_leaves=4,
)


@given(st.sampled_from([field.name for field in dataclasses.fields(CompletedCheckpoint)]), anything)
def test_a_field_of_any_other_shape_is_refused_or_whole(name: str, value: Any) -> None:
    fields = msgpack.unpackb(unseal(ENCODED, "test")[1], strict_map_key=False)
    content = msgpack.packb({**fields, name: value})
    try:
        back = decode_checkpoint(seal(content, FORMAT_VERSION), source="test")
    except CheckpointDamaged:
        return
    assert getattr(back, name) == value
    encode_checkpoint(back)


@pytest.mark.parametrize(
    "missing", [field.name for field in dataclasses.fields(CompletedCheckpoint)]
)
def test_a_missing_field_is_damage(missing: str) -> None:
    fields = msgpack.unpackb(unseal(ENCODED, "test")[1], strict_map_key=False)
    del fields[missing]
    with pytest.raises(CheckpointDamaged, match="does not have the fields"):
        decode_checkpoint(seal(msgpack.packb(fields), FORMAT_VERSION), source="test")


@given(
    st.integers(0, 2**32 - 1).filter(lambda n: n not in range(1, FORMAT_VERSION + 1)), st.binary()
)
def test_another_version_is_told_from_damage(version: int, content: bytes) -> None:
    with pytest.raises(CheckpointFormatUnknown, match=f"version {version},"):
        decode_checkpoint(seal(content, version), source="test")


def test_another_job_is_named() -> None:
    with pytest.raises(CheckpointOfAnotherJob, match="taken by job 'orders', and this is job 'x'"):
        decode_checkpoint(ENCODED, source="test", job_id="x")


def _nested(depth: int) -> Any:
    return {"a": _nested(depth - 1)} if depth else []


UNSTORABLE: list[tuple[dict[str, Any], str]] = [
    ({"checkpoint_id": -1}, "checkpoint_id is -1"),
    ({"checkpoint_id": True}, "checkpoint_id is True"),
    ({"checkpoint_id": 2**63}, "checkpoint_id is"),
    ({"parallelism": 0}, "parallelism is 0"),
    ({"job_id": ""}, "job_id is ''"),
    ({"run_id": "\ud800"}, "run_id is"),
    ({"created_at": float("nan")}, "created_at is nan"),
    ({"created_at": 10**400}, "created_at is 1"),
    ({"created_at": "now"}, "created_at is 'now'"),
    ({"coordinators": []}, "coordinators is a list"),
    ({"coordinators": {1: b""}}, "operator id 1 is not a text"),
    ({"coordinators": {"a": "text"}}, "coordinators['a'] is a str"),
    ({"subtasks": {"0": {}}}, "subtask '0', expected 0 to 2"),
    ({"subtasks": {3: {}}}, "subtask 3, expected 0 to 2"),
    ({"subtasks": {False: {}}}, "subtask False"),
    ({"subtasks": {0: []}}, "subtasks[0] is a list"),
    ({"subtasks": {0: {"a": None}}}, "subtasks[0]['a'] is a NoneType"),
    ({"subtasks": {0: {"a": bytearray()}}}, "subtasks[0]['a'] is a bytearray"),
    ({"subtasks": {0: {None: b""}}}, "operator id None is not a text"),
    ({"committables": {-1: []}}, "subtask -1"),
    ({"committables": {0: (1,)}}, "committables[0] is a tuple"),
    ({"committables": {0: [(1,)]}}, "committables[0][0] is a tuple"),
    ({"committables": {0: [{1.5: 1}]}}, "has the key 1.5"),
    ({"committables": {0: [{True: 1}]}}, "has the key True"),
    ({"committables": {0: [2**64]}}, "committables[0][0] does not fit into 64 bits"),
    ({"committables": {0: ["\udfff"]}}, "no UTF-8 form"),
    ({"committables": {0: [{1, 2}]}}, "committables[0][0] is a set"),
    ({"committables": {0: [msgpack.ExtType(1, b"")]}}, "is a ExtType"),
    ({"uncommitted": {7: []}}, "uncommitted: checkpoint 7, expected one before 7"),
    ({"uncommitted": []}, "uncommitted is a list"),
    ({"versions": {0: {"a": -1}}}, "versions[0]['a'] is -1"),
    ({"versions": {3: {}}}, "subtask 3, expected 0 to 2"),
    ({"coordinator_versions": [1]}, "coordinator_versions is a list"),
    ({"files": ["../a"]}, "files: '../a', expected a file in a folder"),
    ({"files": "a"}, "files is a str"),
    ({"epoch": -1}, "epoch is -1"),
    ({"begun_from": None}, "begun_from is None"),
    ({"properties": {1: 1}}, "properties is not a dict from str"),
    ({"properties": None}, "properties is not a dict"),
    ({"properties": _nested(PLAIN_DEPTH_MAX)}, f"is nested deeper than {PLAIN_DEPTH_MAX}"),
]


@pytest.mark.parametrize(("change", "complaint"), UNSTORABLE, ids=[c for _, c in UNSTORABLE])
def test_what_would_not_come_back_is_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(CheckpointNotStorable) as caught:
        encode_checkpoint(dataclasses.replace(checkpoint_of(7), **change))
    assert complaint in str(caught.value)


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(CheckpointNotStorable, match="nested deeper"):
        encode_checkpoint(dataclasses.replace(checkpoint_of(7), properties={"a": endless}))


def test_the_deepest_allowed_nesting_comes_back() -> None:
    deep = dataclasses.replace(checkpoint_of(7), properties=_nested(PLAIN_DEPTH_MAX - 1))
    assert decode_checkpoint(encode_checkpoint(deep), source="test") == deep


GOLDEN = Path(__file__).parent / "golden"


def as_it_was_in_version_1(checkpoint_id: int) -> CompletedCheckpoint:
    """Return what a checkpoint of version 1 is read as: it did not have the later fields."""
    return dataclasses.replace(
        checkpoint_of(checkpoint_id),
        versions={},
        coordinator_versions={},
        files=None,
        epoch=0,
        begun_from="",
    )


def test_a_checkpoint_of_each_older_version_is_read() -> None:
    found = GOLDEN.glob("version-*.bin")
    kept = {int(path.stem.removeprefix("version-")): path for path in found}
    assert sorted(kept) == list(range(1, FORMAT_VERSION + 1))
    read = {n: decode_checkpoint(p.read_bytes(), source=str(p)) for n, p in kept.items()}
    assert read == {1: as_it_was_in_version_1(7), 2: checkpoint_of(7)}


def test_the_present_version_is_written_as_it_was_before_but_for_finished_subtasks() -> None:
    version, content = unseal((GOLDEN / f"version-{FORMAT_VERSION}.bin").read_bytes(), "test")
    fields = msgpack.unpackb(content, strict_map_key=False)
    assert fields["finished"] == [0, 2]
    written = msgpack.packb({**fields, "finished": []}, strict_types=True)
    assert seal(written, version) == ENCODED


def test_a_checkpoint_of_version_1_has_its_fields_and_no_others() -> None:
    content = unseal(ENCODED, "test")[1]
    with pytest.raises(CheckpointDamaged, match="does not have the fields"):
        decode_checkpoint(seal(content, 1), source="test")
