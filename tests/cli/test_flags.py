"""Each option that a message tells the reader to type exists."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from epochgate.cli import COMMANDS, parser

ROOT = Path(__file__).parents[2]
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
OF_OTHERS = {
    "--epochgate-effort": "pytest's, by the plugin",
    "--epochgate-replay": "pytest's, by the plugin",
    "--epochgate-rows": "pytest's, by the plugin",
    "--epochgate-seed": "pytest's, by the plugin",
    "--epochgate-whole": "pytest's, by the plugin",
    "--hypothesis-seed": "pytest's, by the plugin of Hypothesis",
    "--force-reinstall": "pip's",
    "--show-toplevel": "git's",
    "--unshallow": "git's",
    "--verify": "git's",
    "--add-modules": "java's",
    "--add-opens": "java's",
    "--conf": "spark-submit's",
    "--config": "of Flink's scripts, in a command that a benchmark runs",
    "--job-classname": "of Flink's scripts, in a command that a benchmark runs",
    "--rounds": "of `python -m epochgate.benchmarks.flink`",
    "--subtasks": "of `python -m epochgate.benchmarks.flink`",
    "--install": "of a package manager, in a command that a benchmark runs",
    "--yes": "of a package manager, in a command that a benchmark runs",
}
INGESTING = ("spark/files", "spark/ingest", "spark/parquet_sink")
"""Whose messages reach people who typed `epochgate ingest`."""


@cache
def flags_of(command: str) -> set[str]:
    """The options that one command knows, `--help` included."""
    (subparsers,) = (
        action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    chosen = subparsers.choices[command]
    return {option for action in chosen._actions for option in action.option_strings}


def messages(*folders: str) -> Iterator[tuple[str, str]]:
    """Every text in the package's code, with where it stands."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def named(*folders: str) -> dict[str, set[str]]:
    """Each flag that a text names, and where."""
    found: dict[str, set[str]] = {}
    for place, text in messages(*folders):
        for flag in FLAG.findall(text):
            found.setdefault(flag, set()).add(place)
    return found


def test_every_flag_that_a_text_names_is_one_of_a_command() -> None:
    known = {"--version"}.union(*map(flags_of, COMMANDS))
    everywhere = named("epochgate", "spark", "runtime", "fsm", "models", "diagrams")
    assert {flag: at for flag, at in everywhere.items() if flag not in known | {*OF_OTHERS}} == {}
    assert len(everywhere) > 40


def test_messages_about_files_name_flags_of_the_command_that_reads_them() -> None:
    told = named(*INGESTING)
    assert {flag: at for flag, at in told.items() if flag not in flags_of("ingest")} == {}
    assert {"--on-bad-file", "--on-changed-file", "--follow", "--format", "--checkpoint-dir"} <= {
        *told
    }


def test_the_flags_of_the_documents_exist() -> None:
    known = {"--version"}.union(*map(flags_of, COMMANDS))
    wrong = {}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "epochgate " in line:
                wrong[path.name] = set(FLAG.findall(line)) - known
    assert {name: flags for name, flags in wrong.items() if flags} == {}
