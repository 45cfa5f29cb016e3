"""The view of a reader of all traffic between the hosts of a job, on a standalone cluster."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from epochgate.spark import transport
from epochgate.spark.session import local_session
from epochgate.spark.wire import new_key
from tests.spark.running import number_job, send_signal
from tests.spark.standalone import Cluster, standalone_cluster
from tests.spark.traffic import needs_root, recorded_traffic

pytestmark = [pytest.mark.spark, pytest.mark.deep, pytest.mark.timeout(300)]
DRIVER, WORKERS = "127.0.0.9", ("127.0.0.2", "127.0.0.3")
SECRET = "spark.authenticate.secret"


def private_configuration(folder: Path) -> tuple[Path, str]:
    """The steps of docs/security.md: a directory for SPARK_CONF_DIR, and the secret in it."""
    conf = folder / "spark-conf"
    conf.mkdir(mode=0o700)
    secret = secrets.token_hex(32)
    settings = conf / "spark-defaults.conf"
    settings.touch(mode=0o600)
    settings.write_text(
        f"spark.authenticate true\nspark.network.crypto.enabled true\n{SECRET} {secret}\n"
    )
    return conf, secret


@contextmanager
def session_on(cluster: Cluster, variables: dict[str, str]) -> Iterator[Any]:
    settings = {
        "spark.pyspark.python": str(cluster.python),
        "spark.pyspark.driver.python": str(cluster.python),
        "spark.driver.host": DRIVER,
        "spark.driver.bindAddress": DRIVER,
        "spark.executor.memory": "512m",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", DRIVER)
        patch.setenv("PYSPARK_PYTHON", str(cluster.python))
        patch.delenv("PYTHONPATH", raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        with local_session(cluster.master, settings=settings) as session:
            yield session


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> bytes:
    known = new_key()
    monkeypatch.setattr(transport, "new_key", lambda: known)
    return known


def command_lines() -> str:
    """Of all processes that this user can see."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_bytes())
        except OSError:
            continue  # it has ended meanwhile
    return b"\n".join(found).decode(errors="replace")


@needs_root
def test_with_the_settings_of_the_page_no_traffic_shows_key_or_payload(
    tmp_path: Path, key: bytes
) -> None:
    run = {"run_id": secrets.token_hex(16)}
    conf, secret = private_configuration(tmp_path)
    variables = {"SPARK_CONF_DIR": str(conf)}
    with (
        standalone_cluster(tmp_path, WORKERS, variables) as cluster,
        session_on(cluster, variables) as spark,
        recorded_traffic() as traffic,
    ):
        assert spark.sparkContext.getConf().get("spark.authenticate") == "true"
        with number_job(spark, 200, wire="private", configuration=run) as job:
            job.wait_until_running()
            assert secret not in command_lines()
            pid = job.pid(0)
            send_signal(pid, signal.SIGKILL)
            job.wait_for_replacement(0, pid)
            job.finish()
        assert traffic.bytes_seen > 100_000
        assert not traffic.shows(key)
        assert not traffic.shows(run["run_id"].encode())
        assert not traffic.shows(secret.encode())
    assert os.stat(conf / "spark-defaults.conf").st_mode & 0o077 == 0


@needs_root
def test_without_them_the_traffic_shows_the_key(tmp_path: Path, key: bytes) -> None:
    """So that the claim above is not one about the test's own blindness."""
    run = {"run_id": secrets.token_hex(16)}
    with (
        standalone_cluster(tmp_path, WORKERS) as cluster,
        session_on(cluster, {}) as spark,
        recorded_traffic() as traffic,
    ):
        with number_job(spark, 50, wire="insecure", configuration=run) as job:
            job.finish()
        assert traffic.shows(key)
        assert traffic.shows(run["run_id"].encode())
