"""A Flink that runs the measured job: a job manager and task managers as processes of their own on
the loopback address, or all of Flink in one process.

Decides nothing that is measured: java/ beside this has the job and the coordinator that measures.
Runs in the process of the benchmark, with the JVMs as its children; they end with the context.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import psutil

from epochgate.benchmarks.flink.contender import HOSTS, IN_FLIGHT, CheckpointTime, Streamed
from epochgate.benchmarks.flink.installation import compile_java, flink_jar, java, logging_jars
from epochgate.errors import EpochgateError

SOURCES = Path(__file__).parent / "java"
HOST = "127.0.0.1"
START_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 400.0
LEAVE_TIMEOUT_S = 20.0
HEAP = "-Xmx1g"
LOG_CHARACTERS = 6_000
# What Flink's own scripts open of Java 17 for its serializers and RPC.
OPENED = (
    "lang",
    "net",
    "io",
    "nio",
    "time",
    "text",
    "util",
    "util.concurrent",
    "util.concurrent.locks",
)
JOB_MANAGER = "org.apache.flink.container.entrypoint.StandaloneApplicationClusterEntryPoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
JOB = "headtohead.EventJob"


class FlinkEnded(EpochgateError):
    """A process of Flink ended, or did not answer in time, or says that the job has failed."""


def configuration(folder: Path, *, rpc_port: int, slots: int) -> Mapping[str, str]:
    """Return what Flink is told; all else is as Flink has it."""
    return {
        "jobmanager.rpc.address": HOST,
        "jobmanager.rpc.port": str(rpc_port),
        "jobmanager.bind-host": HOST,
        "taskmanager.host": HOST,
        "taskmanager.bind-host": HOST,
        "taskmanager.rpc.port": "0",
        "rest.address": HOST,
        "rest.bind-address": HOST,
        "rest.bind-port": "0",
        "blob.server.port": "0",
        "io.tmp.dirs": str(folder / "tmp"),
        "taskmanager.numberOfTaskSlots": str(slots),
        # Flink's scripts would work these out from the size of the process.
        "taskmanager.cpu.cores": "1.0",
        "taskmanager.memory.task.heap.size": "768m",
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.framework.off-heap.size": "128m",
        "taskmanager.memory.task.off-heap.size": "0b",
        "taskmanager.memory.jvm-metaspace.size": "256m",
        "taskmanager.memory.jvm-overhead.min": "192m",
        "taskmanager.memory.jvm-overhead.max": "192m",
        "taskmanager.memory.network.min": "64m",
        "taskmanager.memory.network.max": "64m",
        "taskmanager.memory.managed.size": "64m",
        # On a busy machine the last of the events in flight wait longer than Flink's 10 s.
        "pekko.ask.timeout": "5 min",
        # Checkpoints on request, into the same directory as those of epochgate.
        "execution.checkpointing.interval": "1 d",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        "state.backend.type": "hashmap",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000000",
        "restart-strategy.fixed-delay.delay": "0 s",
    }


class FlinkJob:
    """The job as the benchmark reaches it: lines to its coordinator, and numbers back."""

    def __init__(
        self, line: socket.socket, processes: list[subprocess.Popen[bytes]], logs: list[Path]
    ) -> None:
        self._line, self._processes, self._logs = line, processes, logs
        self._answers: IO[str] = line.makefile("r", encoding="utf-8")
        self._ask("ready")

    @property
    def driver(self) -> psutil.Process:
        """The job manager."""
        return psutil.Process(self._processes[0].pid)

    def others(self) -> list[psutil.Process]:
        """The task managers."""
        return [psutil.Process(process.pid) for process in self._processes[1:]]

    def event_bytes(self) -> int:
        """Return the size of an event as Flink serializes it."""
        return int(self._ask("event-bytes")[0])

    def stream_in_calls(self, events: int) -> Streamed:
        """Send events on the job's main thread."""
        return Streamed(*self._ask("stream-in-calls", events))

    def stream_by_thread(self, events: int) -> Streamed:
        """Send events from a thread of the coordinator's own."""
        return Streamed(*self._ask("stream-by-thread", events))

    def confirmed_trips_us(self, times: int) -> list[float]:
        """Send single events, each when the future of the one before is done."""
        return self._ask("confirmed-trips", times)

    def answered_trips_us(self, times: int) -> list[float]:
        """Send single events, each when the one before has been answered by its subtask."""
        return self._ask("answered-trips", times)

    def checkpoints(self, times: int) -> list[CheckpointTime]:
        """Take checkpoints, each when the one before is completed."""
        told = self._ask("checkpoints", times)
        return [CheckpointTime(*pair) for pair in zip(told[::2], told[1::2], strict=True)]

    def begin_load(self) -> None:
        """Begin to send events without end."""
        self._ask("begin-load")

    def end_load(self) -> int:
        """End it; return the number of events that were confirmed."""
        return int(self._ask("end-load")[0])

    def raise_ms(self, subtask: int) -> float:
        """Let an operator throw; return the time until its successor has answered."""
        return self._ask("raise", subtask)[0]

    def fail_all_ms(self) -> float:
        """Fail the job; return the time until all successors have answered."""
        return self._ask("fail-all")[0]

    def _ask(self, command: str, number: int = 0) -> list[float]:
        self._line.sendall(f"{command} {number}\n".encode())
        try:
            answer = self._answers.readline()
        except TimeoutError as late:
            raise self._ended(f"{command} took longer than {ANSWER_TIMEOUT_S:g} s") from late
        if not answer or answer.startswith("error"):
            raise self._ended(f"the coordinator answered {command} with {answer.strip()!r}")
        return [float(word) for word in answer.split()]

    def _ended(self, what: str) -> FlinkEnded:
        return FlinkEnded(f"{what}\n{last_words(self._logs)}")


