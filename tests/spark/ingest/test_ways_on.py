"""Each way on that the failure of an ingestion names is followed to the letter, and it goes on."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epochgate.errors import EpochgateError
from epochgate.spark.ingest.options import IngestOptions
from tests.spark.ingest.simulated import (
    SimulatedIngest,
    make_older,
    options_for,
    visible,
    write_source,
)

SPOILT = "000010.csv"
"""The second of three files with ten rows each."""
FIRST, OWN, THIRD = [*range(10)], [*range(10, 20)], [*range(20, 30)]


def written(path: Path, text: str) -> None:
    path.write_text(text)
    make_older(path)


def removed(path: Path) -> None:
    shutil.move(path, path.parent.parent / "kept")


def brought_back(path: Path) -> None:
    shutil.move(path.parent.parent / "kept", path)


def torn(path: Path) -> None:
    """Compressed, and without its end."""
    data = path.read_bytes()
    path.unlink()
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(data)[:-20])
    make_older(path.with_name(f"{path.name}.gz"))


def with_a_bad_row(path: Path) -> None:
    written(path, path.read_text() + "1,text,more\n")


def grown(path: Path) -> None:
    written(path, path.read_text() + "99,text 99\n")


def repaired(path: Path) -> None:
    text = "x,name\n" + "".join(f"{n},text {n}\n" for n in OWN)
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(text.encode()))
    make_older(path.with_name(f"{path.name}.gz"))


def left(path: Path) -> None:
    """The user does nothing to the file."""


Change = Callable[[Path], None]
CASES: list[tuple[Change, bool, str, Change, dict[str, Any], list[int]]] = [
    (removed, True, "Bring it back as it was, and start again", brought_back, {}, OWN),
    (removed, True, "", left, {"on_bad_file": "skip"}, []),
    (torn, False, "", left, {"on_bad_file": "skip"}, OWN[:5]),
    (torn, False, "replace it by a repaired one", repaired, {"on_changed_file": "new"}, OWN),
    (with_a_bad_row, False, "", left, {"on_bad_row": "reject"}, OWN),
    (with_a_bad_row, False, "", left, {"on_bad_file": "skip"}, OWN),
    (grown, True, "", left, {"on_changed_file": "skip"}, []),
    (grown, True, "", left, {"on_changed_file": "new"}, [*OWN, 99]),
]


@pytest.mark.parametrize(("spoil", "is_planned", "advice", "mend", "changes", "own"), CASES)
def test_each_way_that_a_failure_names_leads_on(
    tmp_path: Path,
    spoil: Change,
    is_planned: bool,
    advice: str,
    mend: Change,
    changes: dict[str, Any],
    own: list[int],
) -> None:
    """`is_planned`: the file is spoilt when it is known, and none of its rows is taken."""
    options = options_for(tmp_path, parallelism=1)
    write_source(tmp_path)
    path = tmp_path / "in" / SPOILT
    if not is_planned:
        spoil(path)
    said = failure(options, (lambda: spoil(path)) if is_planned else lambda: None)
    assert advice in said
    for name, value in changes.items():
        assert f"--{name.replace('_', '-')} {value} ({name}" in said, said
    mend(path)
    for _ in range(2):
        ingest = SimulatedIngest(replace(options, **changes), name="again")
        ingest.run()
        result = ingest.leave()
        assert result.state == "finished", result.reason
        assert sorted({*visible(tmp_path / "out")} - {*FIRST, *THIRD}) == own
        assert {*FIRST, *THIRD} <= {*visible(tmp_path / "out")}
    assert bool(result.skipped) or "skip" not in changes.values()


def failure(options: IngestOptions, when_planned: Callable[[], None]) -> str:
    """Return what the job, or its start, fails with."""
    try:
        ingest = SimulatedIngest(options, name="first")
    except EpochgateError as error:
        return str(error)
    when_planned()
    ingest.run()
    result = ingest.leave()
    assert result.state == "failed"
    return str(result.reason)
