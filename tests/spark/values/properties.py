"""The properties of the round trip: what is done with one random table."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import assume, strategies as st

from tests.spark.values import inferred, nasty, rescued
from tests.spark.values.cells import Rows, of_table
from tests.spark.values.containers import Unwritable
from tests.spark.values.evolving import parts_of
from tests.spark.values.sources import FORMATS, PLAIN, TEXTS, Format, write
from tests.spark.values.tally import Tally
from tests.spark.values.targets import ZONES, Target
from tests.spark.values.trip import in_zone, take, with_facts

PARQUET: tuple[Format, ...] = ("parquet", "parquet by DuckDB")
FOLDERS = (*["values"] * 6, "values %20", "va\u0301lues +#x & 'more'")
Place = Callable[[Path], Target]
Property = Callable[[Place, Callable[[], Path], st.DataObject], None]
tally = Tally()
"""The tables of this process."""
simple = st.sampled_from(list(nasty.SIMPLE))
flat_tables = nasty.tables(simple)
of_any_type = simple | st.sampled_from(list(nasty.EXOTIC))
parquet_tables = nasty.tables(of_any_type | nasty.nested(of_any_type))
of_spark = st.sampled_from(nasty.SPEAKABLE)
usual_tables = nasty.tables(of_spark)
named_tables = nasty.tables(st.sampled_from([pa.string(), pa.int64()]))
clock_tables = nasty.tables(st.sampled_from([pa.timestamp("us"), pa.int64()]))
spark_tables = nasty.tables(of_spark | nasty.nested(of_spark))
fixed_tables = nasty.tables(st.sampled_from(nasty.FIXED))


def is_told_in_text(table: pa.Table) -> bool:
    """Return whether digits can tell all numbers of the table."""
    return not any(
        pa.types.is_floating(column.type)
        and any(one.is_valid and one.as_py() - one.as_py() != 0 for one in column)
        for column in table.columns
    )


text_tables = nasty.tables(of_spark | st.just(pa.string())).filter(is_told_in_text)


def parquet_files(
    place: Place,
    folder: Callable[[], Path],
    data: st.DataObject,
    tables: st.SearchStrategy[pa.Table] | None = None,
) -> None:
    """Parquet files arrive as they were."""
    target = placed(place, folder(), data)
    if tables is None:
        tables = parquet_tables if target.takes_nested else flat_tables
        if data.draw(st.integers(0, 3)) == 0:
            tables = usual_tables
        elif target.lacks_types:
            tables = spark_tables
    table = data.draw(tables)
    trip(target, table, data.draw(st.sampled_from(PARQUET)), data)


def other_files(place: Place, folder: Callable[[], Path], data: st.DataObject) -> None:
    """ORC and Avro files arrive as they were."""
    target = placed(place, folder(), data)
    is_usual = data.draw(st.booleans()) or not target.takes_nested
    trip(
        target,
        data.draw(usual_tables if is_usual else spark_tables),
        data.draw(st.sampled_from(("orc", "avro"))),
        data,
    )


def plain_files(place: Place, folder: Callable[[], Path], data: st.DataObject) -> None:
    """Lines of text, and files as they are, arrive as they were."""
    target, kind = placed(place, folder(), data), data.draw(st.sampled_from(PLAIN))
    values = nasty.lines if kind == "text" else st.binary(min_size=1, max_size=40)
    name = {"text": "value", "binary": "content"}[kind]
    type_ = pa.string() if kind == "text" else pa.binary()
    table = pa.table({name: pa.array(data.draw(st.lists(values, min_size=1, max_size=6)), type_)})
    if kind == "text" and data.draw(st.booleans()):
        table = table.rename_columns([data.draw(st.sampled_from(nasty.NAMES))])
        trip(target, table, kind, data, schema=table.schema)
    else:
        trip(target, table, kind, data)


def rescued_texts(place: Place, folder: Callable[[], Path], data: st.DataObject) -> None:
    """Texts arrive as values of the declared types, or as they stand in the file, beside these."""
    target, table = placed(place, folder(), data), data.draw(text_tables)
    assume(len(set(map(str.lower, table.column_names))) == table.num_columns)
    chance = random.Random(data.draw(st.integers(0, 9999)))
    kind: Format = data.draw(st.sampled_from(("csv", "jsonl")))
    source = rescued.write(target.place / "in", table, kind, chance)
    source.options |= {"schema": table.schema, "on_bad_row": "rescue", "batch_rows": 2}
    source.options["split_bytes_target"] = chance.choice([64, 1 << 20])
    with in_zone(chance.choice(ZONES)):
        outcome = take(source, target, found=rescued.canonical)
    tally.add(type(target).__name__, f"{kind}, rescued", source.table, outcome)


def declared_texts(
    place: Place,
    folder: Callable[[], Path],
    data: st.DataObject,
    forms: tuple[Format, ...] = TEXTS,
) -> None:
    """Texts of declared types arrive as they were."""
    target, table = placed(place, folder(), data), data.draw(text_tables)
    trip(target, table, data.draw(st.sampled_from(forms)), data, schema=table.schema)


def inferred_texts(
    place: Place,
    folder: Callable[[], Path],
    data: st.DataObject,
    forms: tuple[Format, ...] = TEXTS,
) -> None:
    """Texts of which no type was said arrive as they were."""
    target, table = placed(place, folder(), data), data.draw(inferred.tables())
    told = dict[str, Any]()
    if target.is_ingestion and data.draw(st.integers(0, 3)) == 0:
        told["schema_hints"] = pa.schema([(table.column_names[-1], pa.string())])
    trip(target, table, data.draw(st.sampled_from(forms)), data, is_inferred=True, **told)


def corrected_files(place: Place, folder: Callable[[], Path], data: st.DataObject) -> None:
    """A file that comes again with other rows is never taken for what it was."""
    target, first = placed(place, folder(), data), data.draw(fixed_tables.filter(is_told_in_text))
    columns = [
        pa.array(data.draw(st.lists(nasty.present(one.type), min_size=n, max_size=n)), one.type)
        for n in (first.num_rows,)
        for one in first.schema
    ]
    then = pa.Table.from_arrays(columns, schema=first.schema)
    assume(is_told_in_text(then))
    assume(len(set(map(str.lower, first.column_names))) == first.num_columns)
    kind: Format = data.draw(st.sampled_from(FORMATS))
    seed, options = data.draw(st.integers(0, 9999)), {}
    if kind in TEXTS:
        options = {"schema": first.schema}
    try:
        sources = [
            write(target.place / name, table, [table], kind, random.Random(seed))
            for name, table in (("in", first), ("then", then))
        ]
    except Unwritable:
        assume(False)
    (file,), (corrected,) = (source.files for source in sources)
    assume(file.name == corrected.name and file.read_bytes() != corrected.read_bytes())
    options |= sources[0].options
    assume(target.ingest(**options).has_arrived)
    later_ns = file.stat().st_mtime_ns + 1_000_000_000  # a clock of files may tick in ms
    os.utime(corrected, ns=(later_ns, later_ns))
    os.replace(corrected, file)
    assert file.name in target.ingest(**options).refusal, "a corrected file was not noticed"
    assert target.rows() == of_table(first)
    outcome = target.ingest(**options, on_changed_file="new")
    assert outcome.has_arrived or file.name in outcome.refusal, outcome.refusal
    assert target.rows() == of_table(first) + (of_table(then) if outcome.has_arrived else Rows())


def placed(place: Place, top: Path, data: st.DataObject) -> Target:
    """A target, where a folder may have an odd name."""
    target = place(top)
    if target.takes_odd_paths:
        target.place = top / data.draw(st.sampled_from(FOLDERS))
        target.place.mkdir()
    return target


def trip(
    target: Target, table: pa.Table, kind: Format, data: st.DataObject, **options: Any
) -> None:
    """Take one table on its way."""
    chance, schema = random.Random(data.draw(st.integers(0, 9999))), options.get("schema")
    are_apart = len(set(map(str.lower, table.column_names))) == table.num_columns
    assume(target.makes_itself or are_apart)
    evolution = data.draw(st.sampled_from(target.evolutions if schema is None else ("none",)))
    is_inferred = "is_inferred" in options
    whole, parts = parts_of(
        table,
        table.num_rows if kind == "binary" else data.draw(st.integers(1, 3)),
        chance,
        may_lack=evolution != "none" or chance.random() < 0.15,
        evolution="none" if is_inferred and evolution == "widen" else evolution,
        kept=(inferred.ROW,) if is_inferred else (),
    )
    lacks_columns = any(part.num_columns < whole.num_columns for part in parts)
    needs_header = is_inferred or lacks_columns
    try:
        source = write(target.place / "in", whole, parts, kind, chance, needs_header=needs_header)
    except Unwritable:
        assume(False)
    if target.is_ingestion and chance.random() < 0.2:
        with_facts(source, parts, chance, is_inferred=is_inferred)
    source.options |= {
        "schema_evolution": evolution,
        "batch_rows": chance.choice([1, 100]),
        "split_bytes_target": chance.choice([64, 1 << 20, 1 << 20, 1 << 20]),
    }
    with in_zone(chance.choice(ZONES)):
        outcome = take(source, target, starts_again=chance.random() < 0.1, **options)
    tally.add(type(target).__name__, kind, whole, outcome)
    is_usual = kind in PARQUET and all(one in nasty.SPEAKABLE for one in whole.schema.types)
    if is_usual and target.takes_odd_paths and not target.lacks_types and not lacks_columns:
        assert outcome.has_arrived or not are_apart, outcome.refusal
