"""The options that prune a source: which go together, and what they come to."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epochgate.cli import main
from epochgate.runtime.source.batches.planned import SplitFilter
from epochgate.runtime.steering import ControlMissing, ControlUnusable, ValueRefused
from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.access import FileAccess
from epochgate.spark.ingest.file_source import to_source_split
from epochgate.spark.streaming import ConditionWrong, Control, OptionsWrong
from epochgate.spark.streaming.source_filter import FilePruning
from epochgate.spark.streaming.source_options import SourceOptions, parse_source
from tests.runtime.objects.stores import Observed
from tests.runtime.steering.coordinators import Provider

WHERE = "region IN :regions AND amount >= :limit"
PAGES = "tests.spark.streaming.pages_source:Pages"
CHOSEN = "tests.spark.streaming.pages_source:ChosenPages"


def parsed(folder: Path, options: dict[str, str], source: str = "landing") -> SourceOptions:
    return parse_source({"source": source, "state": str(folder / "state"), **options})


def control_in(folder: Path, **others: Any) -> Control:
    values = {"limit": 900, "regions": None, "unused": 1}
    return Control("pricing", values, store=str(folder / "controls"), **others)


def newest(options: SourceOptions) -> SplitFilter:
    assert options.filter is not None
    return options.filter.newest("stream")()


def test_a_filter_has_those_values_of_the_control_that_its_condition_names(tmp_path: Path) -> None:
    control = control_in(tmp_path)
    options = parsed(tmp_path, control.source_options(WHERE))
    assert newest(options) == SplitFilter(0, WHERE, {"limit": 900, "regions": None})
    control.update(limit=700, unused=2)
    assert newest(options) == SplitFilter(1, WHERE, {"limit": 700, "regions": None})


def test_a_source_of_the_users_is_given_all_values(tmp_path: Path) -> None:
    options = parsed(tmp_path, control_in(tmp_path).source_options(), CHOSEN)
    assert newest(options) == SplitFilter(0, "", {"limit": 900, "regions": None, "unused": 1})


def test_a_condition_without_parameters_needs_no_control(tmp_path: Path) -> None:
    assert newest(parsed(tmp_path, {"filter": "region = 'north'"})) == SplitFilter(
        0, "region = 'north'", {}
    )
    assert parsed(tmp_path, {}).filter is None


@pytest.mark.parametrize(
    ("source", "options", "told"),
    [
        ("in", {"control": "c"}, "control='c' and controlStore='' go together"),
        ("in", {"control": "c", "controlStore": "s"}, "'c' prunes no files without a condition"),
        ("in", {"filter": WHERE}, "names limit, regions, and no control has their values"),
        ("in", {"filter": "a !"}, "'!' stands where an operator should be"),
        (CHOSEN, {"filter": "a = 1"}, r"judges its splits in may_match\(split, values\)"),
    ],
)
def test_options_that_do_not_go_together_are_refused_with_what_to_write(
    tmp_path: Path, source: str, options: dict[str, str], told: str
) -> None:
    with pytest.raises((OptionsWrong, ConditionWrong), match=told):
        parsed(tmp_path, options, source)


def test_a_source_that_does_not_look_at_the_values_is_refused(tmp_path: Path) -> None:
    options = parsed(
        tmp_path, {**control_in(tmp_path).source_options(), "source.folder": "pages"}, PAGES
    )
    with pytest.raises(OptionsWrong, match=r"override Pages\.may_match\(split, values\)"):
        options.pruning(options.enumerated("stream"))


def test_a_control_gives_no_options_for_values_that_it_does_not_have(tmp_path: Path) -> None:
    store = str(tmp_path / "controls")
    with pytest.raises(ControlUnusable, match="'pricing' has no initial values"):
        Control("pricing", store=store).source_options("amount >= :limit")
    with pytest.raises(ConditionWrong, match="no value 'least' among limit, regions, unused"):
        control_in(tmp_path).source_options("amount >= :least")
    with pytest.raises(ControlUnusable, match="its splits were pruned before"):
        control_in(tmp_path, coordinator=Provider()).source_options(WHERE)


def test_other_processes_update_a_control_that_only_prunes_from_its_first_batch_on(
    tmp_path: Path,
) -> None:
    options = parsed(tmp_path, control_in(tmp_path).source_options(WHERE))
    store = str(tmp_path / "controls")
    other = Control("pricing", store=store)
    with pytest.raises(ControlMissing):
        other.update(limit=700)
    newest(options)  # as a batch is planned
    with pytest.raises(ValueRefused, match="has no value 'limt'; it has limit, regions, unused"):
        other.update(limt=700)
    with pytest.raises(ValueRefused, match="'high' is a str"):
        other.update(limit="high")
    assert main(["control", "set", store, "pricing", 'regions=["north"]']) == 0
    assert other.update(limit=700) == 2
    assert newest(options).values == {"limit": 700, "regions": ["north"]}


def test_other_processes_see_the_initial_values_of_the_newest_start(tmp_path: Path) -> None:
    store = str(tmp_path / "controls")
    for initial in ({"limit": 1}, {"limit": True}, {"limit": True, "region": "north"}):
        control = Control("pricing", initial, store=store)
        for _ in range(2):
            newest(parsed(tmp_path, control.source_options("amount >= :limit")))
    other = Control("pricing", store=store)
    with pytest.raises(ValueRefused, match="has limit = True, a bool"):
        other.update(limit=2)
    assert other.update(region="south") == 1


def test_a_query_that_may_only_read_its_control_is_pruned_by_it(tmp_path: Path) -> None:
    control_in(tmp_path).update(limit=700)
    options = parsed(tmp_path, control_in(tmp_path).source_options(WHERE))
    (tmp_path / "controls" / "pricing" / "sources").write_text("no directory can be made here")
    assert newest(options).values == {"limit": 700, "regions": None}


def test_the_footers_of_the_files_of_a_batch_are_read_side_by_side(tmp_path: Path) -> None:
    memory = Observed()
    for number in range(3):
        written = pa.BufferOutputStream()
        pq.write_table(pa.table({"amount": [10 * number]}), written)
        memory.open("s3://jobs").put(f"landing/{number}.parquet", written.getvalue().to_pybytes())
    access = FileAccess(memory.open)
    enumeration = FileEnumeration("s3://jobs/landing", access=access)
    splits = [
        to_source_split(split, enumeration.layout_of(split)) for split in enumeration.discover()
    ]
    memory.requests.clear()
    together, met = threading.Barrier(3), set()

    def meet(kind: str, key: str) -> None:
        if key not in met:
            met.add(key)
            together.wait(timeout=60)

    memory.before = meet
    by = SplitFilter(0, "amount >= 10", {})
    assert FilePruning(access).matching(splits, by) == [False, True, True]
    assert len(met) == 3
