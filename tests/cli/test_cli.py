"""The command line answers quickly, explains itself, and turns errors into exit codes."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import epochgate
from epochgate import cli, console
from epochgate.errors import EpochgateError, NegativeResult, UsageError

ROOT = Path(__file__).parents[2]


def epochgate_process(*arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "epochgate", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


class Stand:
    """A command that does what a test wants, in the place of a module."""

    HELP, DESCRIPTION, EPILOG = "for a test", "", ""

    def __init__(self, run: Callable[[], int]) -> None:
        self._run = run

    def declare(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int:
        return self._run()


def raising(error: BaseException) -> Callable[[], int]:
    def run() -> int:
        raise error

    return run


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], int]], int]:
    def run_with(run: Callable[[], int]) -> int:
        monkeypatch.setattr(cli, "COMMANDS", ("stand",))
        monkeypatch.setattr(cli, "command", lambda name: Stand(run))
        return cli.main(["stand"])

    return run_with


def test_the_version_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert epochgate.__version__ == project["version"]
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"epochgate {epochgate.__version__}\n"


def test_help_lists_every_command_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    told = capsys.readouterr().out
    assert "examples:" in told
    for name in cli.COMMANDS:
        assert f"\n    {name}" in told


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == 0
    told = capsys.readouterr().out
    assert f"usage: epochgate {name}" in told
    assert "examples:" in told


def test_no_command_is_misuse_and_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "commands:" in captured.err


def test_an_unknown_command_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["dance"]) == 2
    assert "invalid choice: 'dance'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [(EpochgateError("it broke"), 1), (NegativeResult("no"), 1), (UsageError("not so"), 2)],
)
def test_an_error_on_purpose_is_one_message_without_a_traceback(
    stand: Callable[[Callable[[], int]], int],
    capsys: pytest.CaptureFixture[str],
    error: EpochgateError,
    code: int,
) -> None:
    assert stand(raising(error)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"epochgate stand: {error}\n"


def test_a_command_decides_its_exit_code(stand: Callable[[Callable[[], int]], int]) -> None:
    assert stand(lambda: 1) == 1


def test_an_interrupt_is_130(
    stand: Callable[[Callable[[], int]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert stand(raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == "epochgate stand: interrupted\n"


def test_a_fault_of_epochgate_keeps_its_traceback(
    stand: Callable[[Callable[[], int]], int],
) -> None:
    with pytest.raises(ZeroDivisionError):
        stand(raising(ZeroDivisionError()))


def test_the_module_runs_as_a_command() -> None:
    assert epochgate_process("--version").stdout == f"epochgate {epochgate.__version__}\n"
    assert epochgate_process().returncode == 2


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from epochgate.cli import main; main(['--help']);"
        "print(sorted({'pyspark', 'pyarrow', 'pandas', 'transitions', 'rich', 'hypothesis',"
        " 'shtab'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == "[]"


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("files") as bars:
        task = bars.add_task("reading", total=2)
        bars.advance(task, 2)
    console.note("[bold]now[/bold]")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert not console.is_interactive()


def test_a_choice_that_there_is_not_is_told_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["igest", "in", "out"]) == 2
    assert "did you mean ingest?" in capsys.readouterr().err
    assert cli.main(["ingest", "in", "out", "--on-bad-row", "rejct"]) == 2
    assert "did you mean reject?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "command", "told"),
    [
        (["ingest", "in", "out", "--paralelism", "3"], "ingest", "did you mean --parallelism?"),
        (["control", "set", "store", "one", "a=1", "--jsn"], "control", "did you mean --json?"),
        (["status", "out", "--colour"], "status", "unrecognized arguments: --colour\n"),
        (["status", "out", "more"], "status", "unrecognized arguments: more\n"),
    ],
)
def test_what_a_command_does_not_know_is_told_below_its_own_usage(
    given: list[str], command: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(given) == 2
    shown = capsys.readouterr().err
    assert f"epochgate {command}: error: unrecognized arguments" in shown
    assert told in shown
