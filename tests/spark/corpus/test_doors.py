"""Each file of the corpus has the same rows, or is refused for the same reason, at every door."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="Spark 3.5 has no data sources in Python")

from epochgate.spark.files.ddl import parse_schema
from epochgate.spark.streaming.source import HAS_LIMITS
from tests.spark.corpus.answers import PARQUET_ANSWERS, TEXT_ANSWERS, Answer, copy_of
from tests.spark.corpus.doors import DOORS, REFUSALS, Reading
from tests.spark.corpus.parquet_files import NO_TYPE, PARQUET, write
from tests.spark.corpus.test_parquet import read
from tests.spark.values.cells import of_table

if not HAS_LIMITS:
    pytest.skip(
        "Spark before 4.2 does not tell a source in Python where it goes on",
        allow_module_level=True,
    )


pytestmark = pytest.mark.extended

IN_CHECK_DEEP = "pipeline", "frame"
AT_EVERY_DOOR = pytest.mark.parametrize(
    "door",
    [pytest.param(door, marks=[pytest.mark.deep] * (door in IN_CHECK_DEEP)) for door in DOORS],
)
"""In `make check` all doors read the largest batches, in `test_doors_on_spark`."""


def laid(answer: Answer, place: Path) -> Reading:
    """The file of an answer in a source of its own."""
    (place / "in").mkdir()
    copy_of(answer, place / "in")
    options = dict(answer.get("options", {}))
    schema = options.pop("schema", None)
    return Reading(place, None if schema is None else parse_schema(schema), options)


def refused_for(answer: Answer) -> str | None:
    """A part of the reason; a row that could be rejected is one, too."""
    return answer.get("refused") or next((bad[2] for bad in answer.get("rejected", [])), None)


def suits(answer: Answer, door: str) -> bool:
    """Return whether the door has the options, and can tell columns."""
    has_options = len(answer.get("options", {}).get("null", [])) < 2
    if "field that the schema lacks" in (refused_for(answer) or ""):
        # A schema that Spark is given chooses columns.
        has_options = False
    return door in ("ingest", "pipeline") or (has_options and answer.get("types", ()) is not None)


@AT_EVERY_DOOR
@pytest.mark.parametrize("answer", TEXT_ANSWERS, ids=lambda one: one["file"])
def test_a_text_file_is_the_same_at_every_door(tmp_path: Path, answer: Answer, door: str) -> None:
    if not suits(answer, door):
        pytest.skip("the door has no such option, or cannot tell columns without rows")
    reading = laid(answer, tmp_path)
    told = refused_for(answer)
    if told is not None:
        with pytest.raises(REFUSALS) as caught:
            DOORS[door](reading)
        assert told in str(caught.value)
        return
    files = reading.enumeration()
    files.discover()
    schema = None if files.layout is None else files.layout.output_schema
    given = {"dialect": reading.dialect, "encoding": reading.encoding, "schema": reading.schema}
    expected = of_table(read(reading.source, **given))
    assert DOORS[door](Reading(tmp_path, schema, reading.options)) == expected


NOT_OF_SPARK = {
    "timestamps_of_nanoseconds": "would lose data",
    "moments_of_nanoseconds": "would lose data",
    "decimals_of_76": "which no type of Spark holds",
    "lists_viewed": "which no type of Spark holds",
}
"""Why the doors of Spark refuse what the others take."""


@AT_EVERY_DOOR
@pytest.mark.parametrize("key", [key for key, one in PARQUET.items() if not one.refused])
def test_a_parquet_file_is_the_same_at_every_door(tmp_path: Path, key: str, door: str) -> None:
    (tmp_path / "in").mkdir()
    write(key, tmp_path / "in")
    one = PARQUET[key]
    told = {"ingest": one.refused_by_target, "pipeline": ""}.get(door, NOT_OF_SPARK.get(key))
    if not told:
        assert DOORS[door](Reading(tmp_path)) == of_table(one.table)
        return
    with pytest.raises(REFUSALS) as caught:
        DOORS[door](Reading(tmp_path))
    assert told in str(caught.value)


@AT_EVERY_DOOR
@pytest.mark.parametrize("key", [key for key, one in PARQUET.items() if one.refused])
def test_a_bad_parquet_file_is_refused_at_every_door(tmp_path: Path, key: str, door: str) -> None:
    (tmp_path / "in").mkdir()
    write(key, tmp_path / "in")
    is_of_spark = door in ("stream", "frame")
    told = "there are no files" if is_of_spark and key == "no_byte" else PARQUET[key].refused
    with pytest.raises(REFUSALS) as caught:
        DOORS[door](Reading(tmp_path))
    assert told in str(caught.value)


@AT_EVERY_DOOR
@pytest.mark.parametrize("answer", PARQUET_ANSWERS, ids=lambda one: one["file"])
def test_a_parquet_file_of_others_is_the_same_at_every_door(
    tmp_path: Path, answer: Answer, door: str
) -> None:
    reading = laid(answer, tmp_path)
    if "refused" not in answer:
        assert DOORS[door](reading) == of_table(read(reading.source))
        return
    with pytest.raises(REFUSALS) as caught:
        DOORS[door](reading)
    assert any(told in str(caught.value) for told in (answer["refused"], NO_TYPE))
