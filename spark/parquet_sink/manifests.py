"""What each checkpoint has committed, written beside a directory target before it is visible.

Decides the form of a manifest. One is kept for each checkpoint, also once a compaction has brought
its files together with others: a commit that is asked for again is recognised by it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.files.checkpoint_directory import earlier_checkpoint_name
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.errors import CommittableDamaged


def manifest_path(working_directory: str, checkpoint: int) -> str:
    """Where the manifest of a checkpoint lies."""
    name = f"{earlier_checkpoint_name(checkpoint)}.json"
    return os.path.join(working_directory, "manifests", name)


def write_manifest(
    files: FileSystem,
    working_directory: str,
    checkpoint: int,
    run_id: str,
    committables: Iterable[Committable],
) -> None:
    """Say durably what this checkpoint is about to show."""
    manifest = {
        "run": run_id,
        "checkpoint": checkpoint,
        "committables": [committable.to_list() for committable in committables],
    }
    path = manifest_path(working_directory, checkpoint)
    files.write_bytes_durably(path, json.dumps(manifest).encode())


def read_manifest(
    files: FileSystem, working_directory: str, checkpoint: int
) -> tuple[str, list[Committable]]:
    """The run and the files of a visible checkpoint. Raises CommittableDamaged."""
    path = manifest_path(working_directory, checkpoint)
    try:
        values: dict[str, Any] = json.loads(files.read_bytes(path))
        found = [Committable.from_list(value) for value in values["committables"]]
        return str(values["run"]), found
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise CommittableDamaged(path, "a manifest", repr(error)) from error
