"""A search in a driver of its own, to be killed: `python search_program.py DIRECTORY MASTER`."""

from __future__ import annotations

import sys

from epochgate.models.studies.reference import Reference
from epochgate.spark.checking import SETTINGS, check_on_spark
from epochgate.spark.session import local_session
from tests.spark.shared import executor_settings

STATES, TRANSITIONS = 120_524, 561_792


def main(directory: str, master: str) -> None:
    with local_session(master, settings={**SETTINGS, **executor_settings()}) as spark:
        result = check_on_spark(spark, Reference(), directory=directory)
    told = (result.verdict.value, result.states, result.transitions, result.depth)
    sys.stdout.write(" ".join(map(str, told)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
