"""The objects of a store that count as files of a source; nothing is read of them.

Those below the prefix that a URL names, those that match a pattern, or the one named. What does not
count is as in directories, see `finding`; an empty object, such as a console makes for a folder,
never does. One listing tells all that is asked for of each object. Runs on the driver.
"""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterator

from epochgate.errors import UsageError
from epochgate.runtime.objects.client import ObjectStatus, ReadableObjects
from epochgate.runtime.objects.errors import ObjectStoreRefused
from epochgate.runtime.objects.log import FOLDER as LOG
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.errors import SourceMissing, SourceUnreadable
from epochgate.spark.files.finding import (
    Listing,
    matches_names,
    reason_not_to_read,
    told,
)


class SourceIsTarget(UsageError):
    """A source in an object store that a job of epochgate writes into: URL."""

    def __str__(self) -> str:
        return (
            f"source {self.args[0]!r} is the target of a job of epochgate. In an object store it "
            "also holds files that are not committed, which only its log tells apart: read it "
            "with epochgate.read, or let that job write into a directory or a table."
        )


def bucket_and_key(url: str) -> tuple[str, str]:
    """The URL of the bucket, and what comes after it, taken literally.

    >>> bucket_and_key("s3://bucket/in/a%20b.csv")
    ('s3://bucket', 'in/a%20b.csv')
    """
    scheme, _, rest = url.partition("://")
    bucket, _, key = rest.partition("/")
    return f"{scheme}://{bucket}", key.strip("/")


def root_of_url(source: str) -> str:
    """The part of a URL before its first pattern.

    >>> root_of_url("s3://bucket/in/dt=*/*.csv"), root_of_url("s3://bucket/in")
    ('s3://bucket/in', 's3://bucket/in')
    """
    parts = source.split("/")
    plain = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return "/".join(parts[:plain])


def find_objects(objects: ReadableObjects, source: str, *, may_be_none: bool) -> Listing:
    """The objects by URL of a source in the bucket `objects`.

    Raises SourceMissing, SourceUnreadable, SourceIsTarget, and ObjectStoreError if the store does
    not answer.
    """
    bucket, _ = bucket_and_key(source)
    listing = Listing({}, {})
    try:
        found = {f"{bucket}/{one.key}": (one, why) for one, why in _matching(objects, source)}
    except ObjectStoreRefused as error:
        raise SourceUnreadable(source, error.strerror) from error
    for url, (one, why) in sorted(found.items(), key=lambda item: item[0]):
        if why is None:
            listing.files[url] = Stamp(one.size_bytes, one.modified_ns, one.etag)
        else:
            listing.unread[url] = why
    if not listing.files and not may_be_none:
        raise SourceMissing(source, told(Counter(listing.unread.values())))
    return listing


def is_object_of(source: str, url: str) -> bool:
    """Return whether `find_objects` would have this URL among its files, if it is there.

    >>> is_object_of("s3://in/a", "s3://in/a/b.csv"), is_object_of("s3://in/a", "s3://in/ab.csv")
    (True, False)
    >>> is_object_of("s3://in/a/*.csv", "s3://in/a/b.csv"), is_object_of("s3://in", "s3://in/_b")
    (True, False)
    """
    if url == source:
        return True
    root, is_pattern = root_of_url(source), root_of_url(source) != source
    if not url.startswith(f"{root}/"):
        return False
    below = url[len(root) :].lstrip("/")
    if is_pattern and not matches_names(source.split("/"), url.split("/")):
        return False
    return bool(below) and reason_not_to_read(below) is None


def _matching(objects: ReadableObjects, source: str) -> Iterator[tuple[ObjectStatus, str | None]]:
    root, (_, key) = root_of_url(source), bucket_and_key(source)
    is_pattern = root != source
    if glob.has_magic(key) and (one := _named(objects, key)) is not None:
        yield one, None  # as in a directory, a name that is there is no pattern
        return
    _, folder = bucket_and_key(root)
    has_any = False
    for status in objects.find(folder):
        has_any = True
        below = status.key.removeprefix(folder).lstrip("/")
        if not is_pattern and below.startswith(f"{LOG}/"):
            raise SourceIsTarget(source)
        if below and (not is_pattern or matches_names(key.split("/"), status.key.split("/"))):
            yield status, reason_not_to_read(below)
    if not has_any and not is_pattern and (one := _named(objects, key)) is not None:
        yield one, None


def _named(objects: ReadableObjects, key: str) -> ObjectStatus | None:
    if not key:
        return None
    try:
        return objects.status(key)
    except FileNotFoundError:
        return None
