"""The installation of Flink 2.3.0 and a Java compiler, and how Java sources are compiled against
Flink.

`make conformance` and `make bench-flink` install Flink into an environment of its own. Decides
nothing about what is compiled. Runs in the process that calls, with the compiler as its child.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from epochgate.errors import EpochgateError

CHECKOUT = Path(__file__).resolve().parents[3]
VENV = Path(os.environ.get("EPOCHGATE_CONFORMANCE_VENV", CHECKOUT / ".venv-conformance"))
LIBRARIES = "lib/python*/site-packages/pyflink/lib"
JAR_PATTERN = f"{LIBRARIES}/flink-dist-2.3.0.jar"
LOGGING_PATTERN = f"{LIBRARIES}/log4j-*.jar"
COMPILE_TIMEOUT_S = 120


class FlinkUnavailable(EpochgateError):
    """Flink's jar or a JDK is missing, or a program of ours does not compile."""


def flink_jar() -> Path:
    """Return the one jar that has all of Flink's own classes.

    Raises FlinkUnavailable if it is not installed.
    """
    found = sorted(VENV.glob(JAR_PATTERN))
    if not found:
        raise FlinkUnavailable(
            f"there is no {JAR_PATTERN} in {VENV}, which the package apache-flink-libraries==2.3.0 "
            f"brings: `make conformance` and `make bench-flink` make that environment (the package "
            f"has 329 MB)"
        )
    return found[0]


def logging_jars() -> list[Path]:
    """Return the jars that Flink logs with; none of them is needed."""
    return sorted(VENV.glob(LOGGING_PATTERN))


def java_compiler() -> str:
    """Return the path of `javac`: that of JAVA_HOME before that on PATH.

    Raises FlinkUnavailable if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "javac").is_file():
        return str(Path(home) / "bin" / "javac")
    found = shutil.which("javac")
    if found is None:
        raise FlinkUnavailable(
            f"no javac under JAVA_HOME ({home or 'not set'}) and none on PATH: the Java programs "
            f"are compiled on the spot, so a JDK of 17 or newer is needed (a Java runtime is not "
            f"enough); install one, on Debian and Ubuntu openjdk-17-jdk-headless, or set JAVA_HOME"
        )
    return found


def java() -> str:
    """Return the path of the `java` beside the compiler: another one may be older.

    Raises FlinkUnavailable if there is no compiler.
    """
    return str(Path(java_compiler()).with_name("java"))


def compile_java(class_path: str, target: Path, sources: Sequence[Path]) -> None:
    """Compile `sources` into `target`, a folder that is made.

    Raises FlinkUnavailable with the compiler's words.
    """
    compiler = java_compiler()
    command = [compiler, "-nowarn", "-XDignore.symbol.file", "-encoding", "UTF-8"]
    command += ["-cp", class_path, "-d", str(target), *map(str, sources)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise FlinkUnavailable(f"{compiler} did not run: {problem}") from problem
    if done.returncode != 0:
        raise FlinkUnavailable(
            f"{compiler} refused programs that are written for Java 17 and Flink 2.3.0:\n"
            f"{done.stdout}{done.stderr}"
        )
