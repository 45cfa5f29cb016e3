"""An archive of the classes that Spark loads at its start: JVMs that map it start in half the time.

The JVM's own class-data sharing (JEP 350) does the work; this module starts a Spark that has the
usual classes loaded, and knows the options. Nothing depends on the archive: a JVM of another build,
or with other jars, starts as if there were none.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from epochgate.environment import set_in_environment
from epochgate.errors import UsageError
from epochgate.spark.home import write_log_settings
from epochgate.spark.java import use_java

QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For short-lived JVMs that move little: starting quickly is worth more than peak speed."""
_EXIT_S: Final = 120.0


class ClassArchiveMissing(UsageError):
    """The archive that a session is to use does not exist."""


class ClassArchiveNotMade(UsageError):
    """The JVM has written no archive."""


def archive_settings(archive: str | Path) -> dict[str, str]:
    """Return the Spark settings with which driver and executors map `archive`, which lies at the
    same path on all hosts. Raises ClassArchiveMissing.
    """
    file = Path(archive).absolute()
    if not file.is_file():
        raise ClassArchiveMissing(
            f"there is no class archive at {file}; `epochgate class-archive {file}` makes one"
        )
    options = java_options(file)
    return {
        "spark.driver.defaultJavaOptions": options,
        "spark.executor.defaultJavaOptions": options,
    }


def java_options(archive: Path) -> str:
    """Return the options with which a JVM maps `archive` if it fits, and is silent if not."""
    quiet = "-Xlog:cds=off -Xlog:cds+dynamic=off"
    return f"{shlex.quote(f'-XX:SharedArchiveFile={archive}')} {quiet}"


def make_class_archive(archive: str | Path) -> int:
    """Start a local Spark, run two jobs, and have its JVM write `archive`, some 150 MB, which must
    not exist yet; return its bytes.

    Must be called in a process that has no other Spark session, before or after. Raises
    ClassArchiveNotMade, and what `use_java` raises.
    """
    file = Path(archive).absolute()
    if file.exists():
        raise ClassArchiveNotMade(f"{file} exists already; remove it, or name another file")
    java_home = use_java()
    option = shlex.quote(f"-XX:ArchiveClassesAtExit={file}")
    with _spark_that_ends(f"{option} -Xlog:disable") as session:
        context = session.sparkContext
        assert context.parallelize(range(4), 2).map(str).count() == session.range(4).count()
    if not file.exists():
        raise ClassArchiveNotMade(
            f"the Java at {java_home} has written no class archive to {file}. Either the folder "
            "cannot be written to, or that Java has no archive of its own classes, which `java "
            "-Xshare:dump` makes; or set JAVA_HOME to a complete JDK 17"
        )
    return file.stat().st_size


@contextmanager
def _spark_that_ends(submit_options: str) -> Iterator[Any]:
    """A session whose JVM has ended afterwards, as which it writes its archive."""
    from pyspark.sql import SparkSession

    variables = {"SPARK_SUBMIT_OPTS": submit_options, "SPARK_LOCAL_IP": "127.0.0.1"}
    with TemporaryDirectory(prefix="epochgate-class-archive-") as folder:
        log = write_log_settings(Path(folder), "error").as_uri()
        settings = {
            "spark.driver.extraJavaOptions": f"{QUICK_JVM} -Dlog4j2.configurationFile={log}",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        builder: Any = SparkSession.builder
        with set_in_environment(variables):
            session = builder.master("local[2]").config(map=settings).getOrCreate()
        gateway = session.sparkContext._gateway
        try:
            yield session
        finally:
            session.stop()
            gateway.shutdown()
            process: subprocess.Popen[bytes] = gateway.proc
            assert process.stdin is not None
            process.stdin.close()
            process.wait(_EXIT_S)
