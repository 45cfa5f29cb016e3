"""`epochgate class-archive`: makes an archive of Spark's classes, from which JVMs start sooner."""

from __future__ import annotations

import argparse
from pathlib import Path

from epochgate.exit_codes import codes_of

HELP = "make an archive of classes from which Spark's JVMs start sooner"
DESCRIPTION = """\
Write the classes that Spark loads when it starts into an archive of the JVM
(class-data sharing, some 150 MB). Drivers and executors that map it start in about
two thirds of the time and of the processor time: a killed executor is replaced
sooner. Needs no network; takes about fifteen seconds."""

EPILOG = f"""\
examples:
  epochgate class-archive spark.jsa

Pass it to local_session(class_archive="spark.jsa"), or copy it to the same path on all hosts of a
cluster and add the printed settings to the session. The archive fits the Java build and the Spark
that wrote it; any other JVM ignores it and starts as before.
{codes_of("class-archive")}"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the archive, a file to be made")


def run(arguments: argparse.Namespace) -> int:
    """Write the archive, and print the settings that use it."""
    from epochgate.spark.class_archive import make_class_archive
    from epochgate.spark.java import archive_settings

    size = make_class_archive(arguments.file)
    print(f"{arguments.file}: {size / 1e6:,.0f} MB")
    for name, value in archive_settings(arguments.file).items():
        print(f"{name}={value}")
    return 0
