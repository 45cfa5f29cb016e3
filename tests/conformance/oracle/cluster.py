"""A whole Flink that is led into one hazard, and what it prints.

Decides nothing: JobOracle.java beside this starts a cluster with its scheduler, its checkpoint
coordinator and its RPC in one JVM, submits a job of ours and leads it. Runs that JVM as a child of
the process that calls, some ten seconds for each hazard.
"""

from __future__ import annotations

import os
import subprocess
import tempfile

from epochgate.benchmarks.flink.installation import logging_jars
from tests.conformance.oracle.oracle import HERE, OracleEnded, command

CLUSTER_TIMEOUT_S = 100


def cluster_lines(hazard: str) -> list[str]:
    """The lines that the hazard's program prints, and `exit code N` if the process ends so.

    `log ERROR` with the class of an exception is what Flink logs. Flink's fatal exit is code 239.
    Raises FlinkUnavailable, and OracleEnded if the program takes longer than CLUSTER_TIMEOUT_S.
    """
    java, *options, _, class_path, program = command(exits=True, program="JobOracle")
    jars = [class_path, *map(str, logging_jars())]
    parts = [*options, "-cp", os.pathsep.join(jars), program, hazard]
    try:
        with tempfile.TemporaryDirectory() as folder:  # for the savepoints, and what Flink unpacks
            settings = [
                f"-Djava.io.tmpdir={folder}",
                f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
            ]
            done = subprocess.run(
                [java, *settings, *parts],
                capture_output=True,
                text=True,
                timeout=CLUSTER_TIMEOUT_S,
                check=False,
            )
    except subprocess.TimeoutExpired as late:
        raise OracleEnded(
            f"{hazard} took longer than {CLUSTER_TIMEOUT_S} s; so far it printed:\n{late.stdout!r}"
        ) from late
    lines = done.stdout.splitlines()
    if done.returncode != 0:
        lines += [f"exit code {done.returncode}"]
    if done.returncode in (1, 2):
        lines += done.stderr.splitlines()[-20:]
    return lines
