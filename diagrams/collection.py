"""The files that show some machines: what they should hold, writing them, whether they are fresh.

SVG, DOT, Mermaid and Markdown are compared byte for byte, a PNG by the digest of its source, since
its pixels depend on the processor. The whole set also has an overview and an index; a diagram in
its folder that is not of the set is an orphan, which is named and never removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochgate.diagrams.layout import Format, render_all
from epochgate.diagrams.mermaid import machine_mermaid
from epochgate.diagrams.overview import overview_dot, overview_mermaid
from epochgate.diagrams.picture import machine_dot
from epochgate.diagrams.stamp import NotPng, is_stale, stamp
from epochgate.diagrams.table import machine_table
from epochgate.errors import UsageError
from epochgate.fsm import Machine, System

FORMATS = ("svg", "png", "dot", "mermaid", "table")
SUFFIXES = {"svg": ".svg", "png": ".png", "dot": ".dot", "mermaid": ".mmd", "table": ".md"}
OVERVIEW, INDEX = "overview", "README.md"
MARK = "<!-- Written by `epochgate draw`. -->"


class CannotWrite(UsageError):
    """The folder for the diagrams cannot be written to."""


@dataclass(frozen=True)
class Picture:
    """A file that the layout draws from DOT."""

    source: str
    format: Format


@dataclass(frozen=True)
class Freshness:
    """What is wrong with a folder: files to draw or redraw, and files of no diagram."""

    missing: tuple[str, ...]
    stale: tuple[str, ...]
    orphans: tuple[str, ...]

    def __bool__(self) -> bool:
        return not (self.missing or self.stale or self.orphans)


class Collection:
    """The files of some machines; with `systems` also who triggers whom in these, and in all
    formats the whole set of a project, with an index.
    """

    def __init__(
        self,
        machines: Mapping[str, type[Machine]],
        systems: Sequence[type[System]] = (),
        formats: Iterable[str] = FORMATS,
    ) -> None:
        self._formats = tuple(formats)
        self._is_whole = bool(systems) and self._formats == FORMATS
        self._texts: dict[str, str] = {}
        self._pictures: dict[str, Picture] = {}
        for name, machine in machines.items():
            shown = f"{name}.svg" if "svg" in self._formats else None
            self._add(name, machine_dot(name, machine), machine_mermaid(machine))
            if "table" in self._formats:
                self._texts[f"{name}.md"] = machine_table(name, machine, shown)
        if systems:
            self._add(OVERVIEW, overview_dot(systems), overview_mermaid(systems))
        if self._is_whole:
            self._texts[INDEX] = index(machines, systems)

    def _add(self, name: str, dot: str, mermaid: str) -> None:
        if "svg" in self._formats:
            self._pictures[f"{name}.svg"] = Picture(dot, "svg")
        if "png" in self._formats:
            self._pictures[f"{name}.png"] = Picture(dot, "png")
        if "dot" in self._formats:
            self._texts[f"{name}.dot"] = dot
        if "mermaid" in self._formats:
            self._texts[f"{name}.mmd"] = mermaid

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all files, sorted."""
        return tuple(sorted((*self._texts, *self._pictures)))

    def write(self, folder: Path) -> int:
        """Write the files that differ, and return how many did; orphans are left where they are.

        Raises CannotWrite, also when an index would replace one that is not ours, and
        LayoutUnavailable or LayoutFailed as the layout does.
        """
        found = self.freshness(folder)
        wanted = {*found.missing, *found.stale}
        if INDEX in wanted and (folder / INDEX).exists() and not _is_ours(folder / INDEX):
            raise CannotWrite(
                f"{folder / INDEX} was not written by `epochgate draw`, which would replace it; "
                f"choose another folder with --output"
            )
        contents = {name: text.encode() for name, text in self._texts.items() if name in wanted}
        contents.update(self._drawn({n: p for n, p in self._pictures.items() if n in wanted}))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in contents.items():
                (folder / name).write_bytes(content)
        except OSError as error:
            raise CannotWrite(
                f"the diagrams cannot be written to {folder}: {error.strerror}; "
                f"choose another folder with --output"
            ) from error
        return len(contents)

    def freshness(self, folder: Path) -> Freshness:
        """Compare a folder with what it should hold; SVGs are drawn for that.

        Raises LayoutUnavailable or LayoutFailed as the layout does.
        """
        present = {path.name for path in folder.glob("*") if path.is_file()}
        expected = {name: text.encode() for name, text in self._texts.items()}
        svgs = {n: p for n, p in self._pictures.items() if p.format == "svg" and n in present}
        expected.update(self._drawn(svgs))
        stale = [n for n in expected if n in present and (folder / n).read_bytes() != expected[n]]
        for name, picture in self._pictures.items():
            if picture.format == "png" and name in present:
                stale += [name] if _is_png_stale(folder / name, picture.source) else []
        generated = {name for name in present if Path(name).suffix in SUFFIXES.values()}
        orphans = generated - set(self.names) if self._is_whole else set()
        missing = set(self.names) - present
        return Freshness(tuple(sorted(missing)), tuple(sorted(stale)), tuple(sorted(orphans)))

    @staticmethod
    def _drawn(pictures: Mapping[str, Picture]) -> dict[str, bytes]:
        if not pictures:
            return {}
        drawn = render_all([(p.source, p.format) for p in pictures.values()], engine="bundled")
        return {
            name: stamp(content, picture.source) if picture.format == "png" else content
            for (name, picture), content in zip(pictures.items(), drawn, strict=True)
        }


def _is_ours(path: Path) -> bool:
    return path.read_bytes().startswith(MARK.encode())


def _is_png_stale(path: Path, source: str) -> bool:
    try:
        return is_stale(path.read_bytes(), source)
    except NotPng:
        return True


def index(machines: Mapping[str, type[Machine]], systems: Sequence[type[System]]) -> str:
    """The Markdown page that shows the whole set."""
    lines = [
        MARK,
        "",
        "# The machines",
        "",
        "Drawn from their rows by `epochgate draw`; `epochgate draw --check` says whether they are",
        "fresh. A black dot marks the initial state, a double border a terminal one. A card on an",
        "arrow holds the rows that lead along it, and a state those that stay in it: the trigger,",
        "[its condition], / its actions, and why. Ignored events are in the tables.",
        "",
        "![Which machine triggers which](overview.svg)",
        "",
    ]
    for system in systems:
        lines += [f"## {system.__name__}", ""]
        lines += [
            "| machine | states | triggers | rows | files |",
            "| --- | --- | --- | --- | --- |",
        ]
        for name, machine in machines.items():
            if name in system.MACHINES:
                files = " ".join(f"[{s[1:]}]({name}{s})" for s in SUFFIXES.values() if s != ".md")
                counts = (len(machine.STATES), len(machine.triggers()), len(machine.ROWS))
                lines.append(f"| [{name}]({name}.md) | {' | '.join(map(str, counts))} | {files} |")
        lines.append("")
    for name in machines:
        lines += [f"## {name}", "", f"[Rows and the full product]({name}.md)", ""]
        lines += [f"![The states of {name}]({name}.svg)", ""]
    return "\n".join(lines).rstrip() + "\n"
