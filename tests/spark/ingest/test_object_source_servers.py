"""A source on a real server of an object store: pages, versions, broken connections, refusals."""

from __future__ import annotations

import hashlib
import random
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.runtime.objects.client import open_url
from epochgate.spark.files import FileChanged, FileEnumeration, SplitReader
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.taken import TakenFile
from epochgate.spark.ingest.removing import Removal
from tests.runtime.objects.servers import BUCKET, seaweedfs
from tests.soak.folders import Prefix

Told = Callable[..., str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as variables:
        yield variables


@pytest.fixture(autouse=True)
def variables(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Told:
    """Return what `epochgate ingest SOURCE` says as it refuses it, within seconds, and makes
    nothing.
    """

    def told(source: str, target: str | None = None) -> str:
        began_s = time.monotonic()
        assert main(["ingest", source, target or str(tmp_path / "out")]) == 2
        assert time.monotonic() - began_s < 20
        assert list(tmp_path.iterdir()) == []
        said = capfd.readouterr().err
        assert "Traceback" not in said
        return said

    return told


def numbers_read(enumeration: FileEnumeration) -> list[int]:
    splits = enumeration.discover()
    assert enumeration.layout is not None
    reader = SplitReader(enumeration.layout)
    batches = [read.batch for split in splits for read in reader.read(split)]
    return [number for batch in batches for number in batch["x"].to_pylist()]


def test_a_listing_of_several_pages_is_read_whole_with_keys_of_any_letters() -> None:
    objects = open_url(f"s3://{BUCKET}/pages")
    names = [f"dt=2024-01-01/k=a%20b/{number:04} ü+&#?.csv" for number in range(1_100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: objects.put(names[number], b"x\n%d\n" % number), range(1_100)))
    enumeration = FileEnumeration(f"s3://{BUCKET}/pages")
    splits = enumeration.discover()
    assert [split.path for split in splits] == [f"s3://{BUCKET}/pages/{name}" for name in names]
    assert enumeration.layout is not None
    (read,) = SplitReader(enumeration.layout).read(splits[700])
    assert read.batch.to_pylist()[0]["k"] == "a b"
    assert read.batch.to_pylist()[0]["x"] == 700


def test_an_object_is_known_by_its_content_and_not_by_its_etag() -> None:
    source = f"s3://{BUCKET}/again"
    objects, folder = open_url(source), Prefix(source)
    content = b"x\n" + b"".join(b"%07d\n" % number for number in range(1_000))
    folder.put("a.csv", content)
    enumeration = FileEnumeration(source, follow=True)
    assert len(enumeration.discover()) == 1
    before = objects.status("a.csv").etag
    assert before == f'"{hashlib.md5(content).hexdigest()}"'
    folder.put_again("a.csv", content)
    assert objects.status("a.csv").etag.endswith('-1"'), "a hash of the parts"
    assert enumeration.discover() == []
    # Within the same second, and of the same size.
    folder.put("a.csv", content[:-8] + b"7777777\n")
    with pytest.raises(FileChanged, match="has changed"):
        enumeration.discover()


def test_an_object_that_is_rewritten_while_it_is_read_does_not_mix() -> None:
    objects = open_url(f"s3://{BUCKET}/rewritten")
    contents = [b"x\n" + b"%d\n" % number * 600_000 for number in (100_001, 100_002)]
    objects.put("a.csv", contents[0])
    enumeration = FileEnumeration(f"s3://{BUCKET}/rewritten")
    (split,) = enumeration.discover()
    assert enumeration.layout is not None
    reads = SplitReader(enumeration.layout, block_bytes=1 << 16).read(split)
    taken = [next(reads)]
    objects.put("a.csv", contents[1])
    with pytest.raises(FileChanged):
        taken.extend(reads)
    assert {number for read in taken for number in read.batch["x"].to_pylist()} == {100_001}


def test_what_is_missing_or_refused_is_told_with_what_to_check(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_url(f"s3://{BUCKET}/there").put("a.csv", b"x\n1\n")
    assert "NoSuchBucket" in told("s3://no-such-bucket/in")
    assert "does not exist, or no file matches it" in told(f"s3://{BUCKET}/nothing/here")
    assert "does not exist, or no file matches it" in told(f"s3://{BUCKET}/there/*.parquet")
    assert "NoSuchBucket" in told(f"s3://{BUCKET}/there", "s3://no-such-bucket/out")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    said = told(f"s3://{BUCKET}/there")
    assert "SignatureDoesNotMatch" in said
    assert "AWS_SECRET_ACCESS_KEY" in said


def test_a_server_that_does_not_answer_is_told_soon(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free.getsockname()[1]}")
    said = told(f"s3://{BUCKET}/there")
    assert "AWS_ENDPOINT_URL" in said
    assert "error sending request" in said


class Breaking(socketserver.ThreadingTCPServer):
    """Passes connections on to a server; some requests break off, or are answered with 503."""

    daemon_threads = True

    def __init__(self, server: tuple[str, int], chance: random.Random) -> None:
        self.server, self.chance = server, chance
        self.broken, self.refused = 0, 0
        super().__init__(("127.0.0.1", 0), _Passing)


class _Passing(socketserver.BaseRequestHandler):
    server: Breaking

    def handle(self) -> None:
        proxy = self.server
        with suppress(OSError), socket.create_connection(proxy.server) as upstream:
            while request := _head(self.request):
                if proxy.chance.random() < 0.2:
                    proxy.refused += 1
                    self.request.sendall(
                        b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    )
                    return
                upstream.sendall(request)
                answer = _head(upstream)
                self.request.sendall(answer)
                is_asked_for_headers = request.startswith(b"HEAD")
                left = 0 if is_asked_for_headers else _length(answer)
                breaks = left > 1000 and proxy.chance.random() < 0.3
                stop = left // 2 if breaks else 0
                while left > stop:
                    data = upstream.recv(min(left - stop, 1 << 16))
                    left -= len(data)
                    self.request.sendall(data)
                if breaks:
                    proxy.broken += 1
                    return


def _head(connection: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            return b""
        data += byte
    return data


def _length(answer: bytes) -> int:
    for line in answer.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    raise AssertionError(f"an answer without a length: {answer!r}")


@contextmanager
def breaking(endpoint: str) -> Iterator[Breaking]:
    host, _, port = endpoint.removeprefix("http://").partition(":")
    with Breaking((host, int(port)), random.Random(5)) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()


def test_requests_that_break_off_or_are_put_off_are_tried_again(
    server: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = open_url(f"s3://{BUCKET}/broken")
    for file in range(4):
        numbers = range(10_000_000 + file * 400_000, 10_000_000 + (file + 1) * 400_000)
        objects.put(f"{file}.csv", b"x\n" + b"".join(b"%d\n" % number for number in numbers))
    with breaking(server["AWS_ENDPOINT_URL"]) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.server_address[1]}")
        assert numbers_read(FileEnumeration(f"s3://{BUCKET}/broken")) == [
            *range(10_000_000, 11_600_000)
        ]
    assert proxy.broken > 3
    assert proxy.refused > 3


@pytest.mark.parametrize("to", [None, "archive"])
def test_a_committed_object_is_deleted_or_moved_unless_it_was_replaced(to: str | None) -> None:
    source = f"s3://{BUCKET}/landing-{to}"
    objects, archive = open_url(source), f"s3://{BUCKET}/archive"
    for name in ("dt=1/a ü.csv", "dt=1/b.csv"):
        objects.put(name, b"x\n1\n")
    first, second = FileEnumeration(source).discover()
    objects.put("dt=1/b.csv", b"x\n2\n")
    removal = Removal(source, None if to is None else archive)
    records = [
        TakenFile(
            *(one.path, 1, Stamp(one.size_bytes, one.modified_ns, one.etag), 1, 0, False),
            *(0, 1, 1.0),
        )
        for one in (first, second)
    ]
    assert [removal.remove(record) for record in records] == [True, False]
    assert [removal.remove(record) for record in records] == [False, False]
    assert objects.list("dt=1") == ["dt=1/b.csv"]
    if to is not None:
        assert open_url(archive).get("dt=1/a ü.csv") == b"x\n1\n"
