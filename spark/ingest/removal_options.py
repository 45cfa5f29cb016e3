"""The removal of committed files, as the options of an ingestion ask for it.

Decides where it makes no sense: files that change, an archive that is read again or cannot be
reached by a rename. Runs on the driver, before anything is claimed.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable

from epochgate.runtime.objects.client import ObjectStore, is_remote, is_url, open_url
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.spark.files.finding import reason_not_to_read
from epochgate.spark.files.object_finding import bucket_and_key, root_of_url
from epochgate.spark.ingest.found_files import given_up_in
from epochgate.spark.ingest.options import IngestMisconfigured, IngestOptions, absolute
from epochgate.spark.ingest.removing import MOVE, AfterCommit, Removal


class ArchiveInSource(IngestMisconfigured):
    """The job would read what it archives."""


def removal_of(
    options: IngestOptions, open_objects: Callable[[str], ObjectStore] = open_url
) -> Removal | None:
    """The removal that the options ask for; none if files stay. Raises IngestMisconfigured."""
    asked, source = options.committed_files, options.source_path
    if asked is None:
        return None
    if is_remote(source) and not is_url(source):
        raise IngestMisconfigured(
            f"--after-commit {asked} (committed_files): files at {source!r} are read only; leave "
            "it out, or mount the files as a directory"
        )
    root = _root(source)
    if not asked.startswith(MOVE):
        return Removal(root, None, open_objects)
    to = absolute(asked.removeprefix(MOVE))
    _require_reachable(source, to)
    if _may_be_read(_real(source), _real(root), _real(to)):
        raise ArchiveInSource(
            f"--after-commit {asked} (committed_files): {to!r} lies in the source {source!r}, so "
            "the job would read the files again. Give a directory outside of it, or one whose name "
            "begins with '_', which is not read"
        )
    for written in (options.target_path, options.rejected_path):
        if _is_within(_real(to), _real(written)):
            raise IngestMisconfigured(
                f"--after-commit {asked} (committed_files): {to!r} lies in {written!r}, which this "
                "job writes. Give a directory outside of it"
            )
    return Removal(root, to, open_objects)


def after_commit_of(
    options: IngestOptions,
    restored: CompletedCheckpoint | None,
    open_objects: Callable[[str], ObjectStore],
) -> AfterCommit | None:
    """The fate of committed files in a start from a checkpoint; none if files stay."""
    removal = removal_of(options, open_objects)
    if removal is None:
        return None
    return AfterCommit(removal, options.committed_files_age_s, given_up_in(restored))


def _root(source: str) -> str:
    """The part of the source that names in the archive leave out."""
    if is_url(source):
        return root_of_url(source)
    if os.path.isfile(source):
        return os.path.dirname(source)
    root = source
    while glob.has_magic(root) and not os.path.lexists(root):
        root = os.path.dirname(root)
    return root


def _require_reachable(source: str, to: str) -> None:
    if is_remote(source) != is_remote(to):
        raise IngestMisconfigured(
            f"--after-commit move:{to} (committed_files): the source {source!r} and the archive "
            "are not both directories or both in one bucket; name an archive that is"
        )
    if is_url(source) and bucket_and_key(source)[0] != bucket_and_key(to)[0]:
        raise IngestMisconfigured(
            f"--after-commit move:{to} (committed_files): objects of {source!r} are moved within "
            "their bucket; name an archive there, or copy them elsewhere by a rule of the store"
        )


def _may_be_read(source: str, root: str, to: str) -> bool:
    """Return whether the source may find what is in the archive. Names there are below `to` as
    they were below `root`, so a pattern without `**` finds them only if both are the same.
    """
    is_pattern = source != root and glob.has_magic(source)
    if to == root or (is_pattern and "**" not in source):
        return to == root
    if source != root and not is_pattern:
        return False
    if is_url(source) and not is_pattern and to == root.rpartition("/")[0]:
        # An object of that URL would be moved to itself; a folder has no extension.
        return "." in root.rpartition("/")[2]
    below = os.path.relpath(to, root) if _is_within(to, root) else ""
    return bool(below) and reason_not_to_read(below) is None


def _real(path: str) -> str:
    """The path without links, which lead to the same files by other names."""
    return path if is_remote(path) else os.path.realpath(path)


def _is_within(path: str, directory: str) -> bool:
    return f"{path}/".startswith(f"{directory.rstrip('/')}/")
