"""The exit code tells a claim that is broken from a run that failed, and rows from claims."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from epochgate.cli import COMMANDS, main
from epochgate.commands import check as command
from epochgate.exit_codes import (
    MEANINGS,
    OF_COMMANDS,
    WORST_FIRST,
    ExitCode,
    RunFailed,
    codes_of,
)
from epochgate.fsm.checker import Verdict, check
from tests.checker import small_systems as small

ROOT = Path(__file__).parents[2]
MODULE = "tests.checker.small_systems"
HOUSE = f"{MODULE}:House"


@pytest.mark.parametrize(
    ("system", "code"),
    [
        ("House", ExitCode.PASS),
        ("UnfairHouse", ExitCode.FAIL),
        ("Deadlocked", ExitCode.FAIL),
        ("NeverThere", ExitCode.VACUOUS),
        ("Unpremised", ExitCode.VACUOUS),
        ("Jammed", ExitCode.UNTAKEN),
    ],
)
def test_each_outcome_has_its_code(
    system: str, code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    jammed = type("Jammed", (small.Deadlocked,), {"may_end": None, "has_stopped": None})
    monkeypatch.setattr(small, "Jammed", jammed, raising=False)
    assert main(["check", f"{MODULE}:{system}"]) == code
    result = check(getattr(small, system))
    assert result.exit_code == code
    assert result.to_json()["exit_code"] == int(code)
    assert (result.verdict is Verdict.VACUOUS) == (code in {ExitCode.VACUOUS, ExitCode.UNTAKEN})


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RunFailed("the system gives no room"), "House: the system gives no room"),
        (MemoryError(), "House: there is no memory left; set --max-memory"),
        (OSError(28, "No space left on device"), "House: [Errno 28] No space left on device"),
        (ValueError("a fault"), "Traceback"),
        (AssertionError(), "House: AssertionError\n"),
    ],
)
def test_a_run_that_fails_is_no_claim_that_does(
    error: Exception,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    usual = command.checked

    def failing(name: str, *others: object) -> object:
        if name == HOUSE:
            raise error
        return usual(name, *others)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr(command, "checked", failing)
    assert main(["check", HOUSE]) == ExitCode.RUN_FAILED
    assert told in capsys.readouterr().err
    assert main(["check", HOUSE, f"{MODULE}:Counting"]) == ExitCode.RUN_FAILED
    assert main(["check", HOUSE, f"{MODULE}:UnfairHouse"]) == ExitCode.FAIL
    assert "UnfairHouse visitors=2: FAIL" in capsys.readouterr().out


def test_a_report_that_cannot_be_written_is_a_run_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "there" / "check.json"
    assert main(["check", HOUSE, "--json", str(place)]) == ExitCode.RUN_FAILED
    assert f"cannot be written: [Errno 2] No such file or directory: '{place}'" in (
        capsys.readouterr().err
    )


def test_too_little_address_space_is_a_run_that_failed() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    ran = subprocess.run(
        [sys.executable, "-m", "epochgate", "check", HOUSE, "--max-memory", "64G"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=limit,  # a limit of the child alone
    )
    assert ran.returncode == ExitCode.RUN_FAILED, ran.stderr
    assert "of address space" in ran.stderr


def test_help_and_docs_show_the_same_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--help"])
    shown = capsys.readouterr().out
    page = (ROOT / "docs/checking.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (\d+) \| (.*?) \|", page, re.MULTILINE))
    for code, meaning in MEANINGS.items():
        assert f"{code.value:3}  {meaning}" in shown
        assert rows[str(code.value)] == meaning
    assert {*WORST_FIRST} == {*ExitCode} - {ExitCode.MISUSE, ExitCode.INTERRUPTED}


def table_of_commands() -> str:
    rows = ["| command | code | when |", "|---|---|---|"]
    for name in COMMANDS:
        for code, meaning in OF_COMMANDS[name].items():
            rows.append(f"| `epochgate {name}` | {code} | {meaning} |")
    return "\n".join(rows)


def test_one_page_has_the_codes_of_all_commands() -> None:
    assert table_of_commands() in (ROOT / "docs/exit-codes.md").read_text("utf-8")


@pytest.mark.parametrize("command", sorted({*COMMANDS} - {"check"}))
def test_the_help_of_a_command_ends_with_its_codes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([command, "--help"])
    assert capsys.readouterr().out.rstrip().endswith(codes_of(command))
