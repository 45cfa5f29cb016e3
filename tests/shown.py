"""The fenced blocks of README and pages, and the commands that stand in them and between them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUIDES = ("CONTRIBUTING.md", "SECURITY.md", "proving/README.md", "tests/README.md")
PAGES = ["README.md", *(str(p.relative_to(ROOT)) for p in sorted(ROOT.glob("docs/**/*.md")))]
SHELL = ("sh", "console")
"""A block of commands, and one that shows each command behind `$ ` and what it prints."""

FENCE = re.compile(r" *(`{3,})([^`]*)")
MARK = re.compile(r" *<!-- ((?:not run|given|exit): .*) -->")
TOKEN = re.compile(
    r"""(?P<comment>(?<!\S)\#[^\n]*)
    |(?P<redirection>\d*(?:>>?|<<?)&?[ ]*)
    |(?P<end>[;&|()\n]+)
    |(?P<blank>(?:[ \t]|\\\n)+)
    |(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;&|()<>'"\\])+)""",
    re.VERBOSE | re.DOTALL,
)
BEFORE_A_COMMAND = re.compile(r"\w+=.*|until|while|if|then|do|else|!|export", re.DOTALL)
INLINE = re.compile(r"(?<!`)`((?:epochgate|make|pip install|python -m) [^`]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    """Of the fence that begins it."""

    kind: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)
    """The comment above it: `not run` with the reason, `given` with what has to be there, `exit`
    with the code of its command.
    """

    output: str = ""
    """The block of text behind it."""

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def script(self) -> str:
        """The commands, without what they print; of a workflow, those of its steps."""
        if self.kind == "yaml":
            return "".join(f"{one}\n" for one in re.findall(r"run: (.*)", self.text))
        if self.kind != "console":
            return self.text
        return "".join(f"{one[2:]}\n" for one in self.text.splitlines() if one.startswith("$ "))

    @property
    def printed(self) -> list[str]:
        lines = self.output.splitlines()
        if self.kind == "console":
            lines = [one for one in self.text.splitlines() if not one.startswith("$ ")]
        return [line for line in lines if line.strip(" .…")]


@cache
def blocks(page: str) -> tuple[Block, ...]:
    """All fenced blocks of a page; one within another is a part of its text."""
    found: list[Block] = []
    lines = (ROOT / page).read_text("utf-8").splitlines()
    number, behind = 0, -1
    while number < len(lines):
        begin = FENCE.fullmatch(lines[number])
        if begin is None:
            number += 1
            continue
        end = number + 1
        while not re.fullmatch(rf" *`{{{len(begin[1])},}} *", lines[end]):
            end += 1
        indent = len(lines[number]) - len(lines[number].lstrip())
        text = "".join(f"{line[indent:]}\n" for line in lines[number + 1 : end])
        kind = begin[2].strip()
        if kind == "text" and found and not "".join(lines[behind:number]).strip():
            last = found[-1]
            found[-1] = Block(page, last.line, last.kind, last.text, last.marks, text)
        found.append(Block(page, number + 1, kind, text, _marks(lines[number - 1])))
        number = behind = end + 1
    return tuple(found)


def _marks(line: str) -> dict[str, str]:
    mark = MARK.fullmatch(line)
    parts = mark[1].split("; ") if mark else []
    return dict(part.split(": ", 1) for part in parts)


def commands(script: str) -> Iterator[list[str]]:
    """The words of each simple command, without assignments and redirections."""
    words: list[str] = []
    is_file = False
    for token in TOKEN.finditer(script):
        if token.lastgroup == "redirection":
            is_file = True
        elif token.lastgroup == "end":
            if words:
                yield words
            words = []
        elif token.lastgroup == "word":
            if not is_file and (words or not BEFORE_A_COMMAND.fullmatch(token[0])):
                words = [*words, *shlex.split(token[0])]
            is_file = False
    if words:
        yield words


def inline(page: str) -> Iterator[tuple[int, str]]:
    """The lines and texts of commands that stand in sentences and tables."""
    is_text = True
    for number, line in enumerate((ROOT / page).read_text("utf-8").splitlines(), 1):
        if FENCE.match(line):
            is_text = not is_text
        elif is_text:
            yield from ((number, found[1].replace("\\|", "|")) for found in INLINE.finditer(line))
