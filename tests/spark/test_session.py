"""The sessions that a job can run on, and what is said about the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from epochgate.errors import UsageError
from epochgate.spark.errors import (
    KeyExposed,
    LocalMasterWithoutRetries,
    MasterInvalid,
    NotASparkSession,
    SessionAlreadyRunning,
    SessionStopped,
    SettingBreaksGuarantees,
    SparkConnectUnsupported,
    SparkSessionFailed,
)
from epochgate.spark.failing_jobs import FAILURES_MAX
from epochgate.spark.session import local_master, local_session, validate_session

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("given", "started"),
    [
        ("local", "local[1,1000000]"),
        ("local[*]", "local[*,1000000]"),
        (" local[ 3 ] ", "local[3,1000000]"),
        ("local[3,8]", "local[3,8]"),
        ("local-cluster[2,2,1024]", "local-cluster[2,2,1024]"),
        ("spark://a:7077,b:7077", "spark://a:7077,b:7077"),
        ("yarn", "yarn"),
    ],
)
def test_a_local_master_gets_the_retries_that_it_lacks(given: str, started: str) -> None:
    assert local_master(given) == started


@pytest.mark.parametrize("given", ["", "local[x]", "local-cluster[2,2]", "localhost", "http://a"])
def test_a_master_that_spark_does_not_know_is_refused_with_examples(given: str) -> None:
    with pytest.raises(MasterInvalid, match=r"local-cluster\[2,2,1024\]"):
        local_master(given)


def test_a_master_whose_host_has_no_address_is_refused_at_once() -> None:
    master = "spark://no-such-host.invalid:7077,also-none.invalid:7077"
    with (
        pytest.raises(MasterInvalid, match=r"no host .* has an address \(no-such-host\.invalid: "),
        local_session(master),
    ):
        raise AssertionError("it has started")


def test_a_spark_connect_session_is_refused_and_the_way_out_is_named() -> None:
    # A real one needs grpc and a server; its class is all that is looked at.
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(SparkConnectUnsupported, match=r"\.master\(\.\.\.\) instead of"):
        validate_session(remote)


def test_what_is_no_session_is_refused() -> None:
    with pytest.raises(NotASparkSession, match="this is a str: 'local'"):
        validate_session("local")


@pytest.fixture(scope="class")
def spark() -> Iterator[Any]:
    # A shell starts what it leaves in the background with the interrupt ignored.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    with local_session("local[2]") as session:
        yield session
    signal.signal(signal.SIGINT, inherited)


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.timeout(300)
class TestLiveSession:
    @pytest.mark.versions
    def test_ours_is_valid_without_a_warning(self, spark: Any) -> None:
        assert validate_session(spark) == []

    def test_ours_keeps_the_callers_handler_of_the_interrupt(self, spark: Any) -> None:
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_ours_listens_on_the_loopback_address_only(self, spark: Any) -> None:
        jvm = psutil.Process(spark.sparkContext._gateway.proc.pid)
        listening = [c for c in jvm.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        assert {c.laddr.ip.removeprefix("::ffff:") for c in listening} == {"127.0.0.1"}

    def test_its_workers_have_imported_what_a_task_needs_before_they_are_forked(
        self, spark: Any
    ) -> None:
        def imported(rows: Iterable[int]) -> Iterator[bool]:
            import sys

            yield {"epochgate.spark.task_main", "pyarrow", "pyspark.worker"} <= set(sys.modules)

        assert spark.sparkContext.parallelize([0], 1).mapPartitions(imported).collect() == [True]

    def test_a_job_whose_task_fails_again_and_again_ends_with_the_error(self, spark: Any) -> None:
        def divide(number: int) -> float:
            return number / 0

        with pytest.raises(Exception, match=r"a task has failed \d+ times.*ZeroDivisionError"):
            spark.sparkContext.parallelize([1, 2], 2).map(divide).collect()

    def test_a_job_that_loses_some_tasks_goes_on(self, spark: Any, tmp_path: Path) -> None:
        def stumble(number: int) -> int:
            marks = len(list(tmp_path.iterdir()))
            if marks < FAILURES_MAX - 1:
                (tmp_path / str(marks)).touch()
                raise ArithmeticError
            return number

        assert spark.sparkContext.parallelize([1], 1).map(stumble).collect() == [1]

    def test_a_second_one_is_refused(self, spark: Any) -> None:
        with pytest.raises(SessionAlreadyRunning, match="pass it to run_job"), local_session():
            raise AssertionError

    @pytest.mark.parametrize(
        ("setting", "value", "error", "text"),
        [
            ("spark.speculation", "true", SettingBreaksGuarantees, "spark.speculation=false"),
            ("spark.master", "local[4]", LocalMasterWithoutRetries, r"local\[4,1000000\]"),
            ("spark.master", "local[2,1]", LocalMasterWithoutRetries, r"local\[2,1000000\]"),
        ],
    )
    def test_a_setting_that_breaks_the_guarantees_is_refused(
        self, spark: Any, setting: str, value: str, error: type[UsageError], text: str
    ) -> None:
        with changed(spark, setting, value), pytest.raises(error, match=text):
            validate_session(spark)

    @pytest.mark.parametrize(
        ("setting", "value"),
        [
            ("spark.dynamicAllocation.enabled", "true"),
            ("spark.excludeOnFailure.enabled", "true"),
        ],
    )
    def test_a_setting_that_may_hurt_is_warned_about(
        self, spark: Any, setting: str, value: str
    ) -> None:
        with changed(spark, setting, value):
            assert [w for w in validate_session(spark) if w.startswith(setting)] != []

    def test_few_task_failures_are_warned_about_on_a_cluster(self, spark: Any) -> None:
        with (
            changed(spark, "spark.master", "local-cluster[2,2,1024]"),
            changed(spark, "spark.task.maxFailures", "4"),
        ):
            assert "spark.task.maxFailures is 4" in validate_session(spark)[0]

    def test_a_key_that_can_be_read_on_the_network_is_refused(self, spark: Any) -> None:
        with (
            changed(spark, "spark.master", "spark://10.0.0.1:7077"),
            changed(spark, "spark.driver.host", "10.0.0.1"),
        ):
            with pytest.raises(KeyExposed, match=r"cross the network of 10\.0\.0\.1 unencrypted"):
                validate_session(spark)
            (warning,) = validate_session(spark, wire="insecure")
            assert warning.endswith("runs all the same, because its wire is insecure")
            with changed(spark, "spark.ssl.rpc.enabled", "true"):
                assert validate_session(spark) == []

    def test_when_it_is_stopped_it_is_refused(self, spark: Any) -> None:
        spark.stop()
        with pytest.raises(SessionStopped, match="make a new one"):
            validate_session(spark)


class changed:  # noqa: N801  reads as the statement that it is
    """Another setting, for the time of a block, in the configuration of a context that runs."""

    def __init__(self, spark: Any, name: str, value: str) -> None:
        self._settings, self._name, self._value = spark.sparkContext._conf, name, value

    def __enter__(self) -> None:
        self._before = self._settings.get(self._name)
        self._settings.set(self._name, self._value)

    def __exit__(self, *error: object) -> None:
        if self._before is None:
            self._settings._jconf.remove(self._name)
        else:
            self._settings.set(self._name, self._before)


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.timeout(60)
def test_a_session_that_cannot_start_says_so_and_leaves_nothing() -> None:
    before = set(psutil.Process().children(recursive=True))
    settings = {"spark.driver.bindAddress": "192.0.2.1"}
    unbindable = local_session("local[2]", settings=settings)
    with pytest.raises(SparkSessionFailed, match="Cannot assign requested address"), unbindable:
        raise AssertionError
    assert set(psutil.Process().children(recursive=True)) <= before


@pytest.mark.programs
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_session_is_silent_and_leaves_no_folder_behind(tmp_path: Path) -> None:
    script = (
        "from epochgate.spark.session import local_session\n"
        "with local_session('local[1]') as spark:\n"
        "    print(spark.range(5).count())\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(ROOT), TMPDIR=str(tmp_path))
    outcome = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert outcome.stdout == "5\n"
    # The JVM itself says this one, before any setting of Spark's counts.
    silent = "WARNING: Using incubator modules: jdk.incubator.vector"
    assert [line for line in outcome.stderr.splitlines() if line != silent] == []
    assert [path for path in tmp_path.iterdir() if path.name != "hsperfdata_root"] == []
