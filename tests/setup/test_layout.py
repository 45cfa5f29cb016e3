"""The same DOT source gives the same bytes on every machine, with or without Graphviz and fonts."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from epochgate.diagrams import layout, stamp

SOURCE = f"""digraph valve {{
  graph [rankdir=LR, fontname="{layout.FONT}"]
  node [shape=box, fontname="{layout.FONT}"]
  edge [fontname="{layout.FONT}"]
  open -> marked [label=<<b>mark</b> [is newer]>]
  marked -> "closed for a checkpoint" [label="snapshot"]
}}"""


def test_what_the_machine_has_installed_does_not_change_the_svg(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn = layout.render(SOURCE, "svg", engine="bundled")
    (tmp_path / "fonts.conf").write_text("<fontconfig></fontconfig>")
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LC_ALL", "C")
    assert layout.render(SOURCE, "svg", engine="bundled") == drawn


def test_text_is_measured_with_the_pinned_font() -> None:
    drawn = layout.render(SOURCE, "svg", engine="bundled").decode()
    assert 'font-family="Roboto,Helvetica,Arial,sans-serif"' in drawn
    boxes = re.findall(r'<polygon fill="none" stroke="black" points="([^"]+)"', drawn)
    widths = []
    for box in boxes:
        across = [float(point.split(",")[0]) for point in box.split()]
        widths.append(round(max(across) - min(across), 2))
    # With another font, or with none, these are other numbers.
    assert widths == [54.0, 62.5, 163.75]


def test_a_png_repeats_byte_for_byte() -> None:
    first, second = layout.render_all([(SOURCE, "png"), (SOURCE, "png")], engine="bundled")
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_several_diagrams_come_back_in_their_order() -> None:
    svg, png, other = layout.render_all(
        [(SOURCE, "svg"), (SOURCE, "png"), ("digraph { lonely }", "svg")], engine="bundled"
    )
    assert (b"valve" in svg, png[1:4], b"lonely" in other) == (True, b"PNG", True)
    assert layout.render_all([], engine="bundled") == []


@pytest.mark.parametrize(
    "wrong", ["digraph { a -> ", "", "graph \x00", "digraph { a [label=<<b>] }"]
)
def test_a_source_that_is_not_dot_is_refused(wrong: str) -> None:
    with pytest.raises(layout.LayoutFailed, match="Graphviz refused a diagram"):
        layout.render(wrong, "svg", engine="bundled")


def test_the_diagram_that_failed_is_the_one_named() -> None:
    with pytest.raises(layout.LayoutFailed, match="digraph broken"):
        layout.render_all([(SOURCE, "svg"), ("digraph broken {", "svg")], engine="bundled")


def test_without_dot_on_path_the_bundled_engine_draws(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert layout.render(SOURCE, "svg") == layout.render(SOURCE, "svg", engine="bundled")
    with pytest.raises(layout.LayoutUnavailable, match="no program 'dot' on PATH"):
        layout.render(SOURCE, "svg", engine="system")


def test_the_dot_on_path_is_used_when_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dot = tmp_path / "dot"
    dot.write_text("#!/bin/sh\ncat >/dev/null\nprintf 'drawn with %s' \"$*\"\n")
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert b"-Tsvg" in layout.render(SOURCE, "svg")


def test_a_stamped_png_is_stale_as_soon_as_its_source_changes() -> None:
    png = layout.render(SOURCE, "png", engine="bundled")
    assert stamp.is_stale(png, SOURCE)
    stamped = stamp.stamp(png, SOURCE)
    assert not stamp.is_stale(stamped, SOURCE)
    assert stamp.is_stale(stamped, SOURCE + " ")
    assert stamp.stamp(stamped, SOURCE) == stamped
    with pytest.raises(stamp.NotPng, match="begins with"):
        stamp.is_stale(b"GIF89a", SOURCE)
