"""A headless Chromium, driven over its debugging pipe with nothing but the standard library.

Decides where Chromium is looked for, and that it reaches no network: each request of a page is
seen, and those that leave this machine fail. Messages are JSON that ends with a zero byte, on the
file descriptors 3 and 4 of the process. Runs in tests, on one thread.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S: Final = 60.0
OFFLINE: Final = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"

LAUNCH: Final = """import os, sys
read, write = map(int, sys.argv[1:3])
for source, end in ((read, 60), (write, 61), (60, 3), (61, 4)):
    os.dup2(source, end)
os.execv(sys.argv[3], sys.argv[3:])"""
"""Chromium's ends of the pipe are the file descriptors 3 and 4, whatever these were before."""


def found() -> str | None:
    """Return the path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserFailed(Exception):
    """Chromium has refused a command, or has not answered in time."""


class Browser:
    """A Chromium with one page; `folder` is its profile."""

    def __init__(self, path: str, folder: Path) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        command = [
            *(sys.executable, "-c", LAUNCH, str(to_read), str(to_write)),
            path,
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            f"--host-resolver-rules={OFFLINE}",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            command,
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number, self._session = b"", 0, ""
        self.requests: list[str] = []
        """The URLs that the page has asked for."""
        self.errors: list[str] = []
        """The complaints of its scripts and of its policy."""
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        pages: list[dict[str, Any]] = []
        while not pages:
            told = self.send("Target.getTargets")["targetInfos"]
            pages = [one for one in told if one["type"] == "page"]
        target = pages[0]["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def look(
        self, width: int, *, is_dark: bool = False, media: str = "", height: int = 900
    ) -> None:
        """Show pages at this width, in the light or dark scheme; `media`: "print" or the screen."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def open(self, url: str) -> None:
        """Load it, also where it is what is shown, and wait for that."""
        self.send("Page.navigate", url="about:blank")
        self.until("location.href === 'about:blank'")
        self.requests.clear()
        self.errors.clear()
        answer = self.send("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserFailed(f"{url}: {answer['errorText']}")
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """Evaluate an expression, or wait for the promise that it is, and return its value."""
        answer = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise BrowserFailed(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def until(self, condition: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until an expression is true."""
        deadline_s = time.monotonic() + patience_s
        while not self.run(condition):
            if time.monotonic() > deadline_s:
                raise BrowserFailed(f"not within {patience_s:g} s: {condition}")

    def press(self, key: str) -> None:
        """Press a key, such as ArrowLeft."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key)

    def picture(self, path: Path, *, is_whole: bool = True) -> None:
        """Write what is shown as a PNG; `is_whole`: the whole page."""
        answer = self.send("Page.captureScreenshot", captureBeyondViewport=is_whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        return base64.b64decode(self.send("Page.printToPDF")["data"])

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol, and return its answer."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        return self._take(lambda told: told.get("id") == number, method)

    def _take(self, is_wanted: Callable[[dict[str, Any]], bool], doing: str) -> dict[str, Any]:
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            while b"\0" not in self._buffer:
                left_s = max(0.0, deadline_s - time.monotonic())
                if not select.select([self._read], [], [], left_s)[0]:
                    raise BrowserFailed(f"no answer to {doing} within {PATIENCE_S:g} s")
                data = os.read(self._read, 1 << 20)
                if not data:
                    raise BrowserFailed(f"Chromium has ended during {doing}")
                self._buffer += data
            line, _, self._buffer = self._buffer.partition(b"\0")
            told = json.loads(line)
            self._note(told)
            if is_wanted(told):
                if "error" in told:
                    raise BrowserFailed(f"{doing}: {told['error']}")
                return dict(told["result"])

    def _note(self, told: dict[str, Any]) -> None:
        parameters = told.get("params", {})
        if told.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif told.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"]))
        elif told.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
