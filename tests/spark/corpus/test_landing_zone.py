"""Forty files of the corpus in one landing zone, as a new user reads them: each row is right, or
rejected with its reason, or its file is listed; and the next start goes on with new files.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from epochgate.spark.ingest import IngestResult, ingest
from tests.spark.corpus.answers import ANSWERS, Answer, copy_of, stored
from tests.spark.shared import session_of

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.slow, pytest.mark.timeout(300)]

COLUMNS, FIRST = "a,b", "crlf.csv"
"""The columns of the first file, whose types are BIGINT and STRING."""
PLAIN = [answer for answer in ANSWERS if "options" not in answer]
REFUSED = [answer for answer in PLAIN if "refused" in answer]
OTHER_COLUMNS = "the schema changes between files"
BEFORE_THE_FAULT = {"unclosed_quote.csv": [("1", "x")]}
"""Rows of a file that is bad further on, the rest of which is left out."""
Rows = Counter[tuple[str, str]]


def fits(answer: Answer) -> bool:
    """Return whether the file has the columns of the first one."""
    first = stored(answer).read_bytes().split(b"\n")[0]
    return first.strip(b"\r\xef\xbb\xbf").replace(b'"', b"").decode() == COLUMNS


FITTING = [answer for answer in PLAIN if "refused" not in answer and fits(answer)]
OTHERS = [answer for answer in PLAIN if "refused" not in answer and not fits(answer)]


class Zone:
    """A landing zone, and what has to come of its files."""

    def __init__(self, place: Path) -> None:
        self.landing, self.target = place / "landing", place / "out"
        self.landing.mkdir()
        self.rows, self.rejected, self.listed = Rows(), Counter[tuple[str, int]](), dict[str, str]()

    def deliver(self, answers: list[Answer]) -> None:
        """Add files; the first by name is the one that decides the columns."""
        for answer in answers:
            path = copy_of(answer, self.landing)
            if answer["file"] == FIRST:
                path = path.rename(self.landing / f"0_{FIRST}")
            if "refused" in answer:
                self.listed[path.name] = answer["refused"]
                self.rows.update(BEFORE_THE_FAULT.get(path.name, []))
            elif not fits(answer):
                self.listed[path.name] = OTHER_COLUMNS
            else:
                self.rows.update((a, b or "") for a, b in answer["rows"])
                self.rejected.update((path.name, bad[0]) for bad in answer.get("rejected", []))

    def check(self, spark: Any, result: IngestResult) -> None:
        """Compare with what Spark and a script find."""
        found = spark.read.parquet(str(self.target)).select("a", "b").collect()
        assert Rows((str(row.a), row.b) for row in found) == self.rows
        rejected = spark.read.parquet(result.rejected_path).collect()
        assert Counter((Path(one.file).name, one.line) for one in rejected) == self.rejected
        assert all(one.reason and one.raw for one in rejected)
        lines = Path(f"{self.target}.bad-files.jsonl").read_text(encoding="utf-8").splitlines()
        listed = {Path(bad["path"]).name: bad["reason"] for bad in map(json.loads, lines)}
        assert listed.keys() == self.listed.keys()
        for name, told in self.listed.items():
            assert told in listed[name] or OTHER_COLUMNS in listed[name]


def test_forty_files_of_all_kinds_are_read_or_told(tmp_path: Path) -> None:
    spark = session_of("tests/spark/corpus/test_landing_zone.py")
    zone = Zone(tmp_path)
    zone.deliver([*FITTING[:20], *REFUSED[:12], *OTHERS[:8]])
    assert len(list(zone.landing.iterdir())) == 40
    options: dict[str, Any] = {"on_bad_row": "reject", "on_bad_file": "skip", "parallelism": 2}
    result = ingest(spark, str(zone.landing), str(zone.target), **options)
    assert result.rows_committed == zone.rows.total() > 0
    assert not result.is_complete()
    zone.check(spark, result)

    before = zone.rows.total()
    zone.deliver([*FITTING[20:], *REFUSED[12:], *OTHERS[8:10]])
    again = ingest(spark, str(zone.landing), str(zone.target), **options)
    assert again.rows_committed == zone.rows.total() - before > 0
    zone.check(spark, again)

    once_more = ingest(spark, str(zone.landing), str(zone.target), **options)
    assert (once_more.rows_committed, once_more.is_complete()) == (0, True)
    zone.check(spark, once_more)
