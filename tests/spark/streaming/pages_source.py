"""A source as a user writes it for a resident job: pages of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from epochgate.runtime.source import (
    Fetched,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitQueueEnumerator,
)


class Pages(Source):
    """Each file of a folder is a page, a line a number."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def look(self) -> list[SourceSplit]:
        return [SourceSplit(page.name, str(page)) for page in sorted(self.folder.iterdir())]

    def create_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator:
        return SplitQueueEnumerator(context, state, self.look, every_s=1.0)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return PageReader()


class PageReader(SourceReader):
    """Gives a number and the name of its page."""

    def open_split(self, split: SourceSplit, position: Any) -> Iterator[Fetched | None]:
        lines = Path(split.value).read_text(encoding="utf-8").split()
        yield Fetched([(int(line), split.split_id) for line in lines], len(lines))


class ChosenPages(Pages):
    """Reads the pages that a control names."""

    def may_match(self, split: SourceSplit, values: Mapping[str, Any]) -> bool:
        return split.split_id in values["pages"]
