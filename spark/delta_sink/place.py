"""The place of a Delta table: a directory, or a URL of an object store. Pure."""

from __future__ import annotations

import os

from epochgate.runtime.objects.client import is_remote, is_url
from epochgate.spark.tables.errors import TableUnusable


def place_of(path: str) -> str:
    """The table's absolute path or URL. Raises TableUnusable for a URL of another kind of store.

    >>> place_of("s3://bucket/sales/")
    's3://bucket/sales'
    """
    if is_url(path):
        return path.rstrip("/")
    if is_remote(path):
        raise TableUnusable(
            f"the Delta table {path!r}",
            "such a store has no conditional PUT, by which the log takes each entry once",
            "Give a directory of a mounted file system, or a URL of s3://, gs:// or abfss://.",
        )
    return os.path.abspath(path)
