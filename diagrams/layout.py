"""From DOT text to SVG or PNG bytes, without Graphviz installed.

Decides which of several sources of one diagram fits a page, and with which Graphviz and font it is
laid out; what is in it is its caller's. The Graphviz is the one that the wheel of pygraphviz
carries, with the Roboto of the package font-roboto and no other font: both are pinned, so the same
source gives the same SVG, byte for byte, whatever the machine has installed. A PNG repeats on one
machine, but its pixels depend on the processor's arithmetic.

Text widths come from the font, so a diagram names the font `FONT` and keeps to its characters:
Latin, Greek, Cyrillic and common punctuation, but no arrows and no mathematical signs; those become
boxes. Graphviz runs in a child process, because fontconfig reads its settings once per process and
a fault in a C library should not end ours.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from epochgate.diagrams.theme import dressed
from epochgate.errors import EpochgateError, UsageError

Format = Literal["svg", "png"]
Diagram = tuple[Sequence[str], Format]
"""The sources of one diagram, of which the first that fits is drawn, and the format."""

FONT = "Roboto,Helvetica,Arial,sans-serif"
POINTS_MAX = 660, 1500
"""The bounds of a picture: 880 pixels, the width of a page of a code host, by 2000."""
LAYOUT_TIMEOUT_S = 300.0

# What a child needs to start; anything else could change what it draws.
_KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")


class LayoutUnavailable(UsageError):
    """A package that writes, measures or lays out a diagram is not installed."""


class LayoutFailed(EpochgateError):
    """Graphviz did not draw the source: it is not DOT, or Graphviz itself failed."""


def render(dot_source: str, format: Format) -> bytes:
    """Lay out one diagram and return the bytes of its SVG or PNG. Raises as `render_all` does."""
    return render_all([([dot_source], format)])[0]


def render_all(diagrams: Sequence[Diagram]) -> list[bytes]:
    """Lay out several diagrams in one child process, and return their bytes in that order.

    Raises LayoutUnavailable when a package is missing, LayoutFailed when Graphviz refuses a source.
    """
    if importlib.util.find_spec("pygraphviz") is None:
        raise unavailable("the package pygraphviz, which has Graphviz in it, is not installed")
    fonts = _font_folder()
    with tempfile.TemporaryDirectory(prefix="epochgate-layout-") as name:
        folder = Path(name)
        settings = folder / "fonts.conf"
        settings.write_text(_font_settings(fonts, folder / "cache"), encoding="utf-8")
        wanted = {"points_max": POINTS_MAX, "diagrams": list(diagrams)}
        (folder / "diagrams.json").write_text(json.dumps(wanted), encoding="utf-8")
        kept = {key: os.environ[key] for key in _KEPT_VARIABLES if key in os.environ}
        try:
            outcome = subprocess.run(
                [sys.executable, "-P", str(Path(__file__).with_name("bundled.py")), name],
                env=kept | {"FONTCONFIG_FILE": str(settings), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LAYOUT_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LayoutFailed(
                f"Graphviz did not lay out {len(diagrams)} diagrams in {LAYOUT_TIMEOUT_S:.0f} s; "
                "a diagram this large says little, so draw fewer machines at once."
            ) from error
        drawn = [folder / f"{number}.{format}" for number, (_, format) in enumerate(diagrams)]
        if outcome.returncode != 0:
            undrawn = next(i for i, path in enumerate([*drawn, folder / "-"]) if not path.exists())
            source = diagrams[min(undrawn, len(diagrams) - 1)][0][0]
            raise _failed(outcome.stderr.decode(errors="replace"), source)
        return [_finished(path) for path in drawn]


def _finished(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix != ".svg":
        return content
    texts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return dressed(content.decode(), {(t, size, bold): width for t, size, bold, width in texts})


def _font_folder() -> Path:
    spec = importlib.util.find_spec("font_roboto")
    if spec is None or spec.origin is None:
        raise unavailable("the package font-roboto is not installed")
    return Path(spec.origin).parent / "files"


def _font_settings(fonts: Path, cache: Path) -> str:
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig>\n'
        f"<dir>{escape(str(fonts))}</dir>\n<cachedir>{escape(str(cache))}</cachedir>\n"
        "</fontconfig>\n"
    )


def unavailable(reason: str) -> LayoutUnavailable:
    """The error for a package that is not installed, with what to install."""
    return LayoutUnavailable(
        f"No diagram can be laid out: {reason}.\n"
        "Install what draws (no Graphviz is needed): pip install 'epochgate-proving[draw]'"
    )


def _failed(message: str, source: str) -> LayoutFailed:
    opening = source.strip().splitlines()[:1]
    return LayoutFailed(
        f"Graphviz refused a diagram that begins {opening[0] if opening else 'with nothing'!r}.\n"
        f"It says: {message.strip() or 'nothing'}\n"
        "Look for an unescaped quotation mark or angle bracket in a label."
    )
