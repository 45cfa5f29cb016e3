"""Numbers that a benchmark is asked for on its command line."""

from __future__ import annotations

import argparse


def at_least_one(text: str) -> int:
    """Return the number; ArgumentTypeError for none, and for less than 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


def not_negative(text: str) -> int:
    """Return the number; ArgumentTypeError for none."""
    return 0 if text == "0" else at_least_one(text)
