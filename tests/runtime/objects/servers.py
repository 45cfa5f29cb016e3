"""Real object store servers on loopback, from the package index: SeaweedFS, and rclone, which lies.

A server that cannot be started skips the tests that need it, by name.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochgate.runtime.objects.client import open_url

KEY, SECRET = "key", "secret"
PATIENCE_S = 60.0
BUCKET = "bucket"


def ports(count: int) -> list[int]:
    """Free ports, which nothing else has taken meanwhile if all is well."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def program(name: str) -> str:
    """Where the server's program is, beside Python or on the path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"the server {name} is not installed; `make venv` installs it")
    return found


def environment(port: int) -> dict[str, str]:
    """What a client of the server on this port finds in its environment."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }


@contextlib.contextmanager
def serving(command: list[str], folder: Path, port: int) -> Iterator[dict[str, str]]:
    """Run a server until the block's end, once it stores what it is given."""
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        variables = environment(port)
        with pytest.MonkeyPatch.context() as patched:
            for name, value in variables.items():
                patched.setenv(name, value)
            _await(server, folder)
        yield variables
    finally:
        server.kill()
        server.wait(timeout=30)


def _await(server: subprocess.Popen[bytes], folder: Path) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            open_url(f"s3://{BUCKET}/is-up").put("yes", b"")
            return
        except OSError as error:
            if server.poll() is not None or time.monotonic() > deadline_s:
                said = (folder / "server.log").read_bytes()[-2000:].decode(errors="replace")
                raise AssertionError(f"the server does not answer: {error}\n{said}") from error
        time.sleep(0.1)  # for want of a sign that it is ready


@contextlib.contextmanager
def seaweedfs(folder: Path) -> Iterator[dict[str, str]]:
    """A server that honours conditions, and is durable."""
    master, volume, filer, s3, *grpc = ports(8)
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    (folder / "data").mkdir()
    command = [program("weed"), "-logtostderr=true", "server"]
    command += ["-dir=data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
    command += [f"-master.port={master}", f"-master.port.grpc={grpc[0]}"]
    command += ["-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=20"]
    command += [f"-volume.port={volume}", f"-volume.port.grpc={grpc[1]}"]
    command += [f"-filer.port={filer}", f"-filer.port.grpc={grpc[2]}"]
    command += [f"-s3.port={s3}", f"-s3.port.grpc={grpc[3]}", "-s3.config=s3.json"]
    command += ["-s3.iam=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    with serving(command, folder, s3) as variables:
        yield variables


@contextlib.contextmanager
def rclone(folder: Path) -> Iterator[dict[str, str]]:
    """A server that ignores conditions."""
    (port,) = ports(1)
    (folder / "data" / BUCKET).mkdir(parents=True)
    command = [program("rclone"), "serve", "s3", "data", f"--addr=127.0.0.1:{port}"]
    command += [f"--auth-key={KEY},{SECRET}", "--config=none.conf"]
    with serving(command, folder, port) as variables:
        yield variables
