"""A task's process for the tests: `python -m tests.spark.wire.task_process BEHAVIOUR HOST PORT`.

The key comes over standard input. What it learns it prints, one line each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from epochgate.spark.wire import ChannelClosed, TaskChannel
from epochgate.spark.wire.handshake import KEY_BYTES


def echo(address: tuple[str, int], key: bytes, *_: str) -> None:
    """Send back whatever comes, until the driver closes."""
    with TaskChannel.connect(address, key, {}, heartbeat_interval_s=0.1) as channel:
        while True:
            channel.send_many(channel.receive(5.0))


def chatter(address: tuple[str, int], key: bytes, *_: str) -> None:
    """Send a number every few milliseconds."""
    channel = TaskChannel.connect(address, key, {}, heartbeat_interval_s=0.1)
    for number in range(1_000_000):
        channel.send(["number", number])
        time.sleep(0.005)


def count(address: tuple[str, int], key: bytes, *_: str) -> None:
    """Receive until `["stop"]`, then report how many messages came; echo `["ping"]` at once."""
    channel = TaskChannel.connect(address, key, {}, heartbeat_interval_s=0.5)
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


def crowd(address: tuple[str, int], key: bytes, size: str, *_: str) -> None:
    """Hold many channels, and answer each first message on its own channel."""
    channels = [
        TaskChannel.connect(address, key, {"number": number}, heartbeat_interval_s=1.0)
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
    try:
        BEHAVIOURS[behaviour]((host, int(port)), key, *arguments)
    except ChannelClosed as closed:
        sys.stdout.write(f"{closed}\n")


if __name__ == "__main__":
    main()
