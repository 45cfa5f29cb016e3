"""Makes docs/values.md of what three readers make of each file of the corpus.

    python -m tests.spark.corpus.page --write    let them read, and write the page
    python -m tests.spark.corpus.page --table    make the page of what is kept in found.json

Reading takes some two minutes, most of them in Spark. `test_page` says when the page is stale.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from epochgate.errors import EpochgateError
from epochgate.spark.files import SplitReader
from tests.spark.corpus.answers import EVERY, Answer
from tests.spark.corpus.doors import Reading
from tests.spark.corpus.parquet_files import PARQUET, write
from tests.spark.corpus.shown import code, shown
from tests.spark.corpus.test_doors import laid
from tests.spark.values.cells import Cell, of_scalar

KEPT = Path(__file__).parent / "found.json"
PAGE = Path(__file__).parents[3] / "docs" / "values.md"
START, END = "<!-- files:start -->", "<!-- files:end -->"
REASON_MAX = 120
HEADER = ("file", "what stands there", "epochgate", "Spark", "DuckDB", "why")
SAME, TOO, REFUSES = "the same", "refuses it, too", "refuses"
ENDS_SPARK = ("deep_objects.jsonl",)
"""With which Spark is not tried again for each page."""
Found = dict[str, dict[str, str]]
PRINTED = "prints otherwise"
WHY: Mapping[str, str] = {
    "text to number": PRINTED,
    "text to truth": PRINTED,
    "text to day": PRINTED,
    "text to wall": PRINTED,
    "text to moment": PRINTED,
    "text to time": "times of day are text, since Spark cannot read targets that have them",
    "text to nothing": "a text that is empty, or a word such as NULL, is no gap in a text column",
    "text to text": "quotes are doubled, as RFC 4180 has it; Spark escapes them by a backslash",
    "number to text": "`NA` and the like mean no value in a column of numbers",
    "wall to moment": "no zone is written; Spark adds that of the session",
    "nothing to number": "NaN means no value unless --null says otherwise",
    "names": "DuckDB guesses whether there is a header",
    "rows": "a line end within quotes ends no row",
}
"""Why our answer is another one, by the kind of the first value that differs."""
WHY_OF_JSON: Mapping[str, str] = {
    **WHY,
    "text to day": "a string stays a string",
    "text to wall": "a string stays a string",
    "text to moment": "a string stays a string",
    "text to number": "a number that no type holds is text",
    "text to text": "what is no string stays as it is written",
    "text to map": "an object without fields tells no columns",
    "number to number": "no digit is lost",
    "struct to struct": "as in columns of their own",
    "names": "records with other fields are told one by one",
}
OWN_WHY: Mapping[str, str] = {
    "digits39.csv": "39 digits are more than a DECIMAL holds",
    "byte_order_mark.csv": "the mark stands before the quote of the first name",
    "durations": "Parquet has no such type; the files of pyarrow say what the numbers are",
    "decimals_of_76": "DuckDB has at most 38 digits, and takes doubles",
    "uuids": "UUIDs are 16 bytes here",
    "names_by_capitals": "a reader can tell them apart; a target for Spark is refused",
    "empty_lines_of_one_column.csv": "an empty line of a single column is a row",
    "year_zero.csv": "the calendars of Python and SQL begin with the year 1",
    "spaces_around_numbers.csv": "a space belongs to a text",
    "space_before_a_quote.csv": "a quote counts at the beginning of a field alone",
    "csvkit/test_header_newline.csv": "a line end within quotes ends no row; `f` is a letter",
    "nan_and_inf.csv": "infinity is no number of SQL; DuckDB takes it for the last of all days",
    "names_in_quotes.csv": "quotes are doubled, as RFC 4180 has it",
}
"""Why, where one file has a reason of its own."""


class File(NamedTuple):
    """One file of the corpus, in a source of its own."""

    name: str
    path: Path
    reading: Reading
    declared: str = ""
    """The columns that are given, in Spark's DDL; none to infer them."""

    @property
    def kind(self) -> str:
        """The heading under which it stands."""
        if self.name in PARQUET or self.path.suffix == ".parquet":
            return "Parquet"
        return "CSV" if self.path.suffix == ".csv" else "JSON lines"


def files(place: Path) -> Iterator[File]:
    """Every file, laid into folders below the place."""
    for number, answer in enumerate(EVERY):
        (place / str(number)).mkdir(parents=True)
        reading = laid(answer, place / str(number))
        path = next(reading.source.iterdir())
        declared = answer.get("options", {}).get("schema", "")
        yield File(_name(answer), path, reading, declared)
    for key in PARQUET:
        reading = Reading(place / key)
        reading.source.mkdir(parents=True)
        yield File(key, write(key, reading.source), reading)


def _name(answer: Answer) -> str:
    is_ours = answer["folder"] != "public"
    return Path(answer["file"]).name if is_ours else str(answer["file"])


class Read(NamedTuple):
    """The result of a reader: a file's rows, or why there are none; the rows that it rejects."""

    table: pa.Table | None
    refused: str = ""
    rejected: tuple[str, ...] = ()


