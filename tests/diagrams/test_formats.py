"""Each format is well formed, shows every row with its reason, and repeats byte for byte."""

from __future__ import annotations

import importlib.util
import os
import re
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from epochgate.diagrams import theme
from epochgate.diagrams.collection import SUFFIXES, Collection
from epochgate.diagrams.description import Description, describe
from epochgate.diagrams.layout import POINTS_MAX, LayoutUnavailable, render
from epochgate.diagrams.mermaid import machine_mermaid, safe
from epochgate.diagrams.overview import overview_mermaid
from epochgate.diagrams.picture import forms
from epochgate.diagrams.table import machine_table
from epochgate.fsm import STAY, Ignore, Machine, Row
from epochgate.models import MACHINES, Job, TaskSystem
from tests.fsm.turnstile import Turnstile, declared

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "diagrams" / "generated"
ALL = describe({**MACHINES, "turnstile": Turnstile})


def is_free(self: Machine) -> bool:
    return True


NASTY = declared(
    "Nasty",
    {
        "STATES": ("a", "b"),
        "INITIAL": "a",
        "ROWS": (
            Row("go", "a", "b", "is_free", None, 'a <b> & "c"; d: e | f \\ #g {h} -> [i]'),
            Row("back", "b", "a", None, None, "é, ü and ß"),
            Ignore("back", "a", None, "pipes | break tables"),
            Row("stay", "a", STAY, None, None, "x"),
        ),
        "is_free": is_free,
    },
)
DRAWN = describe({"turnstile": Turnstile, "nasty": NASTY})


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    Collection(DRAWN, formats=SUFFIXES).write(folder)
    return folder


@pytest.mark.parametrize("name", ["turnstile", "nasty"])
def test_the_svg_is_xml_with_the_text_of_its_states(drawn: Path, name: str) -> None:
    root = ElementTree.parse(drawn / f"{name}.svg").getroot()
    found = [element for element in root.iter() if element.tag.endswith("text")]
    texts = {(element.text or "").strip() for element in found}
    machine = DRAWN[name]
    assert set(machine.states) <= texts


