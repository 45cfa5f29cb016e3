"""A landing zone as suppliers leave it: files arrive, are touched, delivered again and rewritten.

Decides what happens to which file, by chance, and keeps a ledger of what was ever delivered: each
row has to arrive once, and each bad row has to be rejected once. A file is rewritten or taken away
only when all of its rows have arrived, since what was not read of an old content is gone.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.soak.folders import Folder

ROWS_MAX: Final = 3_000
BAD_MAX: Final = 2
EPOCH: Final = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Kind:
    """A kind of files: how the row of a number looks, of what schema, and what file holds rows.

    bad_row: the text of a bad one; none where there can be none. options: of `epochgate ingest`.
    """

    extension: str
    schema: pa.Schema
    row: Callable[[int], dict[str, Any]]
    content: Callable[[Rows, list[str]], bytes]
    bad_row: Callable[[int], str] | None = None
    options: tuple[str, ...] = ()


def _nested_row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"name {number % 97}",
        "amount": Decimal(number % 10_000) / 100,
        "at": EPOCH + datetime.timedelta(seconds=number),
        "tags": [f"t{tag}" for tag in range(number % 4)],
        "props": [("a", number), ("b", None)] if number % 3 else None,
        "spot": {"x": number / 4, "label": f"at {number % 5}"},
    }


def _text_row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f'says "{number % 97}", and\nmore' if number % 50 == 7 else f"name {number % 97}",
        "score": number / 4,
        "day": (EPOCH + datetime.timedelta(days=number % 365)).date(),
    }


def _line_row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"näme {number % 97}",
        "spot": {"x": number / 4, "label": f"at {number % 5}"},
        "tags": [number % 7, number % 11],
    }


SPOT = pa.struct([("x", pa.float64()), ("label", pa.string())])
NESTED_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("amount", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("props", pa.map_(pa.string(), pa.int64())),
        ("spot", SPOT),
    ]
)
TEXT_SCHEMA = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("score", pa.float64()), ("day", pa.date32())]
)
LINE_SCHEMA = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("spot", SPOT), ("tags", pa.list_(pa.int64()))]
)


def _nested(rows: Rows, bad: list[str]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, NESTED_SCHEMA), file, row_group_size=500)
    return file.getvalue()


def _text(rows: Rows, bad: list[str]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, TEXT_SCHEMA.names)
    writer.writeheader()
    for number, row in enumerate(rows):
        writer.writerow(row)
        file.writelines(f"{text}\r\n" for text in bad[number : number + 1])
    return file.getvalue().encode()


def _lines(rows: Rows, bad: list[str]) -> bytes:
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    return "".join(f"{line}\n" for line in [*lines, *bad]).encode()


REJECTING = ("--on-bad-row", "reject", "--schema")
KINDS: Final = {
    "parquet": Kind("parquet", NESTED_SCHEMA, _nested_row, _nested),
    "csv": Kind(
        "csv",
        TEXT_SCHEMA,
        _text_row,
        _text,
        lambda number: f"{number},bad row {number},not a number,2026-01-01",
        (*REJECTING, "id BIGINT, name STRING, score DOUBLE, day DATE"),
    ),
    "jsonl": Kind(
        "jsonl",
        LINE_SCHEMA,
        _line_row,
        _lines,
        lambda number: f'{{"id": {number}, "name": "bad row", "tags": "none"}}',
        (
            *REJECTING,
            "id BIGINT, name STRING, spot STRUCT<x: DOUBLE, label: STRING>, tags ARRAY<BIGINT>",
        ),
    ),
}


class LandingZone:
    """`have_arrived(first, end, bad)` says whether the rows from a number to before another are in
    the target, and those bad rows in the table of rejected ones; an act asks once at most.
    """

    def __init__(
        self,
        source: Folder,
        ledger: Path,
        kind: Kind,
        chance: random.Random,
        have_arrived: Callable[[int, int, list[str]], bool],
    ) -> None:
        self.source, self.ledger = source, ledger
        self.bad_rows: list[str] = []
        """The text of each bad row that was ever delivered."""
        self._kind, self._chance, self._have_arrived = kind, chance, have_arrived
        self._next_id = 0
        self._contents: dict[str, tuple[int, int, list[str]]] = {}
        self._aside: dict[str, bytes] = {}
        self.done: list[str] = []
        """What was done, in order."""
        self.ledger.mkdir()
        self.deliver()

    def give_up(self, kept: Path) -> int:
        """Take the rows of the files in `kept` out of the ledger; how many there are."""
        lost = pa.concat_arrays(
            [
                chunk
                for path in sorted(kept.rglob("*.parquet"))
                for chunk in pq.read_table(path, columns=["id"], partitioning=None)["id"].chunks
            ]
        )
        for path in self.ledger.iterdir():
            rows = pq.read_table(path)
            pq.write_table(rows.filter(pc.invert(pc.is_in(rows["id"], lost))), path)
        return len(lost)

    @property
    def rows(self) -> int:
        """Return how many rows have to arrive."""
        return self._next_id

    def act(self) -> None:
        """Let one thing happen; most often a file arrives."""
        acts = (self.touch, self.deliver_again, self.rewrite, self.take_away, self.bring_back)
        self._chance.choice((self.deliver, self.deliver, *acts))()

    def deliver(self) -> None:
        """A file arrives."""
        self._write(f"{len(self._contents):05}.{self._kind.extension}")
        self.done.append("deliver")

    def touch(self) -> None:
        """A file gets another time stamp."""
        name = self._any(self._there)
        if name is not None:
            self.source.touch(name)
            self.done.append("touch")

    def deliver_again(self) -> None:
        """A file is replaced by a copy of itself."""
        name = self._any(self._there)
        if name is not None:
            self.source.put_again(name, self.source.read(name))
            self.done.append("deliver again")

    def rewrite(self) -> None:
        """A file is replaced by one with other rows, if it has arrived."""
        name = self._any(self._there)
        if name is not None and self._has_arrived(name):
            self._write(name)
            self.done.append("rewrite")

    def take_away(self) -> None:
        """A file leaves the source, if it has arrived."""
        name = self._any(self._there)
        if name is not None and self._has_arrived(name):
            self._aside[name] = self.source.read(name)
            self.source.remove(name)
            self.done.append("take away")

    def bring_back(self) -> None:
        """A file that had left comes back as it was."""
        name = self._any(self._aside)
        if name is not None:
            self.source.put(name, self._aside.pop(name))
            self.done.append("bring back")

    @property
    def _there(self) -> list[str]:
        return [name for name in self._contents if name not in self._aside]

    def _has_arrived(self, name: str) -> bool:
        return self._have_arrived(*self._contents[name])

    def _any(self, names: Iterable[str]) -> str | None:
        there = sorted(names)
        return self._chance.choice(there) if there else None

    def _write(self, name: str) -> None:
        first = self._next_id
        self._next_id += self._chance.randint(BAD_MAX, ROWS_MAX)
        rows = [self._kind.row(number) for number in range(first, self._next_id)]
        pq.write_table(
            pa.Table.from_pylist(rows, self._kind.schema), self.ledger / f"{first:09}.parquet"
        )
        bad: list[str] = []
        if self._kind.bad_row is not None:
            bad = [self._kind.bad_row(first + n) for n in range(self._chance.randint(0, BAD_MAX))]
        self.source.put(name, self._kind.content(rows, bad))
        self.bad_rows += bad
        self._contents[name] = first, self._next_id, bad
