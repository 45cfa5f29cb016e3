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
        help="port on which the driver listens for its tasks, for a firewall that admits known "
        "ports only (default: any free one)",
    )
    parser.add_argument(
        "--wire",
        choices=("auto", "private", "insecure"),
        default="auto",
        help="encrypt the traffic between driver and tasks except on the loopback address (auto, "
        "the default), always (private), or never (insecure); see docs/security.md",
    )
