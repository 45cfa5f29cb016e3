"""From DOT text to SVG or PNG bytes, with or without Graphviz installed.

Decides which Graphviz lays a diagram out and with which font; what is in it is its caller's.
Two engines exist. "system" is the `dot` on PATH. "bundled" is the Graphviz that the wheel of
pygraphviz carries, with the Roboto of the package font-roboto and no other font: both are pinned,
so the same source gives the same SVG, byte for byte, whatever the machine has installed. Committed
diagrams are therefore drawn with "bundled". A PNG repeats on one machine, but its pixels depend on
the processor's arithmetic: compare PNGs by the digest that `epochgate.diagrams.stamp` puts into
them.

Text widths come from the font, so a diagram names the font `FONT` and keeps to its characters:
Latin, Greek, Cyrillic and common punctuation, but no arrows and no mathematical signs; those become
boxes. The bundled engine runs in a child process, because fontconfig reads its settings once per
process and a fault in a C library should not end ours.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from epochgate.errors import EpochgateError, UsageError

Engine = Literal["auto", "bundled", "system"]
Format = Literal["svg", "png"]

FONT = "Roboto,Helvetica,Arial,sans-serif"
LAYOUT_TIMEOUT_S = 120.0

# What a child needs to start; anything else could change what it draws.
_KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")


class LayoutUnavailable(UsageError):
    """The engine asked for is not installed."""


class LayoutFailed(EpochgateError):
    """Graphviz did not draw the source: it is not DOT, or Graphviz itself failed."""


def render(dot_source: str, format: Format, *, engine: Engine = "auto") -> bytes:
    """Lay out one diagram and return the bytes of its SVG or PNG.

    "auto" takes the `dot` on PATH when there is one, else the bundled engine. Raises
    LayoutUnavailable when the engine is not installed, LayoutFailed when it refuses the source.
    """
    return render_all([(dot_source, format)], engine=engine)[0]


def render_all(diagrams: Sequence[tuple[str, Format]], *, engine: Engine = "auto") -> list[bytes]:
    """Lay out several diagrams, (source, format) each, and return their bytes in that order.

    The bundled engine draws all of them in one child process. Raises as `render` does.
    """
    if engine == "auto":
        engine = "system" if shutil.which("dot") else "bundled"
    if engine == "system":
        return [_render_by_system(source, format) for source, format in diagrams]
    return _render_by_bundled(diagrams)


def _render_by_system(source: str, format: Format) -> bytes:
    if importlib.util.find_spec("graphviz") is None:
        raise _unavailable("the package graphviz is not installed")
    import graphviz

    try:
        drawn: bytes = graphviz.pipe("dot", format, source.encode(), quiet=True)
    except graphviz.ExecutableNotFound as error:
        raise _unavailable("there is no program 'dot' on PATH") from error
    except graphviz.CalledProcessError as error:
        raise _failed(error.stderr.decode(errors="replace"), source) from error
    return drawn


def _render_by_bundled(diagrams: Sequence[tuple[str, Format]]) -> list[bytes]:
    if importlib.util.find_spec("pygraphviz") is None:
        raise _unavailable("the package pygraphviz is not installed")
    with tempfile.TemporaryDirectory(prefix="epochgate-layout-") as name:
        folder = Path(name)
        settings = folder / "fonts.conf"
        settings.write_text(_font_settings(_font_folder(), folder / "cache"), encoding="utf-8")
        (folder / "diagrams.json").write_text(json.dumps(list(diagrams)), encoding="utf-8")
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
            source = diagrams[min(undrawn, len(diagrams) - 1)][0]
            raise _failed(outcome.stderr.decode(errors="replace"), source)
        return [path.read_bytes() for path in drawn]


def _font_folder() -> Path:
    spec = importlib.util.find_spec("font_roboto")
    if spec is None or spec.origin is None:
        raise _unavailable("the package font-roboto is not installed")
    return Path(spec.origin).parent / "files"


def _font_settings(fonts: Path, cache: Path) -> str:
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig>\n'
        f"<dir>{escape(str(fonts))}</dir>\n<cachedir>{escape(str(cache))}</cachedir>\n"
        "</fontconfig>\n"
    )


def _unavailable(reason: str) -> LayoutUnavailable:
    return LayoutUnavailable(
        f"No diagram can be laid out: {reason}.\n"
        "Install the drawing packages, which need no Graphviz: pip install 'epochgate[draw]'"
    )


def _failed(message: str, source: str) -> LayoutFailed:
    opening = source.strip().splitlines()[:1]
    return LayoutFailed(
        f"Graphviz refused a diagram that begins {opening[0] if opening else 'with nothing'!r}.\n"
        f"It says: {message.strip() or 'nothing'}\n"
        "Look for an unescaped quotation mark or angle bracket in a label."
    )
