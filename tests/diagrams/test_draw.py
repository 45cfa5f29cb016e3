"""`epochgate draw` draws, lists and checks; what is not fresh is named, with what to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.models import MACHINES

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def one(tmp_path: Path, capsys: Capture) -> Path:
    """A folder with the drawings of one machine."""
    folder = tmp_path / "shown"
    assert main(["draw", "request", "-o", str(folder)]) == 0
    assert capsys.readouterr().out == f"2 files in {folder}, 2 of them changed\n"
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the whole set."""
    folder = tmp_path_factory.mktemp("whole")
    assert main(["draw", "-o", str(folder)]) == 0
    return folder


def test_the_list_names_every_machine(capsys: Capture) -> None:
    assert main(["draw", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(MACHINES)


def test_what_is_fresh_is_not_written_again(one: Path, capsys: Capture) -> None:
    times = {path: path.stat().st_mtime_ns for path in one.iterdir()}
    assert main(["draw", "request", "-o", str(one)]) == 0
    assert "0 of them changed" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in one.iterdir()} == times
    assert main(["draw", "request", "-o", str(one), "--check"]) == 0


@pytest.mark.parametrize("suffix", [".svg", ".md"])
def test_a_stale_file_is_named_and_drawn_again(one: Path, suffix: str, capsys: Capture) -> None:
    path = one / f"request{suffix}"
    fresh = path.read_bytes()
    path.write_bytes(b"something else")
    assert main(["draw", "request", "-o", str(one), "--check"]) == 1
    told = capsys.readouterr()
    assert told.out == f"stale: {path}\n"
    assert told.err == f"run: epochgate draw request --output {one}\n"
    assert path.read_bytes() == b"something else"
    assert main(["draw", "request", "-o", str(one)]) == 0
    assert path.read_bytes() == fresh


def test_a_missing_file_is_named(one: Path, capsys: Capture) -> None:
    (one / "request.svg").unlink()
    assert main(["draw", "request", "-o", str(one), "--check"]) == 1
    assert capsys.readouterr().out == f"missing: {one / 'request.svg'}\n"


@pytest.mark.programs
def test_the_whole_set_has_an_overview_and_an_index(whole: Path, capsys: Capture) -> None:
    present = {path.name for path in whole.iterdir()}
    assert {"README.md", "overview.svg", "others.svg"} <= present
    assert {path.suffix for path in whole.iterdir()} == {".svg", ".md"}
    assert main(["draw", "-o", str(whole), "--check"]) == 0
    assert capsys.readouterr().out == f"{len(present)} files in {whole} are fresh\n"


@pytest.mark.programs
def test_an_orphan_is_named_and_never_removed(whole: Path, capsys: Capture) -> None:
    orphan = whole / "forgotten.svg"
    orphan.write_text("<svg/>")
    (whole / "notes.txt").write_text("not a diagram")
    assert main(["draw", "-o", str(whole), "--check"]) == 1
    told = capsys.readouterr()
    assert told.out == f"orphan: {orphan}\n"
    assert told.err == f"run: rm {orphan}\n"
    assert main(["draw", "-o", str(whole)]) == 0
    assert orphan.exists()
    orphan.unlink()


def test_an_index_that_is_not_ours_is_not_replaced(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "README.md").write_text("# My project\n")
    assert main(["draw", "-o", str(tmp_path)]) == 2
    assert "was not written by `epochgate draw`" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_formats_can_be_chosen(tmp_path: Path) -> None:
    assert main(["draw", "gateway", "task", "-o", str(tmp_path), "--format", "table,mermaid"]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["gateway.md", "gateway.mmd", "task.md", "task.mmd"]
    assert "![" not in (tmp_path / "gateway.md").read_text(encoding="utf-8")


def test_a_machine_of_ones_own_is_drawn(tmp_path: Path, capsys: Capture) -> None:
    machine = "tests.fsm.turnstile:Turnstile"
    assert main(["draw", machine, "-o", str(tmp_path), "--format", "svg,table"]) == 0
    assert "is paid" in (tmp_path / "Turnstile.md").read_text(encoding="utf-8")
    assert "unlocked" in (tmp_path / "Turnstile.svg").read_text(encoding="utf-8")
    capsys.readouterr()
    (tmp_path / "Turnstile.md").unlink()
    options = ["-o", str(tmp_path), "--format", "table"]
    assert main(["draw", machine, *options, "--check"]) == 1
    assert capsys.readouterr().err == (
        f"run: epochgate draw {machine} --output {tmp_path} --format table\n"
    )


def test_a_system_of_ones_own_is_drawn_with_who_triggers_whom(
    tmp_path: Path, capsys: Capture
) -> None:
    system = "tests.fsm.turnstile:Station"
    assert main(["draw", system, "-o", str(tmp_path), "--format", "mermaid,table"]) == 0
    names = sorted(path.stem for path in tmp_path.glob("*.mmd"))
    assert names == sorted(["overview", "turnstile"])
    assert "subgraph Station" in (tmp_path / "overview.mmd").read_text(encoding="utf-8")
    assert not (tmp_path / "README.md").exists()
    assert main(["draw", system, "-o", str(tmp_path / "whole")]) == 0
    index = (tmp_path / "whole" / "README.md").read_text(encoding="utf-8")
    assert "## Station" in index
    capsys.readouterr()
    assert main(["draw", system, "-o", str(tmp_path / "whole"), "--check"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gatewya"], "there is no machine 'gatewya'; choose from lifecycle, attempt"),
        (["no_such_module:Door"], "there is no module 'no_such_module'"),
        (
            ["tests.fsm.turnstile:Nothing"],
            "'Nothing' in module 'tests.fsm.turnstile' is no",
        ),
        (["tests.fsm.turnstile:Int"], "Int is a function; call it in the module"),
        (["tests.fsm.turnstile:Stile"], "no system of machines; it has Turnstile, Station"),
        (
            ["tests.fsm.turnstile:Station", "tests.fsm.turnstile:Station"],
            "two of the machines are named",
        ),
        ([":Door"], "names no module"),
        ([".door:Door"], "names no module"),
        (
            ["tests.fsm.turnstile:Turnstile", "tests.fsm.turnstile:Turnstile"],
            "two of the machines are named 'Turnstile'",
        ),
        (["--format", "jpeg"], "unknown format jpeg; choose from svg, table, png, dot, mermaid"),
        (["--format", ","], "no format given"),
    ],
)
def test_misuse_is_told_in_words(
    arguments: list[str], message: str, tmp_path: Path, capsys: Capture
) -> None:
    assert main(["draw", *arguments, "-o", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_to_is_told_in_words(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "file").write_text("in the way")
    output = str(tmp_path / "file" / "shown")
    assert main(["draw", "task", "-o", output, "--format", "dot"]) == 2
    assert "cannot be written to" in capsys.readouterr().err
