"""Each program of README and docs runs as it is copied, in a folder that is empty."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import epochgate
from tests.shown import PAGES, ROOT, blocks
from tests.test_readme import run

OTHERWISE = {
    "docs/steering.md": "how many batches run depends on the machine",
    "docs/whole-job.md": "and so does the number of checkpoints",
    "docs/checking.md": "shown is the output of `epochgate check`, which test_readme.py compares",
}
SLOW = re.compile("pyspark|epochgate.spark|certify_sink")
FILE = re.compile(r"\A# (\w+\.py)\n")


@dataclass
class Shown:
    """A program of a page: a block that defines what it uses, and blocks that go on from it."""

    page: str
    line: int
    text: str
    output: str
    """The output that the page shows behind the block."""

    files: dict[str, str] = field(default_factory=dict)
    """Modules that the page shows before it, and names in their first line."""

    parts: list[tuple[int, str]] = field(default_factory=list)
    """The lines and texts of its blocks."""

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str:
        """The name of its module, in its first line."""
        named = FILE.match(self.text)
        return named[1] if named else ""

    def text_before(self, line: int) -> str:
        """The module as a reader has it who is at this line of its page."""
        return "\n\n".join(text for begun, text in self.parts if begun < line)


def blocks_of(page: str, kind: str) -> list[tuple[int, str, str]]:
    """The line, text and shown output of each block."""
    return [(one.line, dedent(one.text), one.output) for one in blocks(page) if one.kind == kind]


def bound(text: str) -> set[str]:
    """The names that a program defines."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def lacking(texts: list[str], folder: Path) -> dict[int, set[str]]:
    """The names that the programs use and do not define, by the number of the program."""
    for number, text in enumerate(texts):
        (folder / f"{number}.py").write_text(text, "utf-8")
    options = ["--isolated", "--no-cache", "--select=F821", "--output-format=json"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *options, str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    missing: dict[int, set[str]] = {}
    for one in found:
        name = one["message"].split("`")[1] if one["code"] == "F821" else one["message"]
        missing.setdefault(int(Path(one["filename"]).stem), set()).add(name)
    return missing


def programs() -> list[Shown]:
    found = [(page, *block) for page in PAGES for block in blocks_of(page, "python")]
    with tempfile.TemporaryDirectory() as folder:
        goes_on = lacking([text for _, _, text, _ in found], Path(folder))
    shown: list[Shown] = []
    for number, (page, line, text, output) in enumerate(found):
        before = [one for one in shown if one.page == page]
        names = goes_on.get(number, set())
        known = [len(names & bound(one.text)) for one in before]
        if any(known):
            begun = max(zip(known, before, strict=True), key=lambda pair: pair[0])[1]
            begun.text += f"\n\n{text}"
            begun.output += output
            begun.parts.append((line, text))
            continue
        files = {one.file: one.text for one in before if one.file}
        shown.append(Shown(page, line, text, output, files, [(line, text)]))
    return shown


PROGRAMS = programs()


def shown_programs() -> list[Any]:
    marks = [pytest.mark.programs, pytest.mark.spark]
    return [
        pytest.param(one, id=one.name, marks=marks if SLOW.search(one.text) else [])
        for one in PROGRAMS
    ]


@pytest.mark.parametrize("shown", shown_programs())
def test_a_program_of_a_page_runs(shown: Shown, tmp_path: Path) -> None:
    for name, text in shown.files.items():
        (tmp_path / name).write_text(text, "utf-8")
    text = shown.text
    if "\ndef test_" in text:
        text += "\n\nimport sys, pytest\n"
        text += "if __name__ == '__main__':\n    sys.exit(pytest.main(['-q', __file__]))\n"
    told = run(text, tmp_path, timeout_s=200)
    if shown.page not in OTHERWISE and "\ndef test_" not in text:
        assert [line for line in shown.output.splitlines() if line not in told.splitlines()] == []


@pytest.mark.programs
@pytest.mark.spark
def test_the_messy_delivery_becomes_the_tables_that_are_shown(tmp_path: Path) -> None:
    page = "docs/ingest.md"
    (tmp_path / "landing").mkdir()
    for name, kind in (("landing/monday.csv", "csv"), ("orders.toml", "toml")):
        _, text, _ = blocks_of(page, kind)[0]
        (tmp_path / name).write_text(text, "utf-8")
    command = [sys.executable, "-m", "epochgate", "ingest", "--config", "orders.toml", "--quiet"]
    assert subprocess.run(command, cwd=tmp_path, timeout=120, check=False).returncode == 3
    shown = (ROOT / page).read_text("utf-8").replace("/srv/", f"{tmp_path}/")
    rows = [row for name in ("orders", "orders.rejected") for row in _rows(tmp_path / name)]
    assert len(rows) == 4
    for row in rows:
        assert f"| {' | '.join(row)} |".replace("|  |", "| |") in shown


def _rows(table: Path) -> list[list[str]]:
    """Its rows as cells of the page: JSON and raw text as code."""
    cells = []
    for row in epochgate.read(str(table)).drop_columns("checkpoint").to_pylist():
        row["at"] = f"{row['at']:%H:%M UTC}" if "at" in row else None
        code = {key: f"`{row[key]}`" for key in ("_rescued", "raw") if row.get(key)}
        known = {key: value for key, value in (row | code).items() if key != "at" or value}
        cells.append(["" if one is None else str(one) for one in known.values()])
    return cells


@pytest.mark.parametrize("page", PAGES)
def test_a_fragment_of_a_page_can_be_read(page: str) -> None:
    for line, text, _ in blocks_of(page, "py"):
        try:
            ast.parse(text)
        except SyntaxError as error:
            pytest.fail(f"{page}:{line + (error.lineno or 0)}: {error}")
