"""`python -m epochgate`: the same as the command `epochgate`."""

from __future__ import annotations

import sys

from epochgate.cli import main

if __name__ == "__main__":
    sys.exit(main())
