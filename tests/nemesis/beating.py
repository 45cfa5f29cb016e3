"""Tasks that beat over a real wire, and the moments at which their driver has heard them.

    python -m tests.nemesis.beating driver ADDRESS PORT SECONDS FILE
    python -m tests.nemesis.beating tasks ADDRESS PORT COUNT PAUSE_S

The driver writes what it has heard of each task as JSON, and takes none of them for lost meanwhile.
Each task is a process; with a pause above 0 it holds the interpreter's lock for a random time up to
that, again and again, as a garbage collection or a call into C does.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from epochgate.spark.wire import Connection, Detection, PhiDetector, TaskChannel, TaskServer
from epochgate.spark.wire.link import unacknowledged_s

KEY = bytes(32)  # of a lab without anything to protect
INTERVAL_S = 0.5
NEVER_S = 3600.0
BETWEEN_PAUSES_S = 5.0


@dataclass
class Heard:
    """The beats that the driver has heard of one task: moments, and moments with the link's silence
    then.
    """

    beats_s: list[float] = field(default_factory=list)
    links_s: list[tuple[float, float]] = field(default_factory=list)


class Recorder:
    """Notes each beat, on the wire's thread."""

    def __init__(self) -> None:
        self.heard: dict[Connection, Heard] = {}
        self.lost_early = 0

    def connected(self, connection: Connection, hello: dict[str, Any]) -> None:
        self.heard[connection] = Heard()

    def received(self, connection: Connection, messages: list[list[Any]]) -> None:
        self.heard[connection].beats_s.append(time.monotonic())

    def lost(self, connection: Connection, reason: str) -> None:
        self.lost_early += 1


def drive(address: str, port: int, seconds: float, file: Path) -> None:
    recorder = Recorder()
    server = TaskServer(
        key=KEY,
        host=address,
        port=port,
        listener=recorder,
        heartbeat_interval_s=INTERVAL_S,
        heartbeat_timeout_s=NEVER_S,
        detection=Detection(pause_s=NEVER_S, link_pause_s=NEVER_S),
    )
    with server:
        until_s = time.monotonic() + seconds
        while (now_s := time.monotonic()) < until_s:
            for connection, heard in recorder.heard.copy().items():
                heard.links_s.append((now_s, unacknowledged_s(connection.sock) or 0.0))
            time.sleep(INTERVAL_S)
        told = [asdict(heard) for heard in recorder.heard.values()]
        temporary = file.with_suffix(".part")
        temporary.write_text(json.dumps({"lost": recorder.lost_early, "heard": told}))
        temporary.rename(file)


def be_task(address: str, port: int, number: int, pause_s: float) -> None:
    chance, libc = random.Random(number), ctypes.PyDLL(None)  # which keeps the interpreter's lock
    with TaskChannel.connect(
        (address, port),
        KEY,
        {"subtask": number},
        heartbeat_interval_s=INTERVAL_S,
        heartbeat_value=time.monotonic,
        silence_timeout_s=NEVER_S,
        detection=Detection(link_pause_s=NEVER_S),
    ) as channel:
        while True:
            channel.receive(chance.uniform(0, 2 * BETWEEN_PAUSES_S) if pause_s else 1.0)
            if pause_s:
                libc.usleep(int(chance.uniform(0, pause_s) * 1e6))


@dataclass(frozen=True)
class Verdict:
    """alarms: how often a task that lives was suspected. found_s: how long after a stop at a random
    moment it is suspected, sorted; without the half interval until the driver looks.
    """

    alarms: int
    hours: float
    found_s: list[float]


def judged_process(heard: list[Heard], detection: Detection, timeout_s: float) -> Verdict:
    """Return what the detector of the process would have made of these beats."""
    return _judged(
        [one.beats_s for one in heard], detection.pause_s, detection.threshold, timeout_s
    )


def judged_link(heard: list[Heard], detection: Detection, timeout_s: float) -> Verdict:
    """Return what the detector of the host would have made of what was acknowledged."""
    moments = [[now_s - silent_s for now_s, silent_s in one.links_s] for one in heard]
    return _judged(moments, detection.link_pause_s, detection.threshold, timeout_s)


def _judged(
    traces: list[list[float]], pause_s: float, threshold: float, timeout_s: float
) -> Verdict:
    alarms, seconds, found_s, chance = 0, 0.0, [], random.Random(1)
    for trace in traces:
        if not trace:
            continue
        detector = PhiDetector(
            interval_s=INTERVAL_S,
            pause_s=pause_s,
            threshold=threshold,
            silence_s_max=timeout_s,
            now_s=trace[0],
        )
        last_s = trace[0]
        for now_s in trace[1:]:
            if now_s <= last_s:
                continue
            alarms += detector.is_suspect(now_s)
            found_s.append(detector.limit_s - chance.uniform(0, now_s - last_s))
            detector.heard(now_s)
            last_s = now_s
        seconds += last_s - trace[0]
    return Verdict(alarms, seconds / 3600, sorted(found_s))


def read(file: Path) -> list[Heard]:
    """Return what a driver has written. Raises AssertionError where a task was lost."""
    told = json.loads(file.read_text())
    assert told["lost"] == 0, f"{told['lost']} connections were lost"
    return [
        Heard(one["beats_s"], [tuple(link) for link in one["links_s"]]) for one in told["heard"]
    ]


if __name__ == "__main__":
    role, where, at, *rest = sys.argv[1:]
    if role == "driver":
        drive(where, int(at), float(rest[0]), Path(rest[1]))
    else:
        number = 0
        while number + 1 < int(rest[0]) and os.fork():
            number += 1
        be_task(where, int(at), number, float(rest[1]))
