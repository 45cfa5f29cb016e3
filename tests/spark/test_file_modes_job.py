"""Files that the driver and tasks of a job on Spark make, and who may read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epochgate.spark.ingest import IngestOptions, start_ingest
from tests.runtime.test_file_modes import modes, usual_umask
from tests.spark.ingest.simulated import visible, write_source

pytestmark = [pytest.mark.spark, pytest.mark.extended, pytest.mark.timeout(300)]
__all__ = ["usual_umask"]


@pytest.mark.parametrize(
    ("made", "file", "directory"), [(None, 0o600, 0o700), (0o755, 0o644, 0o755)]
)
def test_all_is_private_but_a_table_whose_directory_others_may_read(
    spark: Any, tmp_path: Path, made: int | None, file: int, directory: int
) -> None:
    rows = write_source(tmp_path, files=2)
    target = tmp_path / "place" / "out"
    if made is not None:
        target.mkdir(parents=True)
        target.chmod(made)
    checkpoints = tmp_path / "kept" / "checkpoints"
    options = IngestOptions(
        source=str(tmp_path / "in"),
        target=str(target),
        checkpoint_directory=str(checkpoints),
        parallelism=2,
    )
    with start_ingest(spark, options) as handle:
        assert handle.wait().state == "finished"
    assert visible(target) == rows
    assert modes(tmp_path / "kept") == {"files": {0o600}, "directories": {0o700}}
    found = modes(target)
    assert found == {"files": {file}, "directories": {directory}}
    assert modes(target.parent / ".out.epochgate")["files"] <= {0o600, file}
