"""The wire's load on this machine: `python -m tests.spark.wire.measure [--seconds 3]`.

One driver thread and four task processes on the loopback address, 80 bytes of payload per message,
everything sealed, checked and decoded. The figures depend on the cores that five processes share.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeAlias

from epochgate.spark.wire import Connection
from epochgate.spark.wire.sealing import FrameSeal
from tests.spark.wire.harness import Recorder, Wire, running_wire

MESSAGE = ["event", 0, 17, b"x" * 80]
HUNDRED = [MESSAGE] * 100
WAITING_BYTES_MAX = 16 * 1024 * 1024
Put: TypeAlias = Callable[[Connection], int]


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def throughput(wire: Wire, tasks: list[Connection], seconds: float, name: str, put: Put) -> None:
    started_s, cpu_s = time.perf_counter(), time.thread_time()
    sent = 0
    while time.perf_counter() - started_s < seconds:
        for task in tasks:
            sent += put(task)
        while sum(task.waiting_bytes for task in tasks) > WAITING_BYTES_MAX:
            time.sleep(0.0005)
    thread_s = time.thread_time() - cpu_s
    for task in tasks:
        task.send_many([["stop"]])
    counted = sum(wire.recorder.next_message(60)[1] for _ in tasks)
    elapsed_s = time.perf_counter() - started_s
    if counted != sent:
        raise AssertionError(f"{sent} messages were sent, and {counted} counted")
    say(
        f"{name:<44} {sent / elapsed_s:>12,.0f} messages/s end to end, "
        f"{thread_s / sent * 1e6:.2f} us of the sending thread each"
    )


def put_8_and_flush(task: Connection) -> int:
    for _ in range(8):
        task.put(MESSAGE)
    task.flush()
    return 8


def put_100_and_flush(task: Connection) -> int:
    for _ in range(100):
        task.put(MESSAGE)
    task.flush()
    return 100


def send_100(task: Connection) -> int:
    for _ in range(100):
        task.send(MESSAGE)
    return 100


def send_many_8(task: Connection) -> int:
    task.send_many(HUNDRED[:8])
    return 8


def send_many_100(task: Connection) -> int:
    task.send_many(HUNDRED)
    return 100


def round_trips(name: str, count: int, trip: Callable[[], Any]) -> None:
    times_us = []
    for _ in range(count):
        started_s = time.perf_counter()
        trip()
        times_us.append((time.perf_counter() - started_s) * 1e6)
    times_us.sort()
    p99_us = times_us[count * 99 // 100]
    say(f"{name:<44} median {statistics.median(times_us):.0f} us, p99 {p99_us:.0f} us")


def measure_driver_side(seconds: float) -> None:
    with running_wire() as wire, ExitStack() as processes:
        for _ in range(4):
            processes.enter_context(wire.task_process("count"))
        tasks = [wire.recorder.next_connection() for _ in range(4)]
        throughput(wire, tasks, seconds, "put one by one, flush each 8", put_8_and_flush)
        throughput(wire, tasks, seconds, "put one by one, flush each 100", put_100_and_flush)
        throughput(wire, tasks, seconds, "send one by one, never flush", send_100)
        throughput(wire, tasks, seconds, "send_many of 8", send_many_8)
        throughput(wire, tasks, seconds, "send_many of 100", send_many_100)
        measure_round_trips(wire, tasks)


def measure_round_trips(wire: Wire, tasks: list[Connection]) -> None:
    def flushed() -> None:
        tasks[0].put(["ping"])
        tasks[0].flush()
        wire.recorder.next_message()

    def sent() -> None:
        tasks[0].send(["ping"])
        wire.recorder.next_message()

    def fanned_out() -> None:
        for task in tasks:
            task.send_many([["ping"]])
        for _ in tasks:
            wire.recorder.next_message()

    round_trips("driver thread, put + flush -> task -> thread", 3000, flushed)
    round_trips("driver thread, send -> task -> thread", 3000, sent)
    round_trips("driver thread -> 4 tasks -> thread", 2000, fanned_out)


class Echo(Recorder):
    """A driver that answers on the server's thread."""

    def received(self, connection: Connection, messages: list[list[Any]]) -> None:
        connection.put_many(messages)
        connection.flush()


def measure_task_side() -> None:
    with running_wire(listener=Echo()) as wire, wire.channel() as channel:

        def trip() -> None:
            channel.send(["ping"])
            while not channel.receive(5.0):
                pass

        round_trips("task -> server thread -> task (one process)", 3000, trip)
        started_s = time.perf_counter()
        for _ in range(100_000):
            channel.receive(0)
        say(
            f"{'receive(0) with nothing there':<44} {(time.perf_counter() - started_s) * 10:.2f} us"
        )


def measure_seal() -> None:
    seal = FrameSeal(bytes(32))
    for size in (100, 1_000, 10_000, 65_536, 8_388_608):
        payload, times = bytes(size), max(20, 20_000_000 // (size + 1_000))
        started_s = time.perf_counter()
        for _ in range(times):
            seal.next_tag(payload)
        each_us = (time.perf_counter() - started_s) / times * 1e6
        say(f"{f'tag of a frame of {size:,} bytes':<44} {each_us:.1f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the wire on the loopback address.")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each throughput run")
    seconds = parser.parse_args().seconds
    measure_driver_side(seconds)
    measure_task_side()
    measure_seal()
    say(f"threads left: {threading.active_count() - 1}")


if __name__ == "__main__":
    main()
