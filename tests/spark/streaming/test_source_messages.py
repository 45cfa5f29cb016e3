"""Messages about files name options that exist at the door where they are shown."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import epochgate.spark.files
from epochgate import cli
from epochgate.spark.ingest.options import IngestOptions
from epochgate.spark.streaming.source_messages import HERE, told_here
from epochgate.spark.streaming.source_options import KNOWN

FLAG = re.compile(r"--([a-z][a-z-]+)")
WITH_NAME = re.compile(r"--([a-z-]+)(?: '[^']*'| [^\s(]+)? \(([a-z_]+)(?:=\w+)?(?: in Python)?\)")


NOT_OF_SOURCES = {"evolution.py", "frames.py"}
"""Whose messages are about targets and transforms, which this reader has not."""


def texts_in(tree: ast.AST) -> Iterator[str]:
    """Those of a module but docstrings; what is filled in is `X`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
            )
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield from texts_in(node)


def messages() -> list[str]:
    """The texts about files that name an option and say more."""
    modules = sorted(Path(inspect.getfile(epochgate.spark.files)).parent.glob("*.py"))
    texts = (
        text
        for path in modules
        if path.name not in NOT_OF_SOURCES
        for text in texts_in(ast.parse(path.read_text()))
    )
    return [text for text in texts if FLAG.search(text) and " " in text and "--quote," not in text]


@pytest.mark.parametrize("text", messages())
def test_an_option_of_the_command_is_named_with_its_name_in_python(text: str) -> None:
    fields = IngestOptions.__dataclass_fields__
    for _, name in WITH_NAME.findall(text):
        assert name in fields or name in {"follow", "header", "schema"}, name
    named = len(WITH_NAME.findall(text))
    assert named == len(FLAG.findall(text)), text


@pytest.mark.parametrize("text", messages())
def test_a_query_is_told_its_own_options_or_that_they_are_those_of_the_command(text: str) -> None:
    told = told_here(text)
    assert "in Python" not in told
    for name in re.findall(r'\.option\("(\w+)"', told):
        assert name in KNOWN
    for flag in FLAG.findall(told):
        assert f"`epochgate ingest --{flag}" in told, told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Say --delimiter ';' (delimiter in Python).", 'Say .option("delimiter", ";").'),
        ("give --null '' (null in Python) as well", 'give .option("null", "") as well'),
        ("read with --no-header (header=False in Python)", 'read with .option("header", "false")'),
        ("--columns (columns in Python) and name the others", ".schema(...) and name the others"),
    ],
)
def test_an_option_that_both_doors_have_is_named_as_that_of_the_query(text: str, told: str) -> None:
    assert told_here(text) == told


def test_the_options_that_messages_name_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(HERE.values()) <= set(KNOWN)
    assert set(HERE) <= set(IngestOptions.__dataclass_fields__)
    with pytest.raises(SystemExit):
        cli.parser().parse_args(["ingest", "--help"])
    of_command = set(FLAG.findall(capsys.readouterr().out))
    assert {flag for text in messages() for flag in FLAG.findall(text)} <= of_command
