from __future__ import annotations

from pathlib import Path

import pytest

from epochgate.benchmarks import page
from epochgate.benchmarks.figures import Table
from epochgate.cli import main

TABLE = Table("events", "Events", ("", "a second"), (("plain", "1"),), "By hand.")


def test_a_measured_question_replaces_its_own_section_only(tmp_path: Path) -> None:
    file = tmp_path / "benchmarks.md"
    file.write_text(f"# Title\n{page.START}\n{page.END}\n## Licence\n")
    order = ("ingest", "events")
    page.write(file, {"events": page.section(TABLE, "a slow machine")}, order)
    page.write(file, {"ingest": "<!-- bench:ingest -->\nfast"}, order)
    page.write(file, {"known-files": "<!-- bench:known-files -->\nmany"}, (*order, "known-files"))
    page.write(file, {"events": page.section(TABLE, "a quick machine")}, (*order, "known-files"))
    text = file.read_text()
    assert text.startswith("# Title\n")
    assert text.endswith("\n## Licence\n")
    assert text.index("fast") < text.index("quick machine")
    assert "slow machine" not in text
    assert text.count("many") == 1
    assert "| plain | 1 |" in text


@pytest.mark.parametrize("text", ["", page.START, f"{page.END}\n{page.START}"])
def test_a_page_without_a_place_for_figures_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "benchmarks.md"
    file.write_text(text)
    with pytest.raises(page.NoPlaceForFigures, match="run without --write"):
        page.write(file, {"events": "new"}, ("events",))
    assert file.read_text() == text


def test_an_unknown_question_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "weather"]) == 2
    said = capsys.readouterr().err
    assert (
        "choose from ingest, crash, known-files, known-objects, sinks, recovery, events, scaling"
        in said
    )


def test_a_folder_without_the_page_is_named(tmp_path: Path) -> None:
    with pytest.raises(page.NoPlaceForFigures, match="run this in epochgate's own folder"):
        page.write(tmp_path / "benchmarks.md", {"events": "new"}, ("events",))
