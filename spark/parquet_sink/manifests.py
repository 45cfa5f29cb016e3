"""The manifest of what each checkpoint has committed, written beside a directory target before it
is visible.

Decides the form of a manifest. One is kept for each checkpoint, also once a compaction has brought
its files together with others: a commit that is asked for again is recognised by it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from epochgate.runtime.filesystem import FileSystem
from epochgate.spark.files.checkpoint_directory import (
    earlier_checkpoint_name,
    earlier_checkpoint_of,
)
from epochgate.spark.parquet_sink.checked_json import checked_text, read_checked
from epochgate.spark.parquet_sink.committable import Committable
from epochgate.spark.parquet_sink.errors import TargetDamaged

EARLIER_MANIFEST_NAME = "_manifest.json"
"""The manifest of versions 1 and 2, in the checkpoint's directory."""


def manifest_path(working_directory: str, checkpoint: int) -> str:
    """Return the path where the manifest of a checkpoint lies."""
    name = f"{earlier_checkpoint_name(checkpoint)}.json"
    return os.path.join(working_directory, "manifests", name)


def manifests_in(files: FileSystem, working_directory: str) -> set[int]:
    """The checkpoints that have a manifest."""
    directory = os.path.join(working_directory, "manifests")
    names = files.list_directory(directory) if files.exists(directory) else []
    found = [earlier_checkpoint_of(name[: -len(".json")]) for name in names if ".json" in name]
    return {checkpoint for checkpoint in found if checkpoint is not None}


def move_earlier_manifests(
    files: FileSystem, working_directory: str, visible: Mapping[int, str]
) -> None:
    """Move the manifests of versions 1 and 2; `visible`: checkpoint -> its directory."""
    manifests = os.path.join(working_directory, "manifests")
    files.make_directory(manifests)
    there = set(files.list_directory(manifests))
    for checkpoint, directory in visible.items():
        earlier = os.path.join(directory, EARLIER_MANIFEST_NAME)
        path = manifest_path(working_directory, checkpoint)
        if os.path.basename(path) not in there and files.exists(earlier):
            files.rename(earlier, path)
            files.fsync_directory(manifests)


def write_manifest(
    files: FileSystem,
    working_directory: str,
    checkpoint: int,
    run_id: str,
    committables: str,
) -> None:
    """Say durably what this checkpoint is about to show; `committables` as `as_text` has them."""
    begun = json.dumps({"run": run_id, "checkpoint": checkpoint}).removesuffix("}")
    path = manifest_path(working_directory, checkpoint)
    files.write_bytes_durably(path, checked_text(f'{begun}, "committables": [{committables}]}}'))


def read_manifest(
    files: FileSystem, working_directory: str, checkpoint: int
) -> tuple[str, list[Committable]]:
    """The run and the files of a visible checkpoint. Raises TargetDamaged."""
    path, what = manifest_path(working_directory, checkpoint), "a manifest"
    values = read_checked(files, path, what)
    try:
        found = [Committable.from_list(value) for value in values["committables"]]
        return str(values["run"]), found
    except (ValueError, KeyError, TypeError) as error:
        raise TargetDamaged(path, what, repr(error), "") from error
