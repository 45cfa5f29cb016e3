"""How much memory a search may take without `max_memory`."""

from __future__ import annotations

from pathlib import Path

USABLE_SHARE = 0.75
UNKNOWN_BYTES = 4 << 30
"""Where the system does not tell what is free."""


def usable_bytes() -> int:
    """A share of the memory that is free now."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return UNKNOWN_BYTES
    free = next((line for line in lines if line.startswith("MemAvailable:")), None)
    return int(int(free.split()[1]) * 1024 * USABLE_SHARE) if free else UNKNOWN_BYTES
