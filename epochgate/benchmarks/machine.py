"""The machine that a figure was measured on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import date
from pathlib import Path


def description(today: date) -> str:
    """Return date, processor, memory, versions, and how busy the machine was with other things."""
    load = os.getloadavg()[0]
    return (
        f"{today.isoformat()}, {os.cpu_count()} cores ({_processor()}), {_memory()}, "
        f"{platform.system()} {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}, {_java()}; load average before: {load:.1f}"
    )


def _processor() -> str:
    return _first_match(Path("/proc/cpuinfo"), r"model name\s*:\s*(.+)") or platform.machine()


def _memory() -> str:
    kilobytes = _first_match(Path("/proc/meminfo"), r"MemTotal:\s*(\d+)")
    return "unknown memory" if kilobytes is None else f"{int(kilobytes) / 2**20:.0f} GiB"


def _first_match(file: Path, pattern: str) -> str | None:
    try:
        found = re.search(pattern, file.read_text())
    except OSError:  # not on Linux
        return None
    return None if found is None else found[1]


def _java() -> str:
    from epochgate.spark.java import JavaNotFound, JavaOverlayFailed, ensure_java

    try:
        java = ensure_java() / "bin" / "java"
    except (JavaNotFound, JavaOverlayFailed):
        return "no Java"
    answer = subprocess.run(
        [java, "-version"], capture_output=True, text=True, timeout=30, check=False
    )
    found = re.search(r'version "([^"]+)"', answer.stderr)
    return "Java of unknown version" if found is None else f"Java {found[1]}"
