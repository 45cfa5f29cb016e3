"""The table of the contract: nothing in it is empty, and everything that it names is there."""

from __future__ import annotations

import re

from tests.setup.tables import NAME, ROOT, TEST, lines_of, missing_tests, resolves

ABSENT = "not here:"
HEADER = ("Flink", "epochgate", "shown by")
LINES = lines_of(ROOT / "docs" / "contract.md")


def test_the_contract_is_a_table() -> None:
    assert len(LINES) > 100
    assert {line.header for line in LINES} == {HEADER}
    assert len({line.cells[0] for line in LINES}) == len(LINES)


def test_no_cell_is_empty() -> None:
    assert not [str(line) for line in LINES if len(line.cells) != 3]
    assert not [str(line) for line in LINES if not all(re.search(r"\w", c) for c in line.cells)]


def test_every_row_names_what_is_there_or_says_why_it_is_not() -> None:
    offered = [line for line in LINES if not line.cells[1].startswith(ABSENT)]
    assert not [str(line) for line in offered if not NAME.search(line.cells[1])]
    assert not [
        f"{line} names {name}"
        for line in offered
        for name in NAME.findall(line.cells[1])
        if not resolves(name, line.modules)
    ]


def test_every_row_is_shown_by_tests_that_are_there() -> None:
    offered = [line for line in LINES if not line.cells[1].startswith(ABSENT)]
    assert not [
        str(line) for line in LINES if bool(TEST.search(line.cells[2])) != (line in offered)
    ]
    assert not [f"{line} is shown by {t}" for line in LINES for t in missing_tests(line.cells[2])]