def ours(file: File) -> Read:
    """By `epochgate ingest --on-bad-row reject`."""
    reading = file.reading
    try:
        enumeration = reading.enumeration(on_bad_row="reject")
        reads = [
            one
            for split in enumeration.discover()
            for one in SplitReader(
                enumeration.layout_of(split), on_bad_row="reject", encoding=reading.encoding
            ).read(split)
        ]
    except EpochgateError as error:
        return Read(None, _cause(error))
    layout = enumeration.layout
    schema = pa.schema([]) if layout is None else layout.output_schema
    rejected = [f"line {bad.line}: {bad.reason}" for one in reads for bad in one.rejected]
    return Read(pa.Table.from_batches([one.batch for one in reads], schema), "", tuple(rejected))


def _cause(error: EpochgateError) -> str:
    """The cause alone, without type and place."""
    said = str(getattr(error, "cause", error)).replace(repr(error.args[0]), "it")
    return re.sub(r"^(?:\w+: |it: )*(?=\w)", "", said).split(". ")[0]


def of_duckdb(file: File) -> Read:
    """By `FROM 'file'`, with the options that the file needs."""
    options = file.reading.options
    names = {"delimiter": "delim", "quote": "quote", "escape": "escape", "header": "header"}
    given = [f"{names[name]} = {_sql(options[name])}" for name in names if name in options]
    if "null" in options:
        given.append(f"nullstr = [{', '.join(map(_sql, options['null']))}]")
    if "encoding" in options:
        given.append(f"encoding = {_sql(options['encoding'])}")
    if file.declared:
        given.append(f"columns = {_columns(file.reading.schema)}")
    function = {"CSV": "read_csv", "Parquet": "read_parquet"}.get(file.kind, "read_json")
    query = f"from {function}({', '.join([_sql(file.path), *given])})"
    try:
        with duckdb.connect() as connection:
            connection.execute("set timezone = 'UTC'")
            return Read(connection.sql(query).to_arrow_table())
    except (duckdb.Error, pa.ArrowException) as error:
        return Read(None, str(error).replace(str(file.path), file.path.name))


def _columns(schema: pa.Schema | None) -> str:
    """Columns as DuckDB declares them, with the types that it has for those of Arrow."""
    assert schema is not None
    with duckdb.connect() as connection:
        connection.register("declared", schema.empty_table())
        kinds = connection.sql("from declared").types
    named = zip(schema.names, kinds, strict=True)
    return "{" + ", ".join(f"{_sql(name)}: {_sql(kind)}" for name, kind in named) + "}"


def _sql(value: Any) -> str:
    return (
        str(value).lower() if isinstance(value, bool) else "'" + str(value).replace("'", "''") + "'"
    )


def by_spark(spark: Any) -> Callable[[File], Read]:
    """By `spark.read` with `header` and `inferSchema`, and the options that the file needs."""
    names = {"delimiter": "sep", "quote": "quote", "escape": "escape", "encoding": "encoding"}

    def read(file: File) -> Read:
        if file.name in ENDS_SPARK:
            return Read(None, "its JVM ends by a StackOverflowError")
        options = file.reading.options
        given = {names[name]: options[name] for name in names if name in options}
        if "null" in options:
            given["nullValue"] = options["null"][0]
        reader = spark.read.options(**given)
        if file.declared:
            reader = reader.schema(file.declared)
        try:
            if file.kind == "CSV":
                header = options.get("header", True)
                frame = reader.csv(str(file.path), header=header, inferSchema=True)
            elif file.kind == "Parquet":
                frame = reader.parquet(str(file.path))
            else:
                frame = reader.json(str(file.path))
            return Read(frame.toArrow())
        except Exception as error:  # noqa: BLE001  # of whichever type Spark's are
            return Read(None, _cause_in_spark(str(error)))

    return read


def _cause_in_spark(said: str) -> str:
    """Return what went wrong, without the places and numbers of Java."""
    for pattern in (
        r"the last time with: (?:[\w.]+: )?(.*?)(?: SQLSTATE|\n)",
        r"(\[[A-Z_.]+\] .*?)(?: SQLSTATE|\n)",
        r"Caused by: (?:[\w.$]+\.)?(\w+: .*)",
    ):
        if found := re.search(pattern, said, re.DOTALL):
            return re.sub(r"file:/\S*/", "", found[1]).split("\n")[0]
    return re.sub(r"\bo\d+\.", "", said.split("\n")[0])


def told(read: Read) -> str:
    """Return what we make of a file, in few words."""
    if read.table is None:
        return f"{REFUSES}: {_short(read.refused)}"
    rows = [
        ", ".join(shown(of_scalar(column[number])) for column in read.table.columns)
        for number in range(read.table.num_rows)
    ]
    parts = [code(" / ".join(rows))] if rows else ["no rows"]
    parts += [f"rejects {_short(rejected)}" for rejected in read.rejected[:1]]
    return "; ".join(parts)


