"""The page that compares loaders of files: each cell has its source, and the count is that of the
table.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "comparison-ingest.md"
CELL = re.compile(r"(yes|part|no|\?)\b.*|\?.*")
FEATURES = 33


def table() -> list[list[str]]:
    """The cells of each feature."""
    text = PAGE.read_text(encoding="utf-8")
    (found,) = re.findall(r"<!-- features:start -->\n(.*)<!-- features:end -->", text, re.DOTALL)
    lines = [line.strip("|").split("|") for line in found.splitlines()[2:]]
    return [
        [cell.strip() for cell in line] for line in lines if not line[0].strip().startswith("*")
    ]


def test_each_feature_has_a_cell_for_each_tool() -> None:
    assert len(table()) == FEATURES
    assert {len(row) for row in table()} == {10}


def test_each_cell_has_a_verdict_and_a_source() -> None:
    sources = re.findall(r"^(\d+)\. ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sources == [str(number) for number in range(1, len(sources) + 1)]
    cited = set()
    for _, ours, *theirs in table():
        assert CELL.fullmatch(ours), ours
        for cell in (ours, *theirs):
            assert CELL.fullmatch(cell), cell
            cited |= set(re.findall(r"\[(\d+)\]", cell))
        assert all(re.search(r"\[\d+\]$|, though .*\]$", cell) for cell in theirs), theirs
        assert ours.startswith("no") or "[" in ours, ours
    assert cited == set(sources)


def test_the_features_are_counted() -> None:
    counts = Counter(row[1].split()[0].rstrip(":,") for row in table())
    told = f"Of the {FEATURES}, epochgate has {counts['yes']} whole and {counts['part']} in part."
    assert told in PAGE.read_text(encoding="utf-8")