def last_words(logs: list[Path]) -> str:
    """Return the end of each log that says anything."""
    texts = [(log.name, log.read_text(errors="replace")[-LOG_CHARACTERS:]) for log in logs]
    return "\n".join(f"{name}:\n{text}" for name, text in texts if text)


@contextmanager
def flink_job(subtasks: int, folder: Path, *, in_one_process: bool = False) -> Iterator[FlinkJob]:
    """Run the job in a Flink of its own, whose files go into `folder`.

    Raises FlinkUnavailable, and FlinkEnded if it does not come up.
    """
    classes = folder / "classes"
    compile_java(str(flink_jar()), classes, sorted(SOURCES.glob("*.java")))
    for name in ("tmp", "logs"):
        (folder / name).mkdir()
    settings = configuration(folder, rpc_port=free_port(), slots=-(-subtasks // HOSTS))
    if in_one_process:
        settings = {**settings, "taskmanager.numberOfTaskSlots": str(subtasks)}
    lines = [f"{name}: '{value}'" for name, value in settings.items()]
    (folder / "config.yaml").write_text("\n".join([*lines, ""]))
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server((HOST, 0)))
        arguments = [str(folder), str(server.getsockname()[1]), str(subtasks), str(IN_FLIGHT)]
        processes = []
        logs = []
        for name, program in programs(folder, arguments, in_one_process=in_one_process):
            log = folder / "logs" / f"{name}.log"
            logs.append(log)
            processes.append(stack.enter_context(running(jvm(classes, program), folder, log)))
        line = stack.enter_context(connected(server, processes, logs))
        yield FlinkJob(line, processes, logs)


def programs(
    folder: Path, arguments: list[str], *, in_one_process: bool
) -> list[tuple[str, list[str]]]:
    """Return name, class and arguments of each process; the coordinator's is the first."""
    if in_one_process:
        return [("whole-flink", [JOB, *arguments])]
    of_cluster = ["--configDir", str(folder)]
    job = [JOB_MANAGER, *of_cluster, "--job-classname", JOB, *arguments]
    return [
        ("job-manager", job),
        *[(f"task-manager-{number}", [TASK_MANAGER, *of_cluster]) for number in range(HOSTS)],
    ]


def jvm(classes: Path, program: list[str]) -> list[str]:
    """Return the command of one process, with Java's own choice of compiler and collector."""
    opened = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPENED]
    class_path = os.pathsep.join(map(str, [classes, flink_jar(), *logging_jars()]))
    log_settings = f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.properties'}"
    folder_of_temporaries = f"-Djava.io.tmpdir={classes.parent / 'tmp'}"
    options = [HEAP, *opened, log_settings, folder_of_temporaries]
    return [java(), *options, "-cp", class_path, *program]


@contextmanager
def running(command: list[str], folder: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process until the end of the block."""
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(LEAVE_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def connected(
    server: socket.socket, processes: list[subprocess.Popen[bytes]], logs: list[Path]
) -> Iterator[socket.socket]:
    """Wait for the coordinator's connection. Raises FlinkEnded."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    server.settimeout(1.0)
    while True:
        try:
            line, _ = server.accept()
            break
        except TimeoutError:
            ended = [process.returncode for process in processes if process.poll() is not None]
            if ended or time.monotonic() > deadline_s:
                raise FlinkEnded(
                    f"no coordinator came up within {START_TIMEOUT_S:g} s; exit codes of ended "
                    f"processes: {ended or 'none'}\n{last_words(logs)}"
                ) from None
    with line:
        line.settimeout(ANSWER_TIMEOUT_S)
        yield line


def free_port() -> int:
    """Return a port that is free now; task managers must be told that of the job manager."""
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder for one job; in memory where the machine has such a folder."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="epochgate-flink-", dir=place) as folder:
        yield Path(folder)
