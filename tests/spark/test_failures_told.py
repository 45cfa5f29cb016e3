"""The report to a user when Spark brings up no process, or one that fails before it can speak."""

from __future__ import annotations

import pytest

from epochgate.spark.resident_job import telling_line
from epochgate.spark.slots import too_few_slots, why_none_came

UNREACHABLE = """\
org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] Traceback (most recent call last):
  File "epochgate/spark/wire/client.py", line 369, in _connected_socket
    return connected_to(addresses_of(*address), timeout_s)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ConnectionRefusedError: [Errno 111] Connection refused

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "epochgate/spark/wire/client.py", line 371, in _connected_socket
    raise CannotConnect(
epochgate.spark.wire.errors.CannotConnect: cannot reach the driver at 10.0.0.1:4040. Check that ...
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:1097)
Caused by: java.io.IOException: Error
"""
INDENTED = """\
org.apache.spark.SparkException:\x20
Error from python worker:
  Traceback (most recent call last):
    File "<frozen runpy>", line 88, in _run_code
    File "daemon.py", line 3, in <module>
      import polars
  ModuleNotFoundError: No module named 'polars'
PYTHONPATH was:
  /usr/lib/spark/python
"""
LOST = "ExecutorLostFailure (executor 1 exited, caused by one of the running tasks)\nReason: killed"


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            UNREACHABLE,
            "epochgate.spark.wire.errors.CannotConnect: cannot reach the driver at 10.0.0.1:4040. "
            "Check that ...",
        ),
        (INDENTED, "ModuleNotFoundError: No module named 'polars'"),
        (LOST, LOST.splitlines()[0]),
        ("\n  java.io.IOException: no space\n\tat a.b", "java.io.IOException: no space"),
        ('  File "a.py"\n    f()', 'File "a.py"'),
        ("", ""),
    ],
)
def test_a_failure_is_told_by_what_it_comes_down_to(message: str, told: str) -> None:
    assert telling_line(message) == told


def test_no_executor_at_all_is_told_apart_from_too_few_slots() -> None:
    where = {"master": "spark://host:7077", "driver": "10.0.0.1:35000"}
    none = too_few_slots(0, 4, waited_s=30.0, **where)
    for words in (
        "no executor has registered",
        "within 30 s",
        "10.0.0.1:35000",
        "spark.driver.host",
    ):
        assert words in none
    assert "at most 0" not in none
    few = too_few_slots(2, 4, waited_s=30.0, **where)
    assert "4 subtasks" in few
    assert "has 2 task slots" in few
    assert "spark.driver.host" not in few


@pytest.mark.parametrize(
    ("slots", "words"),
    [
        (None, "does not say"),
        (0, "spark.deploy.recoveryMode"),
        (1, "Spark has 1: executors are missing"),
        (2, "Spark has 2; another job may hold some"),
        (9, "cannot reach the driver at 10.0.0.1:35000"),
    ],
)
def test_why_no_process_came_is_told_by_the_slots_that_there_are(
    slots: int | None, words: str
) -> None:
    told = why_none_came(slots, 2, driver="10.0.0.1:35000")
    assert words in told
    assert ("another job" in told) is (slots is not None and slots >= 2)
