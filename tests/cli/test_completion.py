"""The scripts for shells complete commands, options, choices and paths, in a real shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from epochgate.cli import main

ASK = """
source {script}
compopt() {{ :; }}  # works within a completion alone
cd {folder}
COMP_WORDS=({words})
COMP_CWORD=$(({count} - 1))
COMP_LINE="{words}"
handler=$(complete -p epochgate | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$handler
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("completion") / "epochgate.bash"
    with pytest.MonkeyPatch.context() as patched, place.open("w") as file:
        patched.setattr("sys.stdout", file)
        assert main(["completion", "bash"]) == 0
    return place


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("epochgate ing", {"ingest"}),
        ("epochgate ingest --on-bad", {"--on-bad-row", "--on-bad-file"}),
        ("epochgate ingest --on-bad-row re", {"reject", "rescue"}),
        ("epochgate status land", {"landing"}),
        ("epochgate ingest land", {"landing"}),
    ],
)
def test_bash_completes(script: Path, tmp_path: Path, words: str, expected: set[str]) -> None:
    (tmp_path / "landing").mkdir()
    asked = ASK.format(script=script, folder=tmp_path, words=words, count=len(words.split()))
    ran = subprocess.run(
        ["bash", "-c", asked], capture_output=True, text=True, timeout=60, check=True
    )
    assert set(ran.stdout.split()) == expected, ran.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh", "powershell"])
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "class-archive" in capsys.readouterr().out


def test_a_shell_that_the_package_does_not_know_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import shtab

    monkeypatch.setattr(shtab, "SUPPORTED_SHELLS", ["bash"])
    assert main(["completion", "zsh"]) == 2
    assert "writes no script for zsh, only for bash" in capsys.readouterr().err
