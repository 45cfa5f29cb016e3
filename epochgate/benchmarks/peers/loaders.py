"""The loaders that are measured beside each other: how each is started, and with what settings.

Decides the settings: those that each tool's own pages give for loading new files once, with what it
remembers kept over its starts, and the safest where there are several. A loader is a command that
ends when all files are loaded, and is started again with the same words after a kill.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from epochgate.benchmarks.peers.installation import VENV, interpreter
from epochgate.benchmarks.peers.places import SCHEMA, TABLE, Kind, Place, Source

PROGRAMS = Path(__file__).with_name("programs")
SLING_PROGRAM = "lib/python*/site-packages/sling_linux_amd64/bin/sling-linux-amd64"
Into = Literal["delta", "postgres"]
KINDS: Mapping[Kind, str] = {"parquet": "Parquet", "csv": "CSV"}
PLACES: Mapping[Into, str] = {"delta": "Delta", "postgres": "PostgreSQL"}


class Start(NamedTuple):
    """A command and what its environment has besides."""

    command: list[str]
    variables: Mapping[str, str] = {}


class Loader(NamedTuple):
    """One way to load; `how` says which, for the page."""

    name: str
    into: Into
    kind: Kind
    how: str
    start: Callable[[Source, Place], Start]
    makes_table: bool = True
    """Whether the loader makes the table of a database itself."""

    @property
    def title(self) -> str:
        """Of a row of the tables."""
        how = f" ({self.how})" if self.how else ""
        return f"{self.name}{how}, {KINDS[self.kind]} into {PLACES[self.into]}"


def epochgate_into(into: Into) -> Callable[[Source, Place], Start]:
    """Load by `epochgate ingest`, with a checkpoint each second."""

    def start(source: Source, place: Place) -> Start:
        target = f"delta:{place.delta}" if into == "delta" else f"{place.url}#{SCHEMA}.{TABLE}"
        command = [sys.executable, "-m", "epochgate", "ingest", str(source.folder), target]
        command += ["--checkpoint-dir", str(place.state / "checkpoints")]
        return Start([*command, "--checkpoint-every", "1s", "--quiet"])

    return start


def dlt_into(into: Into, disposition: str) -> Callable[[Source, Place], Start]:
    """Load by dlt, with the readers of dlt-filesystem."""

    def start(source: Source, place: Place) -> Start:
        target = str(place.delta.parents[1]) if into == "delta" else place.url
        words = [source.kind, str(source.folder), into, target, disposition, str(place.state)]
        return Start(
            [str(interpreter()), str(PROGRAMS / "dlt_load.py"), *words],
            {"RUNTIME__DLTHUB_TELEMETRY": "false", "RUNTIME__LOG_LEVEL": "ERROR"},
        )

    return start


def sling_by(keys: Mapping[str, str]) -> Callable[[Source, Place], Start]:
    """Load by Sling, with one stream for the folder. Of 1.4.11, the column has to be `unix`: with
    `timestamp` it loads all files each time.
    """

    def start(source: Source, place: Place) -> Start:
        replication = {
            "source": "LOCAL",
            "target": "SERVER",
            "defaults": {
                "mode": "incremental",
                "update_key": "_sling_loaded_at",
                "object": f"{SCHEMA}.{TABLE}",
                "source_options": {"format": source.kind},
                **keys,
            },
            "streams": {f"file://{source.folder}/": {}},
            "env": {"SLING_LOADED_AT_COLUMN": "unix"},
        }
        path = place.state / "replication.json"
        path.write_text(json.dumps(replication))
        variables = {
            "SERVER": f"{place.url}?sslmode=disable",
            "SLING_HOME_DIR": str(place.state),
            "SLING_DISABLE_TELEMETRY": "true",
        }
        (program,) = [*VENV.glob(SLING_PROGRAM)] or [VENV / SLING_PROGRAM]
        return Start([str(program), "run", "-r", str(path)], variables)

    return start


def open_auto_loader(source: Source, place: Place) -> Start:
    """Load by open-auto-loader, which has one way."""
    words = [source.kind, str(source.folder), str(place.delta), str(place.state)]
    return Start([str(interpreter()), str(PROGRAMS / "oal_load.py"), *words])


OURS, DLT, SLING, OAL = "epochgate", "dlt", "Sling", "open-auto-loader"
LOADERS = (
    Loader(OURS, "delta", "parquet", "", epochgate_into("delta")),
    Loader(DLT, "delta", "parquet", "append", dlt_into("delta", "append")),
    Loader(OAL, "delta", "parquet", "", open_auto_loader),
    Loader(OURS, "postgres", "csv", "", epochgate_into("postgres"), makes_table=False),
    Loader(DLT, "postgres", "csv", "append", dlt_into("postgres", "append")),
    Loader(DLT, "postgres", "csv", "merge", dlt_into("postgres", "merge")),
    Loader(SLING, "postgres", "csv", "append", sling_by({})),
    Loader(SLING, "postgres", "csv", "merge", sling_by({"primary_key": "id"})),
)
"""In the order of the tables."""
