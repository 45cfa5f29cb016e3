"""The handshake: a holder of the key is let in, on both sides, and no other is."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from epochgate.spark.wire import AuthenticationFailed, ProtocolMismatch, WireSettingInvalid, new_key
from epochgate.spark.wire.handshake import (
    ANSWER_BYTES,
    GREETING_BYTES,
    MAGIC,
    NAME,
    REFUSED,
    VERDICT_BYTES,
    DriverHandshake,
    TaskHandshake,
    checked_key,
)

KEY = bytes(range(32))


def test_both_sides_derive_the_same_keys_and_two_different_ones() -> None:
    driver, task = DriverHandshake(KEY), TaskHandshake(KEY)
    assert len(driver.greeting) == GREETING_BYTES
    answer = task.answer(driver.greeting)
    assert len(answer) == ANSWER_BYTES
    assert driver.receive(answer) == b""
    assert len(driver.verdict) == VERDICT_BYTES
    session = task.accept(driver.verdict)
    assert session == driver.session
    assert session.from_driver != session.from_task


def test_each_connection_has_keys_of_its_own() -> None:
    sessions: set[bytes] = set()
    for _ in range(5):
        driver, task = DriverHandshake(KEY), TaskHandshake(KEY)
        driver.receive(task.answer(driver.greeting))
        sessions.update(task.accept(driver.verdict))
    assert len(sessions) == 10


@given(st.lists(st.integers(0, 100), max_size=10), st.binary(max_size=30))
def test_the_answer_may_come_in_pieces_and_with_frames_behind_it(
    cuts: list[int], behind: bytes
) -> None:
    driver, task = DriverHandshake(KEY), TaskHandshake(KEY)
    stream = task.answer(driver.greeting) + behind
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    remainder = b""
    for first, last in itertools.pairwise(places):
        if driver.session is not None:
            remainder += stream[first:last]
        else:
            remainder += driver.receive(stream[first:last])
    assert remainder == behind
    assert task.accept(driver.verdict) == driver.session


def test_a_wrong_key_fails_on_both_sides() -> None:
    driver, task = DriverHandshake(KEY), TaskHandshake(new_key())
    with pytest.raises(AuthenticationFailed, match="check that this task belongs to this run"):
        driver.receive(task.answer(driver.greeting))
    assert driver.session is None
    assert driver.verdict == REFUSED
    with pytest.raises(AuthenticationFailed, match="refused this task's key"):
        task.accept(driver.verdict)


@given(st.integers(len(MAGIC), ANSWER_BYTES - 1), st.integers(1, 255))
def test_any_altered_byte_of_the_answer_is_refused(place: int, change: int) -> None:
    driver, task = DriverHandshake(KEY), TaskHandshake(KEY)
    answer = bytearray(task.answer(driver.greeting))
    answer[place] ^= change
    with pytest.raises(AuthenticationFailed):
        driver.receive(bytes(answer))


@given(st.integers(0, VERDICT_BYTES - 1), st.integers(1, 255))
def test_any_altered_byte_of_the_verdict_is_refused(place: int, change: int) -> None:
    driver, task = DriverHandshake(KEY), TaskHandshake(KEY)
    driver.receive(task.answer(driver.greeting))
    verdict = bytearray(driver.verdict)
    verdict[place] ^= change
    with pytest.raises(AuthenticationFailed, match="does not hold this run's key"):
        task.accept(bytes(verdict))


def test_an_answer_recorded_earlier_opens_nothing() -> None:
    first, task = DriverHandshake(KEY), TaskHandshake(KEY)
    recorded = task.answer(first.greeting)
    first.receive(recorded)
    with pytest.raises(AuthenticationFailed):
        DriverHandshake(KEY).receive(recorded)


def test_a_proof_sent_back_to_its_maker_proves_nothing() -> None:
    task = TaskHandshake(KEY)
    driver = DriverHandshake(KEY)
    answer = task.answer(driver.greeting)
    with pytest.raises(AuthenticationFailed):
        task.accept(answer[-VERDICT_BYTES:])


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01", b"E!", b"\0"])
def test_the_first_foreign_byte_is_refused_and_quoted(garbage: bytes) -> None:
    with pytest.raises(ProtocolMismatch, match="does not speak epochgate's wire"):
        DriverHandshake(KEY).receive(garbage)


def test_another_version_is_named() -> None:
    greeting = NAME + (7).to_bytes(2, "big") + bytes(32)
    with pytest.raises(ProtocolMismatch, match="version 7 of epochgate's wire, and this side"):
        TaskHandshake(KEY).answer(greeting)


@pytest.mark.parametrize("key", [b"", b"short", bytes(33), "0" * 32])
def test_a_key_is_32_bytes_and_is_never_shown(key: bytes) -> None:
    with pytest.raises(WireSettingInvalid, match="must be 32 random bytes") as caught:
        checked_key(key)
    assert "short" not in str(caught.value)
