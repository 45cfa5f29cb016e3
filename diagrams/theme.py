"""The colours of pictures on light and on dark ground, and what gives a way its colour.

A picture is laid out in the colours for light ground; `dressed` lets it follow the reader's
`prefers-color-scheme`, on a transparent ground, and gives each text the width it was laid out with,
so that it fits its card whatever font the reader has. Colours never tell anything alone: lines of
failures are dashed, those of aborts dotted, and what is painted has a word beside it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

INK, SOFT = "#1f2933", "#52606d"
STATE_FILL, STATE_LINE = "#dceaf7", "#3e6f9e"
TERMINAL_FILL, TERMINAL_LINE = "#e8e6e1", "#6f675c"
CARD_FILL, CARD_LINE = "#fbfaf6", "#ddd8c9"
NORMAL, FAILURE, ABORT = "#3b5872", "#b3261e", "#7b3fa0"
ADDED, REMOVED, CHANGED, NEVER = "#0f5c26", "#9c1023", "#6b4400", "#843800"
ADDED_FILL, REMOVED_FILL = "#d7f0dd", "#fde0dd"
CHANGED_FILL, NEVER_FILL = "#fff0c2", "#ffe0bd"

DARK = {
    INK: "#e6edf3",
    SOFT: "#9fb0c0",
    STATE_FILL: "#17324a",
    STATE_LINE: "#6aa5dc",
    TERMINAL_FILL: "#33322f",
    TERMINAL_LINE: "#b5ab9c",
    CARD_FILL: "#1a2027",
    CARD_LINE: "#3d4650",
    NORMAL: "#8fb8dd",
    FAILURE: "#ff9a90",
    ABORT: "#d3adff",
    ADDED: "#84e3a2",
    REMOVED: "#ffa9a1",
    CHANGED: "#f5d06a",
    NEVER: "#ffbd80",
    ADDED_FILL: "#12361f",
    REMOVED_FILL: "#4a1b1f",
    CHANGED_FILL: "#3d300c",
    NEVER_FILL: "#46290c",
}
"""Each colour and the one that takes its place on dark ground."""

GROUNDS = (STATE_FILL, TERMINAL_FILL, CARD_FILL)
PAINTS = {
    "added": (ADDED, ADDED_FILL),
    "removed": (REMOVED, REMOVED_FILL),
    "changed": (CHANGED, CHANGED_FILL),
    "never": (NEVER, NEVER_FILL),
}
"""Paints of rows and states: the colour of the text, and of its ground."""
WAYS = {
    "normal": (NORMAL, "solid"),
    "failure": (FAILURE, "dashed"),
    "abort": (ABORT, "dotted"),
}
"""The colour and the style of the lines of each kind of way."""

_ABORTS = ("abort", "abandon", "cancel", "discard", "give", "revok")
_FAILURES = (
    *("broke", "crash", "dead", "declin", "error", "expire", "fail", "fault", "gone", "kill"),
    *("lose", "lost", "malform", "refus", "tamper", "unknown", "unreach"),
)


def way(*names: str) -> str:
    """Return the kind of a way by the words in its names: "failure", "abort" or "normal".

    >>> way("attempt_failed", "running"), way("give_up"), way("give_back")
    ('failure', 'abort', 'normal')
    """
    words = [word for name in names for word in name.lower().replace("give_back", "").split("_")]
    for kind, stems in (("failure", _FAILURES), ("abort", _ABORTS)):
        if any(word.startswith(stems) for word in words):
            return kind
    return "normal"


def dressed(svg: str, widths: Mapping[tuple[str, float, bool | None], float]) -> bytes:
    """Turn Graphviz's SVG into one for every ground and font; `widths` has the width of each text,
    by its size and whether it is bold, or None where that is not known.
    """
    svg = re.sub(r"<!DOCTYPE[^>]*>\n|<!--.*?-->\n", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<polygon fill="white" stroke="none"[^>]*/>\n', "", svg, count=1)
    svg = re.sub(r"<title>[^<]*</title>\n", "", svg)

    def fitted(found: re.Match[str]) -> str:
        attributes, size, text = found.groups()
        key = html.unescape(text).replace("\u00a0", " "), float(size)
        width = widths.get((*key, "bold" in attributes), widths.get((*key, None)))
        fit = "" if not width else f' textLength="{width:g}" lengthAdjust="spacingAndGlyphs"'
        return f"<text{attributes}{fit}>{text}</text>"

    svg = re.sub(r'<text([^>]*font-size="([\d.]+)"[^>]*)>([^<]+)</text>', fitted, svg)
    rules = "".join(
        f'[{part}="{light}"]{{{part}:{dark}}}'
        for light, dark in DARK.items()
        for part in ("fill", "stroke")
        if f'{part}="{light}"' in svg
    )
    style = f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>\n"
    return re.sub(r"(<svg[^>]*>\n)", lambda found: found[1] + style, svg, count=1).encode()
