"""The versions of Spark and Python that a job has been seen to work on.

Decides what is said of another one: an older Spark is refused, since nothing was built for it; a
newer one, and a newer Python, is a warning, since it may well work. `make versions` starts jobs on
each of them (tests/versions). Pure.
"""

from __future__ import annotations

import re
from typing import Final

from epochgate.errors import UsageError

SPARK: Final = ((3, 5), (4, 0), (4, 1), (4, 2), (4, 3))
PYTHON: Final = ((3, 11), (3, 12), (3, 13))


class SparkTooOld(UsageError):
    """The session's Spark is older than any that epochgate works on."""


def version_warnings(spark: str, python: tuple[int, int]) -> list[str]:
    """Return what there is to say of a session's Spark, by its version, and of the Python.

    Raises SparkTooOld.

    >>> version_warnings("4.0.1", (3, 12))
    []
    >>> version_warnings("5.0.0-preview1", (3, 12))[0]
    'Spark is 5.0.0-preview1, and epochgate is tested on 3.5 to 4.3: run a small job first'
    """
    version = version_of(spark)
    if version < SPARK[0]:
        raise SparkTooOld(
            f"Spark is {spark}, and epochgate works on {_told(SPARK)}: install another pyspark, "
            "all of which run on Java 17"
        )
    warnings = []
    if version not in SPARK:
        warnings.append(
            f"Spark is {spark}, and epochgate is tested on {_told(SPARK)}: run a small job first"
        )
    if python not in PYTHON:
        warnings.append(
            f"Python is {python[0]}.{python[1]}, and epochgate is tested on {_told(PYTHON)}: run a "
            "small job first"
        )
    return warnings


def version_of(spark: str) -> tuple[int, int]:
    """Major and minor version; of a text that names none, the newest that is known.

    >>> version_of("5.0.0-preview1")
    (5, 0)
    """
    found = re.match(r"(\d+)\.(\d+)", spark)
    return (int(found[1]), int(found[2])) if found else SPARK[-1]


def _told(versions: tuple[tuple[int, int], ...]) -> str:
    first, *_, last = versions
    return f"{first[0]}.{first[1]} to {last[0]}.{last[1]}"
