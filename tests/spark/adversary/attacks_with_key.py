"""Attacks by a holder of the run's key, who can connect as a task does.

Most come as a process that is older than the subtask's own, which the driver refuses, and says what
it can until its connection is closed: they cost no attempt. Those that come as a newer process may
cost the attempt whose place they take, and never the job.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count
from typing import Any

import msgpack

from epochgate.runtime.shell.task_messages import forms_of
from epochgate.spark.wire import FRAME_BYTES_MAX, ChannelClosed
from epochgate.spark.wire.counting import VALUES_MAX
from epochgate.spark.wire.frames import LENGTH, batch_payload
from epochgate.spark.wire.sealing import TAG_BYTES
from tests.runtime.test_task_messages import SAMPLES, WRONG, right
from tests.spark.adversary.attacks import Attack
from tests.spark.adversary.driver_program import PARALLELISM
from tests.spark.adversary.target import WAIT_S, Peer, Target
from tests.spark.adversary.watch import descriptors_of
from tests.spark.running import wait_for
from tests.spark.wire.test_incoming import EXPANDING, array_32, map_32

OLDER = count(1)
"""Identities of processes that Spark never started, older than all that it did."""
IDENTITY_MAX = 2**63 - 1
LARGE_FRAMES_S = 3.0


def packable(message: Any) -> bytes | None:
    try:
        packed: bytes = msgpack.packb(message)
    except (OverflowError, ValueError):
        return None
    return packed


def is_message(packed: bytes) -> bool:
    """True if the wire hands it over; what it does not is malformed before it is a message."""
    try:
        message = msgpack.unpackb(packed)
    except ValueError:
        return False
    return type(message) is list and message != []


WRONG_PACKED = [packed for message in WRONG if (packed := packable(message)) is not None]
IN_A_FRAME = [packed for packed in WRONG_PACKED if is_message(packed)]
NOT_IN_A_FRAME = [one for one in WRONG_PACKED if one not in IN_A_FRAME]


def malformed_payloads() -> Iterator[bytes]:
    """Frames that are no messages: too deep, longer than they are, of types that are not plain."""
    yield b"\x91" * 60_000
    yield b"\x81\xa1a" * 20_000
    yield array_32(2**32 - 1)
    yield map_32(2**32 - 1)
    yield b"\x91\x92\xa5hello" + map_32(2**32 - 1)
    yield b"\x91\x92\xa5hello" + array_32(2**32 - 1) * 1000
    for packed in (b"\xc7\x05\x01hello", b"\xc9\xff\xff\xff\xff\x01", b"\xd4\x01\x00"):
        yield packed
        yield b"\x91\x92\xa5hello" + packed
    yield b"\xd6\xff\x00\x00\x00\x01"
    for head in (b"\xc6", b"\xdb"):
        yield b"\x91\x92\xa5hello" + head + b"\xff\xff\xff\xff"
    yield b"\xc1"


def wrong_hellos(target: Target) -> Iterator[Any]:
    """Each field of a hello with every other type, and past its range."""
    good = target.hello(0, 1)
    ranges = {"subtask": [-1, PARALLELISM, 2**64 - 1], "identity": [0, -1, 2**63, 2**64 - 1]}
    for name, held in good.items():
        yield {key: value for key, value in good.items() if key != name}
        for value in (*ranges.get(name, []), *(v for vs in SAMPLES.values() for v in vs)):
            if name in ranges or type(value) is not type(held):
                is_right = name in ranges and type(value) is int and value not in ranges[name]
                if not is_right:
                    yield {**good, name: value}
    yield {**good, "run_id": "another run"}


def say_before_hello(target: Target) -> None:
    """Send malformed frames, and every wrong message, where a hello is expected."""
    _assert_let_in_nowhere(target, list(malformed_payloads()))
    _assert_let_in_nowhere(target, [batch_payload([one], 1) for one in WRONG_PACKED])


def say_wrong_hellos(target: Target) -> None:
    hellos = [msgpack.packb([["hello", hello]]) for hello in wrong_hellos(target)]
    _assert_let_in_nowhere(target, hellos)


def _assert_let_in_nowhere(target: Target, payloads: list[bytes]) -> None:
    zombies = target.status()["zombies"]
    for payload in payloads:
        with target.authenticated() as peer:
            peer.send(peer.frame(payload))
            assert peer.is_dismissed()
    assert target.status_from_now()["zombies"] == zombies


def announce_large_frames_before_hello(target: Target) -> None:
    with ExitStack() as stack:
        for _ in range(target.size.large_frames):
            peer = stack.enter_context(target.authenticated())
            peer.send(LENGTH.pack(FRAME_BYTES_MAX), bytes(1_000_000))
            assert peer.is_dismissed()


def say_malformed_frames(target: Target) -> None:
    _assert_refused_after_hello(target, list(malformed_payloads()))


def say_wrong_messages(target: Target) -> None:
    """Every message with every wrong type, range and length, from a process that is refused."""
    assert len(IN_A_FRAME) > 300
    together = batch_payload(IN_A_FRAME, len(IN_A_FRAME))
    each = [batch_payload([one], 1) for one in NOT_IN_A_FRAME]
    _assert_refused_after_hello(target, [together, *each], heard=len(IN_A_FRAME))


def speak_for_another(target: Target) -> None:
    """Every message as it may be, for a subtask that has a newer process: it counts for nothing."""
    checkpoints = [1, 2, 10, 100, 1000]
    messages: list[Any] = [["leaving"], ["leaving", "for good", [1, b"x"]]]
    for checkpoint in checkpoints:
        messages += [["acknowledge", checkpoint, is_final, {}, []] for is_final in (True, False)]
        messages += [["decline", checkpoint, "no"]]
    for tag, form in forms_of(1).items():
        for values in zip(*(right(argument)[:2] for argument in form.arguments), strict=False):
            messages.append([tag, *values])
        if not form.arguments:
            messages.append([tag])
    messages += [["failed", "for good", True]]
    payloads = [batch_payload([msgpack.packb(one)], 1) for one in messages]
    heard = len(payloads) * PARALLELISM
    _assert_refused_after_hello(target, payloads, subtasks=PARALLELISM, heard=heard)


def _assert_refused_after_hello(
    target: Target, payloads: list[bytes], *, subtasks: int = 1, heard: int | None = 0
) -> None:
    """Say hello and this as a process that was replaced long ago: it is refused, and `heard` of the
    messages reach the transport before its connection is closed; None: that is chance.
    """
    before = target.status_from_now()
    for payload in payloads:
        for subtask in range(subtasks):
            with target.authenticated() as peer:
                peer.send(peer.hello(target.hello(subtask, next(OLDER))), peer.frame(payload))
                assert peer.is_dismissed()
    refused = before["zombies"] + len(payloads) * subtasks
    wait_for(lambda: target.status()["zombies"] == refused, f"{refused} refused processes")
    after = target.status_from_now()
    assert heard is None or after["heard"] == before["heard"] + heard


def take_identities_that_are_taken(target: Target) -> None:
    zombies = target.status_from_now()["zombies"]
    for subtask in range(PARALLELISM):
        for task in target.status()["tasks"]:
            with target.authenticated() as peer:
                acknowledgement = msgpack.packb([["acknowledge", 1, False, {}, []]])
                hello = peer.hello(target.hello(subtask, task["identity"]))
                peer.send(hello, peer.frame(acknowledgement))
                assert peer.is_dismissed()
    assert target.status_from_now()["zombies"] == zombies


def send_frames_that_expand(target: Target) -> None:
    """31 MB of empty lists, of empty maps, of announcements: one frame each."""
    names = ["empty lists", "empty maps", "announced in one another", "announced in a small frame"]
    names += ["lists of one", "short texts", "pairs"] if target.size.rounds_of_newer > 1 else []
    _assert_refused_after_hello(target, [EXPANDING[name]() for name in names])


def send_as_many_values_as_may_be(target: Target) -> None:
    payload = b"\x91\x92\xa1m" + array_32(VALUES_MAX - 4) + b"\x90" * (VALUES_MAX - 4)
    _assert_refused_after_hello(target, [payload], heard=None)


def hold_large_frames(target: Target) -> None:
    """Begin frames of 31 MB on many connections, and end none: the driver closes them all."""
    before = descriptors_of(target.pid)
    with ExitStack() as stack:
        unsent: dict[Peer, memoryview] = {}
        for _ in range(target.size.large_frames):
            peer = stack.enter_context(target.authenticated())
            hello = peer.hello(target.hello(0, next(OLDER)))
            frame = LENGTH.pack(FRAME_BYTES_MAX) + bytes(TAG_BYTES + 31_000_000)
            unsent[peer] = memoryview(hello + frame)
            peer.sock.setblocking(False)
        until_s = time.monotonic() + LARGE_FRAMES_S
        while unsent and time.monotonic() < until_s:
            for peer, rest in list(unsent.items()):
                try:
                    unsent[peer] = rest[peer.sock.send(rest[: 1 << 20]) :]
                except (BlockingIOError, ssl.SSLWantWriteError):
                    continue
                except (ConnectionError, ssl.SSLError):
                    del unsent[peer]
        # A sender whose peer has closed need not hear of it while it may not send.
        wait_for(lambda: descriptors_of(target.pid) <= before + 8, "all connections are closed")


def speak_as_a_newer_process(target: Target) -> None:
    """Take a subtask's place, say what is wrong, and go; again and again."""
    share = -(-len(IN_A_FRAME) // target.size.rounds_of_newer)
    for first in range(0, len(IN_A_FRAME), share):
        wrong = [msgpack.unpackb(one) for one in IN_A_FRAME[first : first + share]]
        subtask = first // share % PARALLELISM
        task = running(target)["tasks"][subtask]
        _take_the_place(target, subtask, task["identity"] + 1, wrong)


def come_as_the_newest_of_all(target: Target) -> None:
    """Come as a process that Spark has never started, newer than all that it will ever start."""
    zombies = target.status_from_now()["zombies"]
    for subtask in range(PARALLELISM):
        for identity in (IDENTITY_MAX, IDENTITY_MAX // 1000 * 1000, 10**15 + 1, 2**64 - 1):
            with suppress(ChannelClosed), target.channel(subtask, identity) as channel:
                told = channel.receive(WAIT_S)
                raise AssertionError(f"{identity} was let in, and told {told}")
    assert target.status_from_now()["zombies"] == zombies


def running(target: Target) -> dict[str, Any]:
    """The status of the job once all of its subtasks run, each in a process of its own."""

    def are_running() -> bool:
        tasks = target.status()["tasks"]
        return all(task["state"] == "running" and task["identity"] for task in tasks)

    wait_for(are_running, "all subtasks run")
    return target.status()


def _take_the_place(target: Target, subtask: int, identity: int, messages: list[Any]) -> None:
    with target.channel(subtask, identity) as channel:
        until_s = time.monotonic() + WAIT_S
        while not any(message[0] == "restore" for message in channel.receive(0.5)):
            assert time.monotonic() < until_s, "the subtask was not given to the newer process"
        with suppress(ChannelClosed):
            channel.send_many(messages)
            while time.monotonic() < until_s:
                channel.receive(0.5)
        assert channel.closed_reason, "what had spoken for the subtask is still connected"


WITH_KEY = [
    Attack("wrong messages, nesting and ext types before hello", say_before_hello),
    Attack("every field of hello wrong", say_wrong_hellos),
    Attack("40 frames of 32 MB announced before hello", announce_large_frames_before_hello),
    Attack("nesting, 4 GB lists and maps, ext types after hello", say_malformed_frames),
    Attack("every message with every wrong type, range and length", say_wrong_messages),
    Attack("true messages from an older identity", speak_for_another),
    Attack("an identity that is taken", take_identities_that_are_taken),
    Attack("a 31 MB frame of empty lists, of empty maps", send_frames_that_expand, rss_mb=128),
    Attack("a frame of 1,048,576 values", send_as_many_values_as_may_be, rss_mb=192),
    Attack("40 connections with unfinished frames of 31 MB", hold_large_frames, rss_mb=320),
    Attack("the greatest identities", come_as_the_newest_of_all),
    Attack(
        "wrong messages from a newer identity",
        speak_as_a_newer_process,
        gap_s=30.0,
        costs_attempts=True,
    ),
]
