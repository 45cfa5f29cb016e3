"""Names that pages and examples import have a documented home; `epochgate.<TAB>` leads there."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import epochgate
from tests.shown import PAGES, ROOT
from tests.test_programs import blocks_of

FACADES = {
    name
    for page in ROOT.glob("docs/api/*.md")
    for name in re.findall(r"automodule:: (\S+)", page.read_text("utf-8"))
}
"""The modules that the API pages describe."""

NOT_OF_A_FACADE = {
    "epochgate.proving.ProvingKitMissing": "an error of an installation, which no program catches",
    "epochgate.spark.streaming.errors.OptionsWrong": "as Spark shows the type of the error",
}
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


def imported(text: str) -> Iterator[tuple[str, str]]:
    """The module and name of each import from the package."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("epochgate"):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (
                tuple(alias.name.rpartition(".")[::2])  # type: ignore[misc]  # two texts
                for alias in node.names
                if alias.name.startswith("epochgate.")
            )


def is_of_a_facade(module: str, name: str) -> bool:
    whole = f"{module}.{name}"
    return whole in FACADES or (
        module in FACADES and name in importlib.import_module(module).__all__
    )


def homeless(text: str) -> list[str]:
    return [f"{m}.{name}" for m, name in imported(text) if not is_of_a_facade(m, name)]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_block_of_a_page_imports_is_of_a_facade(page: str) -> None:
    blocks = [text for kind in ("python", "py") for _, text, _ in blocks_of(page, kind)]
    assert [name for text in blocks for name in homeless(text)] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_what_an_example_imports_is_of_a_facade(example: Path) -> None:
    assert homeless(example.read_text("utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_a_class_or_function_that_a_text_names_in_full_is_of_a_facade(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for whole in set(re.findall(r"`(epochgate(?:\.\w+)+)\b", text)) - {*NOT_OF_A_FACADE}:
        module, _, name = whole.rpartition(".")
        try:
            has_it = callable(getattr(importlib.import_module(module), name, None))
        except ModuleNotFoundError:
            continue  # the name of a metric, a property or a logger
        assert not has_it or is_of_a_facade(module, name), whole


def test_no_name_of_a_facade_is_missing() -> None:
    for module in sorted(FACADES):
        facade = importlib.import_module(module)
        assert [name for name in facade.__all__ if not hasattr(facade, name)] == [], module


def test_a_completion_finds_what_a_program_begins_with() -> None:
    assert {"Control", "Pipeline", "ingest", "local_session", "once", "read"} <= {*dir(epochgate)}
    assert all(getattr(epochgate, name) is not None for name in dir(epochgate))
    packages = {name for name in dir(epochgate) if f"epochgate.{name}" in FACADES}
    assert packages == {"fsm", "pipeline", "runtime", "spark", "testing"}
