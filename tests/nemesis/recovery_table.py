"""The table of times to recovery, as the report prints it and as docs/hosts.md has it."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.nemesis.campaign import Recovery

BEGIN, END = "<!-- nemesis: begin -->", "<!-- nemesis: end -->"
HEADER = ("fault", "ingestion", "updates", "heard by all", "aim", "before")


def lines(measured: Sequence[Recovery]) -> list[str]:
    """As a table of Markdown."""
    rows = [HEADER, *map(_row, measured)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    told = []
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        told.append(f"| {' | '.join(cells)} |")
        if number == 0:
            told.append(f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    return told


def _row(one: Recovery) -> tuple[str, ...]:
    fault = one.fault
    return (
        fault.what,
        _seconds(one.ingest_s),
        _seconds(one.updates_s),
        _seconds(one.heard_s),
        "" if fault.aim_s is None else f"{fault.aim_s:g}",
        "" if fault.before_s is None else f"{fault.before_s:g}",
    )


def _seconds(value: float) -> str:
    return f"{value:.1f}"


def write(page: Path, measured: Sequence[Recovery]) -> None:
    """Put the table and its conditions between the marks of the page."""
    text = page.read_text()
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    day = datetime.now(UTC).date()
    load = max(os.getloadavg())
    where = f"{os.cpu_count()} cores, load average {load:.1f}, Python {platform.python_version()}"
    told = [BEGIN, f"Measured on {day}: {where}.", "", *lines(measured), END]
    page.write_text(head + "\n".join(told) + tail)
