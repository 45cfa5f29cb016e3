from __future__ import annotations

from pathlib import Path

import pytest

from epochgate.benchmarks import readme
from epochgate.benchmarks.figures import Table
from epochgate.cli import main

TABLE = Table("events", "Events", ("", "a second"), (("plain", "1"),), "By hand.")


def test_a_measured_question_replaces_its_own_section_only(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text(f"# Title\n{readme.START}\n{readme.END}\n## Licence\n")
    order = ("ingest", "events")
    readme.write(file, {"events": readme.section(TABLE, "a slow machine")}, order)
    readme.write(file, {"ingest": "<!-- bench:ingest -->\nfast"}, order)
    readme.write(file, {"events": readme.section(TABLE, "a quick machine")}, order)
    text = file.read_text()
    assert text.startswith("# Title\n")
    assert text.endswith("\n## Licence\n")
    assert text.index("fast") < text.index("quick machine")
    assert "slow machine" not in text
    assert "| plain | 1 |" in text


@pytest.mark.parametrize("text", ["", readme.START, f"{readme.END}\n{readme.START}"])
def test_a_readme_without_a_place_for_figures_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "README.md"
    file.write_text(text)
    with pytest.raises(readme.NoPlaceForFigures, match="run without --write"):
        readme.write(file, {"events": "new"}, ("events",))
    assert file.read_text() == text


def test_an_unknown_question_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "weather"]) == 2
    assert "choose from ingest, recovery, events, scaling" in capsys.readouterr().err


def test_an_installed_package_without_benchmarks_says_where_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("epochgate.commands.bench.find_spec", lambda _: None)
    assert main(["bench", "events"]) == 2
    assert "run `make bench` in a checkout" in capsys.readouterr().err
