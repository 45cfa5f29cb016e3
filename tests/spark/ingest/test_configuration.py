"""A file of options says what the command line says, and the command line counts."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from epochgate.cli import main, parser
from epochgate.commands.ingest import expand, options_from
from epochgate.spark.ingest import IngestOptions
from tests.spark.ingest.simulated import write_source

GIVEN = [
    *("--checkpoint-every", "5s", "--follow", "--null", "", "--null", "N/A"),
    *("--delimiter", ";", "--quote", "", "--no-header", "--rows-per-second", "1.5"),
    *("--schema-hints", "a DECIMAL(10,2)", "--add-column", "f=file.path", "--add-column=file.row"),
    *("--on-bad-row", "rescue", "--modified-after", "2026-01-01", "--escape", "\\"),
    *("--checkpoint-dir", "über 'quoted' \"x\"", "--parallelism", "3", "--restart", "none"),
]


def options(given: list[str]) -> IngestOptions:
    arguments = parser().parse_args(["ingest", *expand(given)])
    arguments.source = arguments.source or arguments.source_named
    arguments.target = arguments.target or arguments.target_named
    return options_from(arguments)


def printed(capsys: pytest.CaptureFixture[str], *given: str) -> str:
    assert main(["ingest", *given, "--print-config"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("given", [[], GIVEN])
def test_what_is_printed_is_what_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str]
) -> None:
    text = printed(capsys, "in", "out", *given)
    (tmp_path / "job.toml").write_text(text)
    config = ["--config", str(tmp_path / "job.toml")]
    assert printed(capsys, *config) == text
    assert options(config) == options(["in", "out", *given])
    keys = tomllib.loads(text)
    assert (keys["source"], keys["target"]) == ("in", "out")


def test_the_command_line_counts(tmp_path: Path) -> None:
    lines = ['source = "in"', 'target = "a"', "parallelism = 2", 'null = ["x", "y"]']
    (tmp_path / "job.toml").write_text("\n".join(lines))
    config = f"--config={tmp_path}/job.toml"
    found = options([config])
    assert (found.source, found.target, found.null) == ("in", "a", ("x", "y"))
    found = options(["--null", "z", config, "--parallelism", "4", "other", "b"])
    assert (found.source, found.target) == ("other", "b")
    assert (found.parallelism, found.null) == (4, ("z",))


def test_flags_may_be_shortened(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text('target = "a"\nadd-column = ["file.path"]')
    for config in (["--conf", f"{tmp_path}/job.toml"], [f"--conf={tmp_path}/job.toml"]):
        found = options([*config, "--source", "in", "--add-col", "file.row"])
        assert (found.target, found.add_columns) == ("a", ("file.row",))


def test_keys_may_be_written_as_names_of_python_and_lists_as_lists(tmp_path: Path) -> None:
    text = 'source = "i"\ntarget = "o"\ncolumns = ["a", "b"]\nfile_size = "1MB"\nfollow = false\n'
    (tmp_path / "job.toml").write_text(text)
    found = options(["--config", str(tmp_path / "job.toml")])
    assert (found.columns, found.file_bytes, found.follow) == (("a", "b"), 1_000_000, False)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("delimeter = ';'", "there is no option 'delimeter'; did you mean 'delimiter'?"),
        ("follow = 'yes'", "follow is 'yes'; write true or false"),
        ("schema = true", "schema is True; write a text or a number"),
        ("config = 'x'", "there is no option 'config'"),
        ("x = [", "give a file of TOML that can be read"),
        ("on-bad-row = 'keep'", "job.toml: on-bad-row: invalid choice: 'keep'"),
        ("parallelism = 'many'", "job.toml: parallelism: invalid int value: 'many'"),
        ("target = 'out'", "SOURCE and TARGET are needed"),
    ],
)
def test_a_file_that_cannot_be_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    (tmp_path / "job.toml").write_text(text)
    assert main(["ingest", "--config", str(tmp_path / "job.toml")]) == 2
    assert told in capsys.readouterr().err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "in", "out", "--config", "none.toml"]) == 2
    assert "--config none.toml" in capsys.readouterr().err


def test_nothing_is_made_by_printing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_source(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    printed(capsys, str(tmp_path / "in"), str(tmp_path / "out"))
    assert sorted(tmp_path.rglob("*")) == before
