"""Each command of README and pages is one that can be given, and runs where it can run here.

`sh` and `console` blocks run as they stand, in the order of their page, in a folder that is empty
but for what a comment above them gives and for the modules that pages show. A block that cannot run
here has its reason in a comment: `<!-- not run: a cluster -->`.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stderr
from functools import cache
from pathlib import Path

import pytest

from epochgate import cli
from epochgate.commands.check import catalogues
from epochgate.spark.java import ensure_java
from tests.shown import GUIDES, PAGES, ROOT, SHELL, Block, blocks, commands, inline
from tests.test_programs import PROGRAMS

ALL = [*PAGES, *GUIDES]
BLOCKS = [block for page in ALL for block in blocks(page) if block.kind in SHELL]
GIVEN = {
    "landing": "python orders.py",
    "table": "python orders.py; epochgate ingest landing table --quiet",
    "a job": "python orders.py; "
    "epochgate ingest landing table --follow --rows-per-second 300 --quiet & "
    "until [ -d table/checkpoint=*1 ]; do sleep 0.2; done; trap 'kill -9 %1' EXIT",
}
"""Commands that make what a block begins with; others stand in the comment themselves."""

OTHER_RUNS = {
    "docs/compacting.md": "another table is shown",
    "docs/steering.md": "other times and users are shown",
    "docs/traces.md": "a run is shown of which a task was killed",
}
"""Pages whose shown output is not compared, and why."""

RESULT = re.compile(r"\d+ rows, \d+ different|\[Row|FAILS:|  (?:found|expected) ")
"""Of a shown line whose numbers are compared."""

MISSING = re.compile(r"arguments are required|invalid (\w+ value|choice): '\[?[A-Z]|expected ")
"""Of a command that a sentence mentions."""


command_line = cache(cli.parser)


@cache
def extras(project: str) -> set[str]:
    declared = tomllib.loads((ROOT / project / "pyproject.toml").read_text("utf-8"))["project"]
    return set(declared["optional-dependencies"])


@cache
def systems() -> set[str]:
    return {name for named, _ in catalogues() for name in named}


def wrong(words: list[str], *, is_mention: bool = False) -> Iterator[str]:
    """All that is wrong with one simple command; of a mention, arguments may be missing."""
    if words[0].endswith("pip") and words[1:2] == ["install"]:
        yield from _wrong_package(words[2:])
    elif words[0] == "make":
        yield from _wrong_target(words[1:])
    elif words[1:2] == ["-m"] and words[2].startswith(("epochgate.", "tests.")):
        module = ROOT / words[2].replace(".", "/")
        if not module.is_dir() and not module.with_suffix(".py").exists():
            yield f"there is no module {words[2]}"
    ours = words[words.index("--") + 1 :] if "--" in words else words
    ours = ours[2:] if ours[1:2] == ["-m"] else ours
    if ours[:1] == ["epochgate"]:
        yield from _wrong_option(ours[1:], is_mention)
    for word in words:
        folder, slash, _ = word.removeprefix("./").partition("/")
        is_ours = slash and folder in ("docs", "examples", "proving", "requirements")
        if is_ours and not (ROOT / word.partition("[")[0]).exists():
            yield f"there is no file {word}"


def _wrong_package(words: list[str]) -> Iterator[str]:
    for word in words:
        found = re.fullmatch(r"(?:\S*/)?(\.|epochgate|proving|epochgate-proving)\[(.*)\]", word)
        if found:
            known = extras("proving" if "proving" in found[1] else ".")
            yield from (f"there is no extra {one}" for one in {*found[2].split(",")} - known)


def _wrong_target(words: list[str]) -> Iterator[str]:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for word in words:
        name, is_variable, _ = word.partition("=")
        known = rf"\$\(.*\b{name}\b" if is_variable else rf"^{name}:"
        if not re.search(known, makefile, re.MULTILINE):
            yield f"make has no {word}"


def _wrong_option(words: list[str], is_mention: bool) -> Iterator[str]:
    told = io.StringIO()
    try:
        with redirect_stderr(told):
            found = command_line().parse_args(words)
    except SystemExit as end:
        message = told.getvalue().partition(" error: ")[2].strip()
        if end.code and not (is_mention and MISSING.search(message)):
            yield message
        return
    for name in [*getattr(found, "systems", []), getattr(found, "system", None)]:
        if name and ":" not in name and not name.isupper() and name not in systems():
            yield f"there is no system {name}"


@pytest.mark.parametrize("page", ALL)
def test_each_command_of_a_page_can_be_given(page: str) -> None:
    problems = []
    for block in blocks(page):
        if block.kind not in (*SHELL, "yaml"):
            continue
        found = [one for words in commands(block.script) for one in wrong(words)]
        problems += [f"{block.line}: {one}" for one in found]
        read = subprocess.run(
            ["bash", "-n"], input=block.script, capture_output=True, text=True, check=False
        )
        problems += [f"{block.line}: {read.stderr}"] if read.returncode else []
    for line, text in inline(page):
        words = next(iter(commands(text)))
        problems += [f"{line}: {one}" for one in wrong(words, is_mention=True)]
    assert problems == []


@pytest.mark.parametrize("page", ALL)
def test_no_command_is_hidden_in_a_block_of_another_kind(page: str) -> None:
    hidden = [
        block.line
        for block in blocks(page)
        if not block.kind or (block.kind == "text" and re.search(r"^\$ ", block.text, re.M))
    ]
    assert hidden == [], "blocks of commands are `sh`, or `console` with what they print"


def test_each_block_runs_or_says_why_not() -> None:
    fences = sum(
        len(re.findall(r"^ *```(?:sh|console)$", (ROOT / page).read_text("utf-8"), re.MULTILINE))
        for page in ALL
    )
    left_out = [block for block in BLOCKS if "not run" in block.marks]
    running = [block for _, of_page in pages_that_run() for block in of_page]
    assert len(running) + len(left_out) == len(BLOCKS) == fences
    assert all(3 <= len(block.marks["not run"]) <= 60 for block in left_out)
    assert all(set(block.marks) <= {"given", "exit"} for block in running)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("epochgate status --json", "required: DIR"),
        ("epochgate ingest in out --folow", "did you mean --follow?"),
        ("epochgate ingst in out", "invalid choice: 'ingst'"),
        ("kubectl exec deploy/x -- epochgate status /data --watches", "unrecognized arguments"),
        ("if true; then A=b epochgate check valve.non; fi", "no system valve.non"),
        ("make tests", "make has no tests"),
        ("make nemesis SEEDS=7", "make has no SEEDS=7"),
        ("pip install '.[sparks,delta]'", "no extra sparks"),
        ("pip install ./proving[delta]", "no extra delta"),
        ("python -m tests.zoo.pages --write", "no module tests.zoo.pages"),
        ("kubectl apply -f examples/operations/cluster.yaml 2>&1 >out", "no file examples/"),
        ("epochgate ingest in out --delimiter ';' | tee --folow # --folow", ""),
        ("epochgate ingest in \\\n  's3://a#b' --metrics-port 0 2>errors", ""),
    ],
)
def test_a_wrong_command_is_found(command: str, told: str) -> None:
    found = [one for words in commands(command) for one in wrong(words)]
    assert bool(found) == bool(told)
    assert told in "".join(found)


def pages_that_run() -> list[tuple[str, list[Block]]]:
    of_pages = [
        (page, [one for one in BLOCKS if one.page == page and "not run" not in one.marks])
        for page in ALL
    ]
    return [(page, found) for page, found in of_pages if found]


def modules(block: Block, script: str) -> dict[str, str]:
    """The modules that a block finds: those of its page up to there, and others that it names."""
    found = {}
    for program in PROGRAMS:
        is_before = program.page == block.page and program.line < block.line
        stem = program.file.removesuffix(".py")
        if program.file and (is_before or re.search(rf"\b{stem}(?:\.py\b|:\w)", script)):
            found[program.file] = program.text_before(block.line if is_before else sys.maxsize)
    return found


@pytest.mark.programs
@pytest.mark.spark
@pytest.mark.parametrize(
    "shown", [pytest.param(found, id=page) for page, found in pages_that_run()]
)
def test_the_commands_of_a_page_run(shown: list[Block], tmp_path: Path) -> None:
    here, side = tmp_path / "here", tmp_path / "side"
    here.mkdir()
    script = "trap 'echo FAILED $? $BASH_COMMAND' ERR\n"
    for number, block in enumerate(shown):
        given = block.marks.get("given", "")
        given = GIVEN.get(given, given)
        folder = side / str(number)
        folder.mkdir(parents=True)
        for name, text in modules(block, f"{given}\n{block.script}").items():
            (folder / name).write_text(text, "utf-8")
        script += f"cp -r {folder}/. .\n{given}\necho BLOCK {number}\n{block.script}\n"
        script += f"echo BEHIND {number}\n"
    told = run_shell(script, here, tmp_path / "home")
    for number, block in enumerate(shown):
        _, _, behind = told.partition(f"BLOCK {number}\n")
        printed = behind.partition(f"BEHIND {number}\n")[0]
        failed = re.findall(r"^FAILED (\d+) ", printed, re.MULTILINE)
        assert failed == [*filter(None, [block.marks.get("exit")])], f"{block.name}\n{told}"
        if block.page not in OTHER_RUNS:
            lines = printed.replace(str(here), "").splitlines()
            known = {even(one) for line in lines for one in (line, line.replace(" /", " "))}
            missing = [line for line in block.printed if even(line) not in known]
            assert missing == [], f"{block.name}\n{told}"


def run_shell(script: str, folder: Path, home: Path) -> str:
    """All that a script prints, run as where the environment is activated and Java installed."""
    home.mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    java = {"JAVA_HOME": str(ensure_java()), "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "HOME": str(home), **java},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    return done.stdout


def even(line: str) -> str:
    """A line without what differs from run to run: numbers and ids of all but results."""
    if RESULT.match(line):
        return line
    line = re.sub(r"\b(?=[a-f]*\d)[0-9a-f]{4,}\b…?", "0", line)
    return re.sub(r"\s+", " ", re.sub(r"\d[\d,.]*", "0", line)).strip()
