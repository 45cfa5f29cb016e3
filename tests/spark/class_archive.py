"""Archive the classes that Spark loads when it starts, so that the JVMs of the tests start sooner.

python -m tests.spark.class_archive FILE

Run by `make test` once for each environment; `tests/conftest.py` tells JVMs of the file. A JVM to
which it does not apply, as one of another build, starts as if there were none.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from epochgate.spark.home import write_log_settings
from epochgate.spark.java import use_java

EXIT_S = 120.0


def make(archive: Path) -> None:
    """Start Spark, run a job, and let the JVM write the archive; an empty one if it cannot."""
    from pyspark.sql import SparkSession

    use_java()
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={archive} -Xlog:disable"
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with TemporaryDirectory() as folder:
        builder: Any = SparkSession.builder
        log = write_log_settings(Path(folder), "error").as_uri()
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        settings = {
            "spark.driver.extraJavaOptions": f"{quick} -Dlog4j2.configurationFile={log}",
            "spark.ui.showConsoleProgress": "false",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.ui.enabled": "false",
        }
        session = builder.master("local[2]").config(map=settings).getOrCreate()
        context = session.sparkContext
        assert context.parallelize(range(4), 2).map(str).count() == session.range(4).count()
        gateway = context._gateway
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(EXIT_S)
    archive.touch()


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute())
