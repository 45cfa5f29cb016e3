"""Flink's real holder and gateways behind a line protocol, as a child process.

Decides how lines and answers pair up, and where compiled classes are kept; where the jar and the
compiler are is in `epochgate.benchmarks.flink.installation`. What the classes do is theirs; how
they are driven, and what stands around them, is in HolderOracle.java beside this.
Runs in the process of the tests, with one JVM as its child; the child ends with the context.

    with FlinkOracle() as oracle:
        answers = oracle.run(["new 2", "start", "running 0"])
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from epochgate.benchmarks.flink.installation import (
    VENV,
    compile_java,
    flink_jar,
    java,
    java_compiler,
)
from epochgate.errors import EpochgateError

HERE = Path(__file__).parent
PACKAGE = "org.apache.flink.runtime.operators.coordination"
# A batch is written whole before its answers are read, so it has to fit into a pipe.
BATCH_BYTES_MAX = 16_384
ANSWER_TIMEOUT_S = 100.0
JVM_OPTIONS = ("-XX:+UseSerialGC", "-Xshare:auto", "-Xmx512m")


class OracleEnded(EpochgateError):
    """The oracle's process ended, or was ended for taking too long, before it had answered."""


def compiled() -> Path:
    """The folder of compiled classes: `oracle` and `without_exit`; compiles them if they changed.

    Raises FlinkUnavailable with the compiler's words.
    """
    jar, compiler = flink_jar(), java_compiler()
    sources = sorted(HERE.rglob("*.java"))
    digest = hashlib.sha256(f"{jar.stat().st_size} {compiler}".encode())
    for source in sources:
        digest.update(source.read_bytes())
    folder = VENV / "oracle" / digest.hexdigest()[:16]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        classes, replaced = aside / "oracle", aside / "without_exit"
        compile_java(str(jar), classes, [s for s in sources if s.parent == HERE])
        compile_java(str(classes), replaced, [s for s in sources if s.parent != HERE])
        try:
            aside.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was quicker, with the same
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def command(*, exits: bool = False, program: str = "HolderOracle") -> list[str]:
    """The command that starts the oracle: lines in, for each its answer and a line `.` out.

    With `exits`, the process ends where Flink's does (exit code 239, -17 in Flink); without, it
    answers `EXC exit -17` and then waits for `new`.
    Raises FlinkUnavailable.
    """
    folder = compiled()
    parts = [] if exits else [folder / "without_exit"]
    class_path = os.pathsep.join(map(str, [*parts, folder / "oracle", flink_jar()]))
    return [java(), *JVM_OPTIONS, "-cp", class_path, f"{PACKAGE}.{program}"]


class FlinkOracle:
    """A running oracle; as a context manager it starts and ends the process. `program` is one of
    the classes beside this that answer lines.

    Raises FlinkUnavailable when it is entered and something is missing.
    """

    def __init__(self, program: str = "HolderOracle") -> None:
        self._program = program
        self._process: subprocess.Popen[str] | None = None
        self._complaints: IO[str] | None = None

    def __enter__(self) -> Self:
        self._complaints = tempfile.TemporaryFile("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            command(program=self._program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            try:
                self._process.communicate(timeout=10)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait(timeout=10)
            self._process = None
        if self._complaints is not None:
            self._complaints.close()
            self._complaints = None

    def run(self, lines: Sequence[str]) -> list[list[str]]:
        """Each command's lines of output, in order; the state stays from one call to the next.

        Raises OracleEnded if the process ends or takes longer than ANSWER_TIMEOUT_S, and
        ValueError for a command that is more than one line, or outside of `with`.
        """
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise ValueError("the oracle is not running: use it as `with FlinkOracle() as oracle`")
        for line in lines:
            if "\n" in line:
                raise ValueError(f"a command is one line, not {line!r}")
        watchdog = threading.Timer(ANSWER_TIMEOUT_S, process.kill)
        watchdog.start()
        answers: list[list[str]] = []
        try:
            for batch in _batches(lines):
                with suppress(BrokenPipeError):  # its output says how far it came
                    process.stdin.write("".join(f"{line}\n" for line in batch))
                    process.stdin.flush()
                answers += [self._answer(process.stdout, line) for line in batch]
        finally:
            watchdog.cancel()
        return answers

    def _answer(self, output: IO[str], asked: str) -> list[str]:
        answer: list[str] = []
        while (line := output.readline()) != ".\n":
            if not line:
                raise OracleEnded(self._obituary(asked))
            answer.append(line.rstrip("\n"))
        return answer

    def _obituary(self, asked: str) -> str:
        assert self._process is not None
        assert self._complaints is not None
        code = self._process.wait(timeout=10)
        self._complaints.seek(0)
        said = self._complaints.read()[-2000:]
        return (
            f"the oracle ended with code {code} at {asked!r} (a negative code is a signal; it is "
            f"ended when it takes more than {ANSWER_TIMEOUT_S:.0f} s); its last words:\n{said}"
        )


def _batches(lines: Sequence[str]) -> list[list[str]]:
    batches: list[list[str]] = [[]]
    size = 0
    for line in lines:
        size += len(line.encode()) + 1
        if size > BATCH_BYTES_MAX and batches[-1]:
            batches.append([])
            size = len(line.encode()) + 1
        batches[-1].append(line)
    return batches
