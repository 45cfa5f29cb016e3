"""The committed diagrams and tables are those of the machines as they are now."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochgate.diagrams.collection import Collection
from epochgate.diagrams.description import describe
from epochgate.diagrams.table import machine_table
from epochgate.models import MACHINES, RUNNING, VARIANTS

ALL = describe(MACHINES)
GENERATED = Path(__file__).parents[2] / "diagrams" / "generated"


@pytest.mark.parametrize("name", MACHINES)
def test_the_committed_product_of_states_and_events_is_that_of_the_machine(name: str) -> None:
    committed = (GENERATED / f"{name}.md").read_text(encoding="utf-8")
    assert machine_table(ALL[name], f"{name}.svg") == committed


def test_every_committed_file_is_fresh_and_none_is_an_orphan() -> None:
    found = Collection(ALL, (*RUNNING, *VARIANTS)).freshness(GENERATED)
    assert (found.missing, found.stale, found.orphans) == ((), (), ())


def test_the_index_shows_every_machine_and_links_to_files_that_exist() -> None:
    index = (GENERATED / "README.md").read_text(encoding="utf-8")
    links = {part.split(")")[0] for part in index.split("](")[1:]}
    assert {f"{name}.md" for name in MACHINES} <= links
    assert {f"{name}.svg" for name in MACHINES} <= links
    assert not [link for link in links if not (GENERATED / link).is_file()]
    shown = {path.name for path in GENERATED.iterdir()} - {"README.md"}
    assert shown == links, "what is not linked is not committed"
    groups = index.split("## lifecycle")[0]
    assert all(f"| [{name}]({name}.md) |" in groups for name in MACHINES)
