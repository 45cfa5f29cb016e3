"""A Spark home of one's own: links to the installed one, with folders beside them to write into.

Decides where Spark writes when the command line starts it: Spark's `local-cluster` puts its
executors' folders into SPARK_HOME, which is the Python environment's site-packages unless this is
there. Also holds the settings of Spark's log. Runs on the driver.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

_OFF: Final = (
    # What a lost task or executor makes these say is what epochgate is there for.
    "org.apache.spark.api.python.PythonRunner",
    "org.apache.spark.api.python.BasePythonRunner",
    "org.apache.spark.api.python.PythonWorkerFactory",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSchedulerImpl",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.deploy.worker",
    "org.apache.spark.network",
    "org.apache.spark.rpc",
    "org.apache.spark.util.Utils",
)


def installed_spark_home() -> Path:
    """Return the Spark home that pyspark has brought along."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pyspark is not installed", name="pyspark")
    return Path(spec.origin).parent


def make_spark_home(folder: Path) -> Path:
    """Make a Spark home in the empty `folder`; its `work`, if any, is Spark's to write into."""
    home = folder / "home"
    home.mkdir()
    for entry in installed_spark_home().iterdir():
        if entry.is_dir() and entry.name not in ("work", "__pycache__"):
            (home / entry.name).symlink_to(entry)
    return home


def write_log_settings(folder: Path, level: str) -> Path:
    """Write a file for Spark's log: errors only, or `level`; never what a failover brings about."""
    lines = [
        f"rootLogger.level = {level}",
        "rootLogger.appenderRef.stderr.ref = console",
        "appender.console.type = Console",
        "appender.console.name = console",
        "appender.console.target = SYSTEM_ERR",
        "appender.console.layout.type = PatternLayout",
        "appender.console.layout.pattern = %d{HH:mm:ss} spark %p %c{1}: %m%n%ex",
        # Spark says aloud that it sets a level for its shell, unless the shell has it already.
        "logger.shell.name = org.apache.spark.api.python.PythonGatewayServer",
        f"logger.shell.level = {level}",
    ]
    if level == "error":
        for number, name in enumerate(_OFF):
            lines += [f"logger.o{number}.name = {name}", f"logger.o{number}.level = off"]
    file = folder / "log4j2.properties"
    file.write_text("\n".join(lines) + "\n")
    return file
