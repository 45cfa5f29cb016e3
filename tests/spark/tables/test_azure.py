"""Files, checkpoints and a Delta table in Azure's blob storage: each row once, and one driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest

from epochgate.environment import set_in_environment
from epochgate.runtime.objects.client import open_url, require_conditions
from epochgate.runtime.objects.files import ObjectFiles
from epochgate.spark.delta_sink import DeltaTarget, TableTakenOver
from epochgate.spark.parquet_sink import StagingWriter
from epochgate.spark.parquet_sink.gathered import CommitIn
from tests.runtime.objects.azurite import CONTAINER, URL, Client, azurite
from tests.spark.ingest.simulated import SimulatedIngest, options_for, random_kills
from tests.spark.tables import delta_replay

pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("azurite")
    with azurite(folder) as (variables, client), set_in_environment(variables):
        yield client


@pytest.mark.parametrize("url", [f"{URL}/probes", f"az://{CONTAINER}/probes"])
def test_conditions_are_kept_and_what_was_written_is_listed(client: Client, url: str) -> None:
    objects = open_url(url)
    require_conditions(objects)
    objects.put("folder/name", b"content")
    assert objects.get("folder/name") == b"content"
    (found,) = objects.find("folder")
    assert (found.key, found.size_bytes) == ("folder/name", 7)
    objects.delete("folder/name")


@pytest.mark.parametrize("commit_in", get_args(CommitIn))
@pytest.mark.parametrize("kind", ["delta:", ""])
def test_all_rows_arrive_and_a_second_run_adds_the_new_ones(
    tmp_path: Path, client: Client, kind: str, commit_in: CommitIn
) -> None:
    place = f"{kind.removesuffix(':')}-{commit_in}"
    source = open_url(f"{URL}/{place}/in")
    for begin in range(0, 30, 10):
        lines = "".join(f"{x},text {x}\n" for x in range(begin, begin + 10))
        source.put(f"{begin:03}.csv", f"x,name\n{lines}".encode())
    for name, expected in (("first", 30), ("second", 10), ("third", 0)):
        options = options_for(
            tmp_path,
            source=f"{URL}/{place}/in",
            target=f"{kind}{URL}/{place}/out",
            checkpoint_directory=f"{URL}/{place}/checkpoints",
            commit_in=commit_in,
        )
        simulated = SimulatedIngest(options, name=name)
        simulated.run(random_kills(simulated, 2, share=0.05))
        result = simulated.leave()
        assert result.state == "finished", result.reason
        if name == "first":
            source.put("new.csv", b"x,name\n" + b"".join(b"%d,new\n" % x for x in range(30, 40)))
        else:
            assert result.rows_committed == expected
    if kind:
        copied = client.copy(f"{place}/out", tmp_path / "copies")
        assert delta_replay.rows(copied, "x") == list(range(40))


def test_of_two_drivers_of_a_delta_table_one_continues(tmp_path: Path, client: Client) -> None:
    url = f"{URL}/two"

    def staged(run: str, value: int) -> StagingWriter:
        writer = StagingWriter("", run, 0, value, files=ObjectFiles(open_url(url)), in_place=True)
        writer.write(pa.RecordBatch.from_pydict({"x": [value]}))
        return writer

    zombie, successor = (DeltaTarget(url, "job", run) for run in ("r1", "r2"))
    zombie.claim(None)
    successor.claim(None)
    with pytest.raises(TableTakenOver):
        zombie.commit(1, staged("r1", 7).prepare_commit(1))
    assert successor.commit(1, staged("r2", 1).prepare_commit(1))
    last = DeltaTarget(url, "job", "r3")
    last.claim(1)
    with pytest.raises(TableTakenOver):
        successor.commit(2, staged("r2", 8).prepare_commit(1))
    assert last.commit(2, staged("r3", 2).prepare_commit(1))
    assert delta_replay.rows(client.copy("two", tmp_path / "copies"), "x") == [1, 2]
