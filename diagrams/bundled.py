"""Draws diagrams with the Graphviz inside the wheel of pygraphviz; run as a script, in a child.

`epochgate.diagrams.layout` starts it with the path of a folder: it reads `diagrams.json`, a list of
[DOT source, format], and writes `0.svg`, `1.png` and so on beside it. It imports nothing of
epochgate, so that it starts at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pygraphviz


def draw(folder: Path) -> None:
    """Draw what `diagrams.json` in `folder` lists, in order; pygraphviz's own errors pass."""
    diagrams = json.loads((folder / "diagrams.json").read_text(encoding="utf-8"))
    for number, (source, format) in enumerate(diagrams):
        drawn = pygraphviz.AGraph(string=source).draw(format=format, prog="dot")
        (folder / f"{number}.{format}").write_bytes(drawn)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