@pytest.mark.parametrize("name", ["turnstile", "nasty"])
def test_the_png_is_large_enough_to_read(drawn: Path, name: str) -> None:
    content = (drawn / f"{name}.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert width > 200
    assert height > 200


@pytest.mark.parametrize("name", ["turnstile", "nasty"])
def test_the_dot_is_read_by_graphviz(drawn: Path, name: str) -> None:
    import pygraphviz

    graph = pygraphviz.AGraph(string=(drawn / f"{name}.dot").read_text(encoding="utf-8"))
    machine = DRAWN[name]
    assert set(machine.states) <= set(graph.nodes())


def test_no_name_is_read_as_a_port_a_tag_an_escape_or_another_node() -> None:
    import pygraphviz

    names = (
        *("a: b", 'say "x"\\', "<b>bold</b>", "\\N and \\\\", "node", "é"),
        *("the start", "passage 0", "the shared rows"),
    )
    rows = tuple(
        Row("go", (here,), there, None, None, "by \\E")
        for here, there in zip(names, (*names[1:], names[0]), strict=True)
    )
    odd = replace(DRAWN["nasty"], name='<n>: "\\', states=names, initial=names[0], rows=rows)
    source = forms(odd)[0]
    graph = pygraphviz.AGraph(string=source)
    assert len(graph.nodes()) == 1 + 2 * len(names)
    assert len(graph.edges()) == 1 + 2 * len(names)
    assert not [edge for edge in graph.edges() if edge.attr["headport"] or edge.attr["tailport"]]
    texts = ElementTree.fromstring(render(source, "svg")).itertext()
    shown = [text.strip() for text in texts]
    assert {odd.name, *names, "by \\E"} <= {*shown}
    assert shown.count("by \\E") == len(names)


@pytest.mark.parametrize("package", ["graphviz", "pygraphviz", "font_roboto"])
def test_without_its_packages_only_pictures_are_refused(
    package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    with pytest.raises(LayoutUnavailable, match=r"pip install 'epochgate-proving\[draw\]'"):
        Collection(DRAWN, [Job]).write(tmp_path)
    assert Collection(DRAWN, [Job], formats=["table", "mermaid"]).write(tmp_path) == 5


STATE_LINES = (
    r"stateDiagram-v2",
    r'  state "[^"]+" as s\d+',
    r"  s\d+ : [^:;]+",
    r"  (s\d+|\[\*\]) --> (s\d+|\[\*\])( : [^:;]+)?",
    r"  note right of s\d+",
    r"    [^:;]+",
    r"  end note",
)


@pytest.mark.parametrize("machine", [*ALL.values(), DRAWN["nasty"]])
def test_the_mermaid_keeps_to_its_grammar(machine: Description) -> None:
    for line in machine_mermaid(machine).splitlines():
        plain = re.sub(r"#\d\d;", "", line)
        assert any(re.fullmatch(pattern, plain) for pattern in STATE_LINES), line


def test_the_mermaid_of_the_overview_keeps_to_its_grammar() -> None:
    lines = overview_mermaid((Job, TaskSystem)).splitlines()
    assert lines[0] == "flowchart TB"
    patterns = (
        r"  subgraph \w+",
        r'    \w+\(\["[\w ]+"\]\)',
        r'    \w+ -->\|"[\w ,]+"\| \w+',
        r"  end",
    )
    assert not [x for x in lines[1:] if not any(re.fullmatch(p, x) for p in patterns)]


@pytest.mark.parametrize("machine", [*ALL.values(), DRAWN["nasty"]])
def test_each_table_has_as_many_cells_in_every_line(machine: Description) -> None:
    widths = []
    for block in machine_table(machine).split("\n\n"):
        lines = block.splitlines()
        if lines[0].startswith("| "):
            widths += [{line.replace("\\|", "").count("|") for line in lines}]
    assert widths == [{7}, {len(machine.states) + 2}]


@pytest.mark.parametrize("machine", ALL.values())
def test_guards_actions_and_reasons_are_shown(machine: Description) -> None:
    table, mermaid = machine_table(machine), machine_mermaid(machine)
    words = set(re.sub(r"<[^>]*>|&\w+;", " ", forms(machine)[0]).split())
    for row in machine.rows:
        assert row.because in table
        assert all(f"`{name}`" in table for name in (*row.conditions, *row.unless, *row.actions))
        if not row.is_ignored:
            assert safe(row.because) in mermaid
            assert set(re.findall(r"\w{4,}", row.because)) <= {w.strip(".,:;") for w in words} | {
                part for word in words for part in re.findall(r"\w+", word)
            }


@pytest.mark.programs
def test_the_same_rows_give_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-m", "epochgate", "draw", "request", "-o", str(tmp_path / seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            timeout=100,
            check=True,
        )
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert names == ["request.md", "request.svg"]
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def luminance(colour: str) -> float:
    """Relative, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


ON_CARDS = ("INK", "SOFT", "NORMAL", "FAILURE", "ABORT")


def contrast(one: str, other: str) -> float:
    """That of two colours, as WCAG 2 defines it."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def shown(colour: str, is_dark: bool) -> str:
    return theme.DARK[colour] if is_dark else colour


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("name", ON_CARDS)
def test_what_is_written_can_be_read_on_every_ground(name: str, is_dark: bool) -> None:
    page = "#0d1117" if is_dark else "#ffffff"
    grounds = [page, *(shown(ground, is_dark) for ground in theme.GROUNDS)]
    ink = shown(getattr(theme, name), is_dark)
    assert min(contrast(ink, ground) for ground in grounds) >= 4.5, "WCAG 2, level AA"


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("paint", theme.PAINTS)
def test_what_is_painted_can_be_read(paint: str, is_dark: bool) -> None:
    ink, fill = (shown(colour, is_dark) for colour in theme.PAINTS[paint])
    inks = [ink, *(shown(getattr(theme, name), is_dark) for name in ("INK", "SOFT"))]
    assert min(contrast(each, fill) for each in inks) >= 4.5, "WCAG 2, level AA"


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("line", [theme.STATE_LINE, theme.TERMINAL_LINE])
def test_lines_stand_out_from_the_page(line: str, is_dark: bool) -> None:
    page = "#0d1117" if is_dark else "#ffffff"
    assert contrast(shown(line, is_dark), page) >= 3, "WCAG 2, level AA, of what is no text"


@pytest.mark.parametrize("name", ["turnstile", "nasty"])
def test_the_svg_fits_the_ground_and_the_font_of_its_reader(drawn: Path, name: str) -> None:
    text = (drawn / f"{name}.svg").read_text(encoding="utf-8")
    assert "@media (prefers-color-scheme:dark)" in text
    assert 'fill="white"' not in text
    assert text.count("<text") == text.count('lengthAdjust="spacingAndGlyphs"') > 10
    colours = set(re.findall(r'(?:fill|stroke)="(#[^"]+)"', text))
    assert colours <= theme.DARK.keys()


@pytest.mark.parametrize("path", sorted(GENERATED.glob("*.svg")), ids=lambda path: path.stem)
def test_a_committed_picture_is_read_on_a_page_of_880_pixels(path: Path) -> None:
    size = re.search(r'<svg width="(\d+)pt" height="(\d+)pt"', path.read_text(encoding="utf-8"))
    assert size is not None
    assert int(size[1]) <= POINTS_MAX[0]
    assert int(size[2]) <= POINTS_MAX[1]
