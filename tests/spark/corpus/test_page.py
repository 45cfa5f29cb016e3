"""The page of values says what readers make of each file of the corpus, as it is now."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")

from tests.spark.corpus.page import PAGE, by_all, files, kept, ours, page, told

WRITE = "run: python -m tests.spark.corpus.page --write"


def test_the_page_says_what_was_found(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, kept(), tmp_path) == text, "run: python -m tests.spark.corpus.page --table"


def test_we_make_of_each_file_what_the_page_says(tmp_path: Path) -> None:
    found = {one.name: told(ours(one)) for one in files(tmp_path)}
    assert found == {name: row["ours"] for name, row in kept().items()}, WRITE


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_all_make_of_each_file_what_the_page_says(tmp_path: Path) -> None:
    assert by_all(tmp_path) == kept(), WRITE
