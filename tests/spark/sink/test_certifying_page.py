"""The walk through docs/certifying.md goes as the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from epochgate.runtime.testing.certification import Certificate, Guarantee, certify, report

PAGE = Path(__file__).parents[3] / "docs" / "certifying.md"
BLOCKS = re.findall(r"```py(?:thon)?\n(.*?)```", PAGE.read_text(), re.DOTALL)
FIRST, CASE, BATCH, SECOND, THIRD = BLOCKS[:5]


def certified(*blocks: str, **options: Any) -> Certificate:
    names: dict[str, Any] = {"__name__": __name__}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec", dont_inherit=True), names)  # noqa: S102  # the page's own code
    return certify(names["Case"](), **options)


def quoted(number: int) -> list[str]:
    """The lines of an output on the page."""
    text = re.findall(r"```(?:text|console)\n(.*?)```", PAGE.read_text(), re.DOTALL)[number]
    return [line for line in text.splitlines() if line != "..." and not line.startswith("$")]


def without_seconds(line: str) -> str:
    return re.sub(r" in [\d.]+ s$", "", line)


@pytest.mark.programs
def test_the_first_version_is_refused_as_the_page_shows() -> None:
    found = certified(FIRST, CASE, first_only=True)
    assert list(found.failures) == [Guarantee.REPLAY]
    told = [without_seconds(line) for line in report(found).splitlines()]
    assert [line for line in quoted(0) if without_seconds(line) not in told] == []


def test_a_case_may_make_the_batches_that_a_writer_takes() -> None:
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(FIRST, PAGE.name, "exec", dont_inherit=True), names)  # noqa: S102  # the page's own code
    exec(compile(f"{CASE}\n{BATCH}", PAGE.name, "exec", dont_inherit=True), names)  # noqa: S102  # the page's own code
    rows = [{"number": 7, "text": "row 7"}]
    assert names["Case"]().batch(rows) == rows


@pytest.mark.programs
def test_the_second_version_is_refused_as_the_page_shows() -> None:
    found = certified(FIRST, CASE, SECOND, about=(Guarantee.BACK, Guarantee.FENCING), stride=2)
    assert set(found.failures) == {Guarantee.BACK, Guarantee.FENCING}
    told = report(found).splitlines()
    assert [line for line in quoted(1) if line not in told] == []


@pytest.mark.programs
@pytest.mark.parametrize(
    "stride", [11, pytest.param(1, marks=[pytest.mark.deep, pytest.mark.timeout(600)])]
)
def test_the_third_version_is_certified(stride: int) -> None:
    found = certified(FIRST, CASE, THIRD, stride=stride)
    assert found.has_passed, report(found)
    assert Guarantee.TIDY not in found.tried


def test_the_page_lists_every_guarantee() -> None:
    rows = re.findall(r"^\| ([a-z ]+) \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert [(g.title, g.sentence) for g in Guarantee] == [
        row for row in rows if row[0] in {g.title for g in Guarantee}
    ]
