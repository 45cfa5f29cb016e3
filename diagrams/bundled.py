"""Draws diagrams with the Graphviz inside the wheel of pygraphviz; run as a script, in a child.

`epochgate.diagrams.layout` starts it with the path of a folder: it reads `diagrams.json`, a list of
[DOT sources, format], and writes `0.svg`, `1.png` and so on beside it. Of several sources for one
diagram it draws the first that is at most so wide and high as the file says, or else the last.
Beside an SVG stands how wide each text in it was laid out, as `0.json`. It imports nothing of
epochgate, so that it starts at once.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pygraphviz


def draw(folder: Path) -> None:
    """Draw what `diagrams.json` in `folder` lists, in order; pygraphviz's own errors pass."""
    wanted = json.loads((folder / "diagrams.json").read_text(encoding="utf-8"))
    for number, (sources, format) in enumerate(wanted["diagrams"]):
        for source in sources:
            graph = pygraphviz.AGraph(string=source)
            drawn = graph.draw(format="svg", prog="dot")
            if fits(drawn, *wanted["points_max"]):
                break
        if format == "svg":
            laid_out = json.loads(graph.draw(format="json", prog="dot"))
            (folder / f"{number}.json").write_text(json.dumps([*widths(laid_out)]), "utf-8")
        else:
            drawn = graph.draw(format=format, prog="dot")
        (folder / f"{number}.{format}").write_bytes(drawn)


def fits(svg: bytes, width_max: float, height_max: float) -> bool:
    """Return true if a drawing is within these bounds, in points."""
    size = re.search(rb'<svg width="(\d+)pt" height="(\d+)pt"', svg)
    return size is None or (int(size[1]) <= width_max and int(size[2]) <= height_max)


def widths(part: Any) -> Iterator[tuple[str, float, bool | None, float]]:
    """Each text of a diagram with its size, whether it is bold, and its width, in points; None
    where it is as bold as a text of another object, which is not told which.
    """
    if isinstance(part, list):
        for each in part:
            yield from widths(each)
    elif isinstance(part, dict):
        for name, value in part.items():
            if not name.endswith("ldraw_"):
                yield from widths(value)
                continue
            size, is_bold = 0.0, None
            for operation in value:
                kind = operation["op"]
                if kind == "F":
                    size = operation["size"]
                elif kind == "t":
                    is_bold = bool(operation["fontchar"] & 1)
                elif kind == "T":
                    # Graphviz escapes a backslash here, and not in the SVG.
                    text = operation["text"].replace("\\\\", "\\")
                    yield text, size, is_bold, operation["width"]


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
