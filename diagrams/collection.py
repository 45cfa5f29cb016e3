"""The files that show some machines: what they should hold, writing them, whether they are fresh.

Everything but a PNG is compared byte for byte; the pixels of a PNG depend on the processor, so it
is drawn again and never compared. The whole set also has overviews and an index; a diagram in its
folder that is not of the set is an orphan, which is named and never removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochgate.diagrams.description import Description, Painting
from epochgate.diagrams.layout import Diagram, render_all
from epochgate.diagrams.mermaid import machine_mermaid
from epochgate.diagrams.overview import OTHERS, OVERVIEW, overview_mermaid, overviews
from epochgate.diagrams.picture import forms
from epochgate.diagrams.table import machine_table
from epochgate.errors import UsageError
from epochgate.fsm import System

DRAWN = ("svg", "table")
"""The formats that are written unless others are asked for."""
SUFFIXES = {"svg": ".svg", "png": ".png", "dot": ".dot", "mermaid": ".mmd", "table": ".md"}
PICTURED = {"svg", "png", "dot"}
"""The formats that need the packages of drawing."""
INDEX = "README.md"
MARK = "<!-- Written by `epochgate draw`. -->"


class CannotWrite(UsageError):
    """The folder for the diagrams cannot be written to."""


@dataclass(frozen=True)
class Freshness:
    """The faults of a folder: files to draw or redraw, and files of no diagram."""

    missing: tuple[str, ...]
    stale: tuple[str, ...]
    orphans: tuple[str, ...]

    def __bool__(self) -> bool:
        return not (self.missing or self.stale or self.orphans)


class Collection:
    """The files of some machines; with `systems` also who triggers whom in these, and as SVG and
    tables the whole set of a project, with an index. `paintings` has what is painted on a machine.
    """

    def __init__(
        self,
        machines: Mapping[str, Description],
        systems: Sequence[type[System]] = (),
        formats: Iterable[str] = DRAWN,
        paintings: Mapping[str, Painting] | None = None,
    ) -> None:
        self._formats = tuple(formats)
        self._is_whole = bool(systems) and {*DRAWN} <= {*self._formats}
        has_sources = not PICTURED.isdisjoint(self._formats)
        self._texts: dict[str, str] = {}
        self._pictures: dict[str, Diagram] = {}
        for name, machine in machines.items():
            painting = (paintings or {}).get(name)
            sources = forms(machine, painting) if has_sources else ()
            self._add(name, sources, machine_mermaid(machine))
            if "table" in self._formats:
                shown = f"{name}.svg" if "svg" in self._formats else None
                self._texts[f"{name}.md"] = machine_table(machine, shown, painting)
        pictures: dict[str, tuple[str, ...]] = {OVERVIEW: ()} if systems else {}
        if systems and has_sources:
            pictures = overviews(systems)
        for name, sources in pictures.items():
            self._add(name, sources, overview_mermaid(systems) if name == OVERVIEW else "")
        if self._is_whole:
            self._texts[INDEX] = index(machines, systems, [*pictures])

    def _add(self, name: str, sources: Sequence[str], mermaid: str) -> None:
        if "svg" in self._formats:
            self._pictures[f"{name}.svg"] = sources, "svg"
        if "png" in self._formats:
            self._pictures[f"{name}.png"] = sources, "png"
        if "dot" in self._formats:
            self._texts[f"{name}.dot"] = sources[0]
        if "mermaid" in self._formats and mermaid:
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
        if INDEX in self._texts and (folder / INDEX).exists() and not _is_ours(folder / INDEX):
            raise CannotWrite(
                f"{folder / INDEX} was not written by `epochgate draw`, which would replace it; "
                f"choose another folder with --output"
            )
        differing = [
            (folder / name, content)
            for name, content in self._contents()
            if not (folder / name).is_file() or (folder / name).read_bytes() != content
        ]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path, content in differing:
                path.write_bytes(content)
        except OSError as error:
            raise CannotWrite(
                f"the diagrams cannot be written to {folder}: {error.strerror}; "
                f"choose another folder with --output"
            ) from error
        return len(differing)

    def freshness(self, folder: Path) -> Freshness:
        """Compare a folder with what it should hold; SVGs are drawn for that.

        Raises LayoutUnavailable or LayoutFailed as the layout does.
        """
        present = {path.name for path in folder.glob("*") if path.is_file()}
        stale = [
            name
            for name, content in self._contents(present - {n for n in present if n[-4:] == ".png"})
            if (folder / name).read_bytes() != content
        ]
        generated = {name for name in present if Path(name).suffix in SUFFIXES.values()}
        orphans = generated - set(self.names) if self._is_whole else set()
        missing = set(self.names) - present
        return Freshness(tuple(sorted(missing)), tuple(sorted(stale)), tuple(sorted(orphans)))

    def _contents(self, among: Iterable[str] | None = None) -> Iterator[tuple[str, bytes]]:
        """The bytes of the files, or of those among these names."""
        wanted = {*self.names} if among is None else {*among}
        for name, text in self._texts.items():
            if name in wanted:
                yield name, text.encode()
        pictures = {name: one for name, one in self._pictures.items() if name in wanted}
        if pictures:
            yield from zip(pictures, render_all([*pictures.values()]), strict=True)


def _is_ours(path: Path) -> bool:
    return path.read_bytes().startswith(MARK.encode())


def index(
    machines: Mapping[str, Description], systems: Sequence[type[System]], pictures: Sequence[str]
) -> str:
    """The Markdown page that shows the whole set."""
    lines = [
        MARK,
        "",
        "# The machines",
        "",
        "Drawn from their rows by `epochgate draw`; `epochgate draw --check` says whether they are",
        "fresh. Each picture has its legend. A card on an arrow holds the rows that lead along it,",
        "a state those that stay in it; a large machine is drawn without its actions and reasons.",
        "Everything, ignored events included, is in the tables.",
        "",
    ]
    for picture in pictures:
        shown = "Machines that trigger no other" if picture == OTHERS else "Which triggers which"
        lines += [f"![{shown}]({picture}.svg)", ""]
    listed = set[str]()
    for system in systems:
        lines += [f"## {system.__name__}", ""]
        new = [name for name in machines if name in system.MACHINES and name not in listed]
        beside = [f"[{name}]({name}.md)" for name in system.MACHINES if name not in new]
        if beside:
            lines += [f"Beside {', '.join(beside)}:", ""]
        lines += ["| machine | states | triggers | rows |", "| --- | --- | --- | --- |"]
        for name in new:
            machine = machines[name]
            counts = (len(machine.states), len(machine.triggers()), len(machine.rows))
            lines.append(f"| [{name}]({name}.md) | {' | '.join(map(str, counts))} |")
        lines.append("")
        listed |= {*new}
    for name in machines:
        lines += [f"## {name}", "", f"[Rows and the full product]({name}.md)", ""]
        lines += [f"![The states of {name}]({name}.svg)", ""]
    return "\n".join(lines).rstrip() + "\n"
