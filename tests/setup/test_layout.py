"""The same DOT source gives the same bytes on every machine, with or without Graphviz and fonts."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from epochgate.diagrams import layout

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
    drawn = layout.render(SOURCE, "svg")
    (tmp_path / "fonts.conf").write_text("<fontconfig></fontconfig>")
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LC_ALL", "C")
    assert layout.render(SOURCE, "svg") == drawn


def test_text_is_measured_with_the_pinned_font() -> None:
    drawn = layout.render(SOURCE, "svg").decode()
    assert 'font-family="Roboto,Helvetica,Arial,sans-serif"' in drawn
    boxes = re.findall(r'<polygon fill="none" stroke="black" points="([^"]+)"', drawn)
    widths = []
    for box in boxes:
        across = [float(point.split(",")[0]) for point in box.split()]
        widths.append(round(max(across) - min(across), 2))
    # With another font, or with none, these are other numbers.
    assert widths == [54.0, 62.5, 163.75]


def test_a_png_repeats_byte_for_byte() -> None:
    first, second = layout.render_all([([SOURCE], "png"), ([SOURCE], "png")])
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_several_diagrams_come_back_in_their_order() -> None:
    svg, png, other = layout.render_all(
        [([SOURCE], "svg"), ([SOURCE], "png"), (["digraph { lonely }"], "svg")]
    )
    assert (b"snapshot" in svg, png[1:4], b"lonely" in other) == (True, b"PNG", True)
    assert layout.render_all([]) == []


@pytest.mark.parametrize(
    "wrong", ["digraph { a -> ", "", "graph \x00", "digraph { a [label=<<b>] }"]
)
def test_a_source_that_is_not_dot_is_refused(wrong: str) -> None:
    with pytest.raises(layout.LayoutFailed, match="Graphviz refused a diagram"):
        layout.render(wrong, "svg")


def test_the_diagram_that_failed_is_the_one_named() -> None:
    with pytest.raises(layout.LayoutFailed, match="digraph broken"):
        layout.render_all([([SOURCE], "svg"), (["digraph broken {"], "svg")])


def test_without_the_packages_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    for package in ("pygraphviz", "font_roboto"):
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name, gone=package: None if name == gone else find_spec(name),
        )
        with pytest.raises(
            layout.LayoutUnavailable, match=r"pip install 'epochgate-proving\[draw\]'"
        ):
            layout.render(SOURCE, "svg")


def test_the_first_source_that_fits_is_drawn() -> None:
    wide = "digraph wide { rankdir=LR " + "".join(f"a{n} -> a{n + 1};" for n in range(20)) + "}"
    narrow, small = wide.replace("LR", "TB"), "digraph small { a -> b }"
    assert layout.render_all([([wide, small, narrow], "svg")]) == [layout.render(small, "svg")]
    assert layout.render_all([([wide, wide], "svg")]) == [layout.render(wide, "svg")]
