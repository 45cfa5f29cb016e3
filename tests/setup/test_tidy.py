"""The house rules that no linter knows, over every file that is committed or about to be."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

FILE_LINES_MAX = 450
FUNCTION_LINES_MAX = 70
TABLE_COLUMNS_MAX = 124
"""Of a machine's rows, which the formatter leaves alone: a review shows them side by side."""
BANNED_NAMES = {"utils", "util", "helpers", "common", "base", "misc", "manager"}
# Some are spelled in two parts, so that this file does not break its own rule.
BANNED_TEXTS = {
    "a path of one machine": r"(?<![\w.~])/(?:work|root|home|opt|Users)/\w|(?<![\w.])/tmp/\w",
    "a host of a package registry": r"pypi\."
    r"org|pythonhosted\.|repo1\.maven|index-"
    r"url|find-"
    r"links",
    "a word in place of a noun or of a technical term": r"(?i)(?<![a-z])(?:ane"
    r"w|nobo"
    r"dy|whoe"
    r"ver|someb"
    r"ody|bec(?:omes?|ame) o"
    r"f|(?:comes?|came|coming) to noth"
    r"ing|so man"
    r"y)(?![a-z])",
    "a mark of a merge that was not finished": r"^(?:<{7}|>{7}|={7}$)",
    "work left undone": r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b",
}
# Text that is not ours: the licence, and what tools write.
NOT_OURS = {"LICENSE"}


@cache
def committed_files() -> list[Path]:
    """Every file that git knows or would add, without links, generated and binary ones."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("these rules are about a git checkout, and this is none")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def our_texts() -> Iterator[tuple[str, str]]:
    for path in committed_files():
        name = path.relative_to(ROOT).as_posix()
        if name in NOT_OURS or path.suffix in {".png", ".parquet", ".bin", ".arrow"}:
            continue
        yield name, path.read_text(encoding="utf-8")


def our_programs() -> Iterator[tuple[str, str]]:
    return ((name, text) for name, text in our_texts() if name.endswith(".py"))


QUESTIONS = re.compile(r"(?:What|Whether|Where|How|Which|Who|Whom|Whose|Why|When)\b")
DESCRIBED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
MAY_ASK = ("tests/zoo/",)
"""Folders whose docstrings are the names of planted bugs."""


class Outline(NamedTuple):
    """The questions of the rules to a program's syntax tree, which is large and made once."""

    modules: set[str]
    """Those that it imports, or imports anything from."""
    functions: list[tuple[str, int]]
    """Each with its line, and how many lines it has."""
    asking: list[int]
    """The lines of modules, classes and functions whose docstrings begin as a question does."""


@cache
def outlines() -> dict[str, Outline]:
    return {name: outline(ast.parse(text)) for name, text in our_programs()}


def outline(tree: ast.Module) -> Outline:
    found = Outline(set(), [], [])
    for node in ast.walk(tree):
        if isinstance(node, DESCRIBED) and QUESTIONS.match(ast.get_docstring(node) or ""):
            found.asking.append(getattr(node, "lineno", 1))
        if isinstance(node, ast.Import):
            found.modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.modules.add(node.module or "")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            found.functions.append((f"{node.lineno} {node.name}", lines))
    return found


def importers_of(package: str) -> set[str]:
    return {name for name, program in outlines().items() if package in packages_of(program)}


def packages_of(program: Outline) -> set[str]:
    return {module.split(".")[0] for module in program.modules}


def test_every_program_fits_a_sitting() -> None:
    too_long = {
        name: lines
        for name, text in our_programs()
        if (lines := len(text.splitlines())) > FILE_LINES_MAX
    }
    assert not too_long


def test_every_table_of_rows_is_read_without_scrolling_sideways() -> None:
    too_wide = {
        f"{name}:{number}": len(line)
        for name, text in our_programs()
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > TABLE_COLUMNS_MAX
    }
    assert not too_wide


def test_every_function_fits_a_screen() -> None:
    too_long = {
        f"{name}:{function}": lines
        for name, program in outlines().items()
        for function, lines in program.functions
        if lines > FUNCTION_LINES_MAX
    }
    assert not too_long


def test_no_docstring_begins_as_a_question_does() -> None:
    asking = {name: lines for name, program in outlines().items() if (lines := program.asking)}
    assert not {name: lines for name, lines in asking.items() if not name.startswith(MAY_ASK)}


def test_every_module_is_named_for_its_concept() -> None:
    assert not [
        name
        for name, _ in our_programs()
        if BANNED_NAMES & set(re.split(r"[/_.]", name.removesuffix(".py")))
    ]


@pytest.mark.parametrize("what", BANNED_TEXTS)
def test_no_file_holds(what: str) -> None:
    pattern = re.compile(BANNED_TEXTS[what])
    assert not [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in our_texts()
        if not name.startswith("diagrams/generated/")
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_transitions_is_imported_in_one_file() -> None:
    ours = {name for name in importers_of("transitions") if not name.startswith("tests/")}
    assert len(ours) == 1
    assert all(name.startswith("fsm/") for name in ours)


def test_pyspark_is_imported_under_spark_alone() -> None:
    allowed = ("spark/", "tests/", "examples/", "epochgate/benchmarks/")
    assert not {name for name in importers_of("pyspark") if not name.startswith(allowed)}


def test_hypothesis_is_used_through_what_it_documents() -> None:
    documented = {"", ".database", ".errors", ".stateful", ".strategies"}
    used = {
        module
        for program in outlines().values()
        for module in program.modules
        if module.split(".")[0] == "hypothesis"
    }
    assert used <= {f"hypothesis{module}" for module in documented}
    internal = re.compile(r"hypothesis\.inter" r"nal|conjecture" r"_data|_hypothesis_inter" r"nal")
    assert not [name for name, text in our_programs() if internal.search(text)]


def test_what_comes_over_the_network_is_never_unpickled() -> None:
    # The program of a task arrives within the task, by Spark's own channel; a benchmark makes one.
    allowed = ("tests/", "spark/attempt_loop.py", "epochgate/benchmarks/loopback.py")
    assert not {
        name
        for package in ("pickle", "marshal", "shelve", "cloudpickle", "dill")
        for name in importers_of(package)
        if not name.startswith(allowed)
    }


def test_every_package_folder_has_its_face() -> None:
    folders = {Path(name).parent for name, _ in our_programs()}
    no_packages = {"tests", "examples", "bench", "docs"}
    ours = {f for f in folders if f.parts[:1] and f.parts[0] not in no_packages}
    assert not [str(folder) for folder in ours if not (ROOT / folder / "__init__.py").is_file()]
