"""Has a JVM of Spark write an archive of the classes that it has loaded.

The JVM's own class-data sharing (JEP 350) does the work, when the JVM ends. JVMs that map the
archive start in two thirds of the time; `epochgate.spark.java` has their options.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from epochgate.errors import UsageError
from epochgate.spark.home import installed_spark_home
from epochgate.spark.java import use_java
from epochgate.spark.scratch import scratch_folder
from epochgate.spark.session import start_session, stop_session

_WRITTEN_S: Final = 120.0


class ClassArchiveNotMade(UsageError):
    """The JVM has written no archive."""


def make_class_archive(archive: str | Path) -> int:
    """Start a local Spark, run two jobs, and have its JVM write `archive`, some 150 MB, which must
    not exist yet; return its bytes.

    Must be called where no Spark session is active. Raises ClassArchiveNotMade, SparkSessionFailed,
    and what `use_java` raises.
    """
    file = Path(archive).absolute()
    if file.exists():
        raise ClassArchiveNotMade(f"{file} exists already; remove it, or name another file")
    if not file.parent.is_dir():
        raise ClassArchiveNotMade(f"the folder {file.parent} does not exist; make it first")
    java_home = use_java()
    if not _load_classes_and_write(file):
        file.unlink(missing_ok=True)
        raise ClassArchiveNotMade(
            f"the JVM took longer than {_WRITTEN_S:g} s to write {file}; try again while the "
            "machine is less busy, or name a file on a faster disk"
        )
    if not file.exists():
        raise ClassArchiveNotMade(
            f"the Java at {java_home} has written no class archive to {file}. Either the folder "
            "cannot be written to, or that Java has no archive of its own classes, which `java "
            "-Xshare:dump` makes; or set JAVA_HOME to a complete JDK 17"
        )
    return file.stat().st_size


def _load_classes_and_write(file: Path) -> bool:
    options = f"{shlex.quote(f'-XX:ArchiveClassesAtExit={file}')} -Xlog:disable"
    settings = {"spark.driver.defaultJavaOptions": options}
    # The archive fits JVMs only while the jars exist at the paths that it was made with.
    home = installed_spark_home()
    with scratch_folder() as folder:
        spark = start_session(
            "local[2]", "epochgate class-archive", home, folder, settings, log_level="error"
        )
        try:
            spark.sparkContext.parallelize(range(4), 2).map(str).count()
            spark.range(4).count()
        finally:
            has_ended = stop_session(spark, _WRITTEN_S)
    return has_ended
