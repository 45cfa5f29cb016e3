"""A task's process for the tests: `python -m tests.spark.wire.task_process BEHAVIOUR HOST PORT`.

The key comes over standard input, and the certificate of a private wire with its length before it.
What it learns it prints, one line each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from epochgate.spark.wire import ChannelClosed, TaskChannel
from epochgate.spark.wire.handshake import KEY_BYTES

Address: TypeAlias = tuple[str, int]


class Secrets(NamedTuple):
    """The secrets that the driver has given this task."""

    key: bytes
    certificate: bytes | None


def connected(
    address: Address, secrets: Secrets, hello: dict[str, Any], **settings: Any
) -> TaskChannel:
    """The task's channel."""
    return TaskChannel.connect(
        address, secrets.key, hello, certificate=secrets.certificate, **settings
    )


def echo(address: Address, secrets: Secrets, *_: str) -> None:
    """Send back whatever comes, until the driver closes."""
    with connected(address, secrets, {}, heartbeat_interval_s=0.1) as channel:
        while True:
            channel.send_many(channel.receive(5.0))


def chatter(address: Address, secrets: Secrets, *_: str) -> None:
    """Send a number every few milliseconds."""
    channel = connected(address, secrets, {}, heartbeat_interval_s=0.1)
    for number in range(1_000_000):
        channel.send(["number", number])
        time.sleep(0.005)


def count(address: Address, secrets: Secrets, *_: str) -> None:
    """Receive until `["stop"]`, then report how many messages came; echo `["ping"]` at once."""
    channel = connected(address, secrets, {}, heartbeat_interval_s=0.5)
    counted = 0
    while True:
        messages = channel.receive(10.0)
        counted += len(messages)
        last = messages[-1] if messages else ["nothing"]
        if last[0] == "ping":
            channel.send(last)
        if last[0] == "stop":
            channel.send(["counted", counted - 1])
            counted = 0


def crowd(address: Address, secrets: Secrets, size: str, *_: str) -> None:
    """Hold many channels, and answer each first message on its own channel."""
    channels = [
        connected(address, secrets, {"number": number}, heartbeat_interval_s=1.0)
        for number in range(int(size))
    ]
    for channel in channels:
        for message in channel.receive(30.0):
            channel.send(message)
    sys.stdin.buffer.read(1)


BEHAVIOURS: dict[str, Callable[..., None]] = {
    "echo": echo,
    "chatter": chatter,
    "count": count,
    "crowd": crowd,
}


def main() -> None:
    behaviour, host, port, *arguments = sys.argv[1:]
    key = sys.stdin.buffer.read(KEY_BYTES)
    size = int.from_bytes(sys.stdin.buffer.read(2), "big")
    secrets = Secrets(key, sys.stdin.buffer.read(size) or None)
    try:
        BEHAVIOURS[behaviour]((host, int(port)), secrets, *arguments)
    except ChannelClosed as closed:
        sys.stdout.write(f"{closed}\n")


if __name__ == "__main__":
    main()