def compared(mine: Read, theirs: Read, *, by_name: bool) -> tuple[str, str]:
    """Return what another reader makes of the file, beside ours; and the kind of the first
    difference.
    """
    if theirs.table is None:
        said = f"{REFUSES}: {_short(theirs.refused)}"
        return (TOO if mine.table is None else said), ""
    rows = _counted(theirs.table.num_rows)
    if mine.table is None or mine.rejected:
        return f"reads {rows}", ""
    one, other = mine.table, theirs.table
    if not one.num_rows and not other.num_rows:
        return SAME, ""
    if sorted(one.column_names) == sorted(other.column_names):
        other = other.select(one.column_names)  # Spark orders the fields of JSON by name
    if by_name and one.column_names != other.column_names:
        return f"columns {code(', '.join(other.column_names))}", "names"
    if one.num_rows != other.num_rows:
        return rows, "rows"
    for column in range(one.num_columns):
        for number in range(one.num_rows):
            cells = [of_scalar(table.column(column)[number]) for table in (one, other)]
            if cells[0] != cells[1]:
                before, after = (code(shown(cell, is_quoted=True)) for cell in cells)
                return f"{before} is {after}", _kinds(*cells)
    return SAME, ""


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"


def _kinds(mine: Cell, theirs: Cell) -> str:
    return " to ".join("nothing" if cell is None else str(cell[0]) for cell in (mine, theirs))


def _short(text: str) -> str:
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= REASON_MAX else line[: REASON_MAX - 1] + "…"


def measured(file: File, mine: Read, by: Mapping[str, Read]) -> dict[str, str]:
    """Return what is kept of a file."""
    by_name, name = file.reading.options.get("header", True), file.name
    row = {"ours": told(mine)}
    kinds = []
    for reader, read in by.items():
        row[reader], kind = compared(mine, read, by_name=by_name)
        kinds.append(kind)
    why = WHY_OF_JSON if file.kind == "JSON lines" else WHY
    differing = dict.fromkeys(why[kind] for kind in kinds if kind in why)
    row["why"] = OWN_WHY.get(name) or "; ".join(differing)
    return row


def page(text: str, kept: Found, place: Path) -> str:
    """The page with these tables in it."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{tables(kept, place)}\n{END}{after}"


def tables(kept: Found, place: Path) -> str:
    """Sums, and for each format the files of which readers make different things."""
    parts = [_sums(kept)]
    every = list(files(place))
    for kind in ("CSV", "JSON lines", "Parquet"):
        of_kind = [one for one in every if one.kind == kind]
        differing = [one for one in of_kind if not _agree(kept[one.name])]
        if not of_kind:
            continue
        alike = [f"`{one.name}`" for one in of_kind if _agree(kept[one.name])]
        agreeing = f"All three make the same of {len(alike)} files: {', '.join(alike)}."
        rows = [HEADER, ("---",) * len(HEADER), *(_row(one, kept[one.name]) for one in differing)]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        parts += [f"## {kind}", *(["\n".join(lines)] if differing else [])]
        parts.append(agreeing)
    return "\n\n".join(parts)


def _agree(row: Mapping[str, str]) -> bool:
    return {row["spark"], row["duckdb"]} <= {SAME, TOO}


def _row(file: File, row: Mapping[str, str]) -> tuple[str, ...]:
    return (f"`{file.name}`", _content(file), row["ours"], row["spark"], row["duckdb"], row["why"])


def _content(file: File) -> str:
    if file.kind != "Parquet":
        data = file.path.read_bytes()
        text = data.decode("utf-8", "backslashreplace").rstrip("\r\n")
        return code(text.replace("\r", "␍").replace("\n", "⏎").replace("\ufeff", "<BOM>"))
    if file.name in PARQUET and not PARQUET[file.name].refused:
        return code(", ".join(str(one.type) for one in PARQUET[file.name].table.schema))
    return f"{file.path.stat().st_size} bytes"


def _sums(kept: Found) -> str:
    rows = list(kept.values())
    other = {
        reader: sum(row[reader] not in (SAME, TOO) for row in rows)
        for reader in ("spark", "duckdb")
    }
    return (
        f"{len(rows)} files. All three readers make the same of {sum(map(_agree, rows))}; Spark "
        f"makes something else of {other['spark']}, DuckDB of {other['duckdb']}."
    )


def main() -> None:
    """Read, or make the page alone."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.corpus.page")
    parser.add_argument("--write", action="store_true", help="let all three read")
    parser.add_argument("--table", action="store_true", help="make the page of what is kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.write:
            found = by_all(Path(folder) / "read")
            KEPT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(page(text, kept(), Path(folder) / "shown"), encoding="utf-8")


def by_all(place: Path) -> Found:
    """Return what all three readers make of every file."""
    from epochgate.spark.session import local_session

    with local_session("local[2]") as spark:
        spark.sparkContext.setLogLevel("OFF")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        of_spark = by_spark(spark)
        return {
            one.name: measured(one, ours(one), {"spark": of_spark(one), "duckdb": of_duckdb(one)})
            for one in files(place)
        }


def kept() -> Found:
    """Return what is kept of the last reading, by the names of files."""
    found: Found = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    main()
