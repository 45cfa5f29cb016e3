"""Notifications of real servers: a queue that speaks SQS's protocol, and the kernel."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

from epochgate.runtime.objects.client import open_url
from epochgate.spark.files import FileEnumeration
from epochgate.spark.ingest.hints.hint import HintsFailed
from epochgate.spark.ingest.hints.newer_names import NewerNames
from tests.runtime.objects.servers import BUCKET, seaweedfs
from tests.spark.ingest.simulated import visible
from tests.spark.shared import session_of

ROOT = Path(__file__).parents[3]
PATIENCE_S = 60.0
SOURCE = f"s3://{BUCKET}/in"


class Queue:
    """A queue of moto's server, into which messages come as S3 puts them."""

    def __init__(self, client: Any, name: str) -> None:
        self._client, self.url = client, client.create_queue(QueueName=name)["QueueUrl"]

    def say(self, key: str, bucket: str = BUCKET, name: str = "ObjectCreated:Put") -> None:
        told = {"bucket": {"name": bucket}, "object": {"key": quote_plus(key, safe="/")}}
        self.send(json.dumps({"Records": [{"eventName": name, "s3": told}]}))

    def send(self, body: str) -> None:
        self._client.send_message(QueueUrl=self.url, MessageBody=body)

    def count(self) -> int:
        """The number of messages, given out or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        told = self._client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        return sum(int(told["Attributes"][name]) for name in names)

    def destroy(self) -> None:
        self._client.delete_queue(QueueUrl=self.url)


@pytest.fixture(scope="module")
def sqs() -> Iterator[str]:
    server = pytest.importorskip("moto.server", reason="moto[server,sqs] is not installed")
    pytest.importorskip("boto3")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    try:
        host, port = running.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        running.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as variables:
        yield variables


@pytest.fixture(autouse=True)
def variables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if {"queue", "server"} & set(request.fixturenames):
        for name, value in request.getfixturevalue("server").items():
            monkeypatch.setenv(name, value)


@pytest.fixture
def queue(sqs: str, server: dict[str, str], request: pytest.FixtureRequest) -> Queue:
    client = pytest.importorskip("boto3").client(
        "sqs",
        endpoint_url=sqs,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    return Queue(client, f"q{abs(hash(request.node.name))}")


def hints(queue: Queue) -> Any:
    from epochgate.spark.ingest.hints.sqs import SqsHints

    return SqsHints(queue.url, SOURCE)


def test_messages_are_heard_by_the_hundred_and_are_gone_once_confirmed(queue: Queue) -> None:
    for number in range(25):
        queue.say(f"in/a b+{number}.csv")
    queue.say("in/other.csv", bucket="another")
    queue.send("no JSON")
    asked = hints(queue)
    heard = asked.hear(0)
    own = {f"{SOURCE}/a b+{number}.csv" for number in range(25)}
    assert own <= heard.named.keys()
    assert all(url.startswith(f"s3://{BUCKET}/") for url in heard.named)
    assert (len(heard.receipts), heard.foreign) == (27, 2)
    assert queue.count() == 27
    asked.confirm(heard.receipts)
    assert queue.count() == 0
    assert asked.hear(0).is_empty()
    asked.close()


def test_a_queue_that_is_gone_is_told_by_its_url(queue: Queue) -> None:
    asked = hints(queue)
    queue.destroy()
    with pytest.raises(HintsFailed, match=r"receive_message.*listing SOURCE"):
        asked.hear(0)
    with pytest.raises(HintsFailed, match="delete_message_batch"):
        asked.confirm(["none"])


def test_objects_that_messages_name_are_looked_at_in_the_store(queue: Queue) -> None:
    objects = open_url(f"s3://{BUCKET}")
    objects.put("in/first.csv", b"x\n1\n")
    files = FileEnumeration(SOURCE, follow=True)
    files.discover()
    objects.put("in/a b.csv", b"x\n2\n")
    objects.put("in/unsaid.csv", b"x\n3\n")
    for key in ("in/a b.csv", "in/first.csv", "in/gone.csv", "in/_hidden.csv", "other/b.csv"):
        queue.say(key)
    heard = hints(queue).hear(0)
    assert [split.path for split in files.look_at(heard.named)] == [f"{SOURCE}/a b.csv"]
    assert files.look_at(heard.named) == []
    assert [split.path for split in files.discover()] == [f"{SOURCE}/unsaid.csv"]


def test_names_that_grow_are_found_behind_the_greatest_known_one(server: dict[str, str]) -> None:
    source, objects = f"s3://{BUCKET}/growing", open_url(f"s3://{BUCKET}")
    objects.put("growing/dt=1/b.csv", b"x\n1\n")
    files = FileEnumeration(source, follow=True)
    files.discover()
    names = NewerNames(source, "growing/dt=1/b.csv", open_url)
    assert names.hear(0).is_empty()
    for key in ("growing/dt=1/a.csv", "growing/dt=1/c.csv", "growing/dt=2/a.csv", "later/a.csv"):
        objects.put(key, b"x\n2\n")
    heard = names.hear(0)
    found = [split.path for split in files.look_at(heard.named)]
    assert found == [f"{source}/dt=1/c.csv", f"{source}/dt=2/a.csv"]
    assert names.hear(0).is_empty()
    assert [split.path for split in files.discover()] == [f"{source}/dt=1/a.csv"]


def test_the_kernel_names_files_that_are_written_moved_and_in_new_directories(
    tmp_path: Path,
) -> None:
    pytest.importorskip("watchfiles", reason="watchfiles is not installed")
    from epochgate.spark.ingest.hints.inotify import InotifyHints

    (tmp_path / "in").mkdir()
    watched = InotifyHints(str(tmp_path / "in" / "*.csv"))
    assert watched.hear(0).is_empty()
    (tmp_path / "in" / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.csv").write_text("x\n1\n")
    (tmp_path / "b.csv").rename(tmp_path / "in" / "b.csv")
    (tmp_path / "in" / "c").mkdir()
    named: set[str] = set()
    until_s = time.monotonic() + PATIENCE_S
    while not {str(tmp_path / "in" / name) for name in ("a.csv", "b.csv", "c")} <= named:
        assert time.monotonic() < until_s
        named |= watched.hear(1).named.keys()
    watched.close()


def until(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until_s, "it takes too long"
        time.sleep(0.05)


@pytest.mark.spark
@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["sqs", "inotify", "names"])
def test_a_job_takes_what_it_is_told_of_before_the_next_listing(
    tmp_path: Path,
    kind: str,
    queue: Queue,
    server: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from epochgate.spark.ingest import IngestOptions, start_ingest

    spark = session_of("tests/spark/ingest/test_notified.py")
    for name, value in server.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    objects = open_url(f"s3://{BUCKET}")
    source, notify = f"s3://{BUCKET}/{kind}", kind
    if kind == "sqs":
        notify = f"sqs:{queue.url}"
    if kind == "inotify":
        pytest.importorskip("watchfiles")
        source = str(tmp_path / "in")
        (tmp_path / "in").mkdir()

    def put(name: str, value: int, *, is_said: bool = True) -> None:
        data = b"x\n%d\n" % value
        if kind == "inotify":
            (tmp_path / "in" / name).write_bytes(data)
            return
        objects.put(f"{kind}/{name}", data)
        if kind == "sqs" and is_said:
            queue.say(f"{kind}/{name}")
            queue.say(f"{kind}/{name}")

    put("a.csv", 1)
    options = IngestOptions(
        source,
        str(tmp_path / "out"),
        parallelism=1,
        follow=True,
        settle_s=0.0,
        checkpoint_every_s=0.2,
        notify=notify,
    )
    assert options.follow_every_s == 300.0
    with start_ingest(spark, options) as handle:
        until(lambda: handle.rows_committed == 1)
        put("b.csv", 2)
        until(lambda: handle.rows_committed == 2)
        if kind == "sqs":
            put("unsaid.csv", 3, is_said=False)
            until(lambda: queue.count() == 0)
        handle.stop()
        assert handle.wait().rows_visible == 2
    with start_ingest(spark, options) as handle:
        until(lambda: handle.plan.committer.rows_visible == (3 if kind == "sqs" else 2))
        handle.stop()
        handle.wait()


@pytest.mark.spark
@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_row_once_although_a_notified_driver_is_killed(tmp_path: Path, queue: Queue) -> None:
    source, target = f"s3://{BUCKET}/killed", tmp_path / "out"
    objects = open_url(source)
    command = [sys.executable, "-m", "epochgate", "ingest", source, str(target), "--follow"]
    command += ["--notify", f"sqs:{queue.url}", "--checkpoint-every", "200ms", "--parallelism", "1"]

    def put(numbers: range) -> None:
        """Put objects of which each third is not said, and each third said twice."""
        for number in numbers:
            objects.put(f"{number:03}.csv", b"x\n%d\n" % number)
            for _ in range(number % 3):
                queue.say(f"killed/{number:03}.csv")

    def running() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.PIPE
        )

    put(range(6))
    with running() as first:
        until(lambda: len(visible(target)) == 6)
        put(range(6, 12))
        until(lambda: len(visible(target)) > 6)
        first.kill()
    put(range(12, 18))
    with running() as second:
        until(lambda: len(visible(target)) == 18)
        put(range(18, 24))
        said = [number for number in range(24) if number < 18 or number % 3]
        until(lambda: visible(target) == said)
        second.send_signal(signal.SIGINT)
        assert second.wait(PATIENCE_S) == 0
    assert visible(target) == said
