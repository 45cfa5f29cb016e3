"""The environment of the other loaders, which `make bench-ingest-peers` makes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from epochgate.errors import UsageError

CHECKOUT = Path(__file__).resolve().parents[3]
VENV = Path(os.environ.get("EPOCHGATE_PEERS_VENV", CHECKOUT / ".venv-peers"))
PACKAGES = ("dlt", "dlt-filesystem", "sling-linux-amd64", "open-auto-loader")


class PeersMissing(UsageError):
    """The environment of the other loaders is not there."""

    def __str__(self) -> str:
        return f"there is no {self.args[0]}: `make bench-ingest-peers` makes that environment"


def interpreter() -> Path:
    """The Python of the other loaders. Raises PeersMissing."""
    python = VENV / "bin" / "python"
    if not python.exists():
        raise PeersMissing(str(python))
    return python


def versions() -> dict[str, str]:
    """The installed version of each package, by its name; of those that are there.

    Raises PeersMissing.
    """
    program = (
        "import importlib.metadata as m, sys\n"
        "for d in m.distributions():\n"
        "    if d.name in sys.argv[1:]: print(d.name, d.version)"
    )
    ran = subprocess.run(
        [str(interpreter()), "-c", program, *PACKAGES],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    return dict(sorted(tuple(line.split()) for line in ran.stdout.splitlines()))  # type: ignore[misc]  # pairs
