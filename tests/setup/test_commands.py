"""The Makefile and the linters refuse what they are meant to refuse, and say why."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("make") is None:
        pytest.skip("make is not installed; these tests run without it")
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def ruff(name: str, program: str) -> set[str]:
    """The rules that the text breaks when it stands in the file `name`."""
    options = ["--output-format=concise", "--no-cache", "--stdin-filename", name]
    ran = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *options, "-"],
        cwd=ROOT,
        input=program,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return set(re.findall(r"^\S+:\d+:\d+: (\w+\d+)", ran.stdout, re.MULTILINE))


def test_an_old_python_is_refused_with_the_way_on(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.8.18\nexit 1\n')
    old.chmod(0o755)
    ran = make(f"VENV={tmp_path}/venv", f"PYTHON={old}", "venv")
    assert ran.returncode == 2
    assert "needs Python 3.11 or newer" in ran.stderr
    assert "Python 3.8.18" in ran.stderr
    assert "make PYTHON=/path/to/python3.12 venv" in ran.stderr
    assert not (tmp_path / "venv").exists()


def test_a_missing_python_is_refused_with_the_way_on(tmp_path: Path) -> None:
    ran = make(f"VENV={tmp_path}/venv", "PYTHON=no-such-python", "venv")
    assert ran.returncode == 2
    assert "'no-such-python' is not on PATH" in ran.stderr


def test_help_names_every_command_of_the_readme() -> None:
    told = make("help").stdout
    for command in re.findall(r"^make \w+$", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert f"\n{command} " in f"\n{told}"


@pytest.mark.parametrize("folder", ["fsm", "models"])
@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "import random",
        "from threading import Lock",
        "import secrets",
        "import socket",
        "import datetime\n\nNOW = datetime.datetime.now()",
    ],
)
def test_the_protocol_may_not_meet_the_world(folder: str, line: str) -> None:
    program = f'"""A module."""\n\n{line}\n'
    assert "TID251" in ruff(f"{folder}/example.py", program)
    assert "TID251" not in ruff("runtime/example.py", program)


@pytest.mark.parametrize("name", ["fsm", "models", "runtime", "spark", "diagrams"])
@pytest.mark.parametrize("where", ["fsm", "models", "runtime", "tests", "epochgate"])
def test_a_bare_import_of_a_folder_is_refused(name: str, where: str) -> None:
    assert "TID251" in ruff(f"{where}/example.py", f'"""A module."""\n\nimport {name}\n')


def test_a_row_may_be_as_long_as_its_table_needs() -> None:
    program = f'"""A module."""\n\nROW = "{"x" * 120}"\n'
    assert "E501" not in ruff("models/example.py", program)
    assert "E501" in ruff("runtime/example.py", program)


def test_the_import_order_is_checked_on_every_folder() -> None:
    import grimp

    modules = grimp.build_graph("epochgate", cache_dir=None).modules
    for folder in ("diagrams", "fsm", "models", "runtime", "spark"):
        assert any(module.startswith(f"epochgate.{folder}.") for module in modules)
