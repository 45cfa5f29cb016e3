"""Azurite, Microsoft's emulator of Azure's blob storage, on the loopback address; and a client of
it by hand, which is another than those of the sinks and of the checkpoints.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import shutil
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from epochgate.benchmarks.object_server import ports

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that each Azurite has, which its pages name."""
CONTAINER = "lake"
URL = f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net"
PROGRAM = Path(__file__).parents[3] / ".azurite/node_modules/azurite/dist/src/blob/main.js"
PATIENCE_S = 60.0
HEADERS_WITHOUT_VALUE = 11


class Client:
    """Requests that are signed with the account's key."""

    def __init__(self, port: int) -> None:
        self._server = f"http://127.0.0.1:{port}"

    def make_container(self) -> None:
        """Make the container."""
        self._ask("PUT", "", {"restype": "container"})

    def copy(self, folder: str, place: Path) -> Path:
        """Copy what lies below a folder of the container into a directory, by the same names."""
        asked = {"restype": "container", "comp": "list", "prefix": f"{folder}/"}
        listed = ElementTree.fromstring(self._ask("GET", "", asked))
        for one in listed.iter("Name"):
            key = one.text or ""
            copy = place / key.removeprefix(f"{folder}/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(self._ask("GET", f"/{quote(key)}", {}))
        return place

    def _ask(self, method: str, path: str, words: dict[str, str]) -> bytes:
        now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        headers = {"x-ms-date": now, "x-ms-version": "2021-08-06"}
        resource = f"/{ACCOUNT}/{CONTAINER}{path}"
        lines = [method, *[""] * HEADERS_WITHOUT_VALUE]
        lines += [f"{name}:{value}" for name, value in headers.items()]
        lines += [f"/{ACCOUNT}{resource}"]
        lines += [f"{name}:{value}" for name, value in sorted(words.items())]
        secret = base64.b64decode(KEY)
        signature = hmac.new(secret, "\n".join(lines).encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in words.items())
        request = Request(f"{self._server}{resource}?{query}", method=method, headers=headers)
        with urlopen(request, timeout=10) as answer:
            content: bytes = answer.read()
        return content


@contextlib.contextmanager
def azurite(folder: Path) -> Iterator[tuple[dict[str, str], Client]]:
    """Run it with an empty container; gives the variables of its clients."""
    node = shutil.which("node")
    if node is None or not PROGRAM.exists():
        pytest.skip("Azurite is not installed: `make azurite` fetches it from npm, and needs node")
    (port,) = ports(1)
    command = [node, str(PROGRAM), "--silent", "--skipApiVersionCheck", "--location", str(folder)]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder)
    try:
        client, until_s = Client(port), time.monotonic() + PATIENCE_S
        while True:
            try:
                client.make_container()
                break
            except URLError:
                if server.poll() is not None or time.monotonic() > until_s:
                    raise
            time.sleep(0.1)  # nothing tells that it is ready
        yield (
            {
                "AZURE_STORAGE_USE_EMULATOR": "true",
                "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{port}",
                "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
                "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            },
            client,
        )
    finally:
        server.kill()
        server.wait(timeout=30)
