"""The arguments about the network between driver and tasks."""

from __future__ import annotations

import argparse


def add_network(parser: argparse.ArgumentParser) -> None:
    """Declare where the driver listens for its tasks, and what others may read."""
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        metavar="PORT",
        help="on which the driver listens for its tasks, for a firewall that lets known ports "
        "through (default: any free one)",
    )
    parser.add_argument(
        "--wire",
        choices=("auto", "private", "insecure"),
        default="auto",
        help="what driver and tasks say to each other is encrypted unless it stays on the loopback "
        "address (default: auto), there too (private), or nowhere (insecure); see docs/security.md",
    )
