"""The streaming reader gives the answers of the corpus, with types that the files have told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as t

from epochgate.errors import EpochgateError
from tests.spark.corpus.answers import ANSWERS, copy_of, printed

pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")

from epochgate.spark.streaming.source import HAS_LIMITS, StreamReader
from epochgate.spark.streaming.source_options import parse_source
from epochgate.spark.streaming.source_rows import inferred

if not HAS_LIMITS:
    pytest.skip(
        "Spark before 4.2 does not tell a source in Python where it goes on",
        allow_module_level=True,
    )


def spelled(options: dict[str, Any]) -> dict[str, str] | None:
    """As options of Spark; none where one option has several values."""
    null = options.get("null", [])
    if len(null) > 1:
        return None
    given = {
        key: str(value).lower() if key == "header" else value for key, value in options.items()
    }
    return {**given, **({"null": null[0]} if null else {})}


def rows_of(source: Path, state: Path, options: dict[str, str]) -> list[list[str | None]]:
    parsed = parse_source({"source": str(source), "state": str(state), "settle": "0", **options})
    told = t.StructType.fromJson(json.loads(inferred(parsed.arrow_schema()).json()))
    reader = StreamReader(parsed, told)
    try:
        begun = reader.initialOffset()
        planned = reader.latestOffset(begun, reader.getDefaultReadLimit())
        partitions = reader.partitions(begun, planned)
        return [row for one in partitions for batch in reader.read(one) for row in printed(batch)]
    finally:
        reader.stop()


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda one: one["file"])
def test_a_file_has_the_same_answer_at_the_streaming_reader(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    options = spelled(answer.get("options", {}))
    if options is None or answer.get("types", ()) is None:
        pytest.skip("this reader has no such option, or cannot tell columns without rows")
    source = tmp_path / "in"
    source.mkdir()
    copy_of(answer, source)
    told = answer.get("refused") or next((bad[2] for bad in answer.get("rejected", [])), None)
    if told is None:
        assert rows_of(source, tmp_path / "state", options) == answer["rows"]
    else:
        with pytest.raises(EpochgateError) as caught:
            rows_of(source, tmp_path / "state", options)
        assert told in str(caught.value)
