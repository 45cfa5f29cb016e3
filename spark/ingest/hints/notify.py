"""The queue of hints that --notify names.

Decides how it is written, and for which sources each kind is. The libraries are imported when a
queue is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from epochgate.errors import UsageError
from epochgate.runtime.objects.client import ObjectStore, is_remote, is_url
from epochgate.spark.extras import library
from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.object_finding import bucket_and_key
from epochgate.spark.ingest.hints.hint import Hints
from epochgate.spark.ingest.hints.inotify import InotifyHints
from epochgate.spark.ingest.hints.newer_names import NewerNames
from epochgate.spark.ingest.hints.sqs import SqsHints

SQS: Final = "sqs:"
INOTIFY: Final = "inotify"
NAMES: Final = "names"


class NotifyUnusable(UsageError):
    """The value of --notify is none, or not one for the source: the value, what is wrong."""

    def __str__(self) -> str:
        given, cause = self.args
        return (
            f"--notify {given} (notify in Python): {cause}. Without it, all files of the source "
            "are listed every second, or as --list-every (list_every_s) says"
        )


class NotFollowed(UsageError):
    """An option is for sources that are followed: its name in Python."""

    def __str__(self) -> str:
        name = self.args[0]
        return (
            f"--{name.removesuffix('_s').replace('_', '-')} ({name} in Python) is for a source "
            "that is followed; give --follow (follow=True) as well, or leave it out"
        )


class ListingUnusable(UsageError):
    """The time from one listing to the next is none: the value."""

    def __str__(self) -> str:
        return (
            f"--list-every {self.args[0]:g} (list_every_s in Python) must be a number of seconds "
            "above 0"
        )


def expect_notify(
    given: str | None, list_every_s: float | None, source: str, *, is_followed: bool
) -> None:
    """Raise NotifyUnusable unless `given` can be a queue for the source, NotFollowed for one that
    is not followed, ListingUnusable, and ExtraMissing.
    """
    asked = {"list_every_s": list_every_s, "notify": given}
    if not is_followed and (name := next((n for n in asked if asked[n] is not None), None)):
        raise NotFollowed(name)
    if list_every_s is not None and not (math.isfinite(list_every_s) and list_every_s > 0):
        raise ListingUnusable(list_every_s)
    if given is not None:
        _expect_queue(given, source)


def _expect_queue(given: str, source: str) -> None:
    if given.startswith(SQS):
        if not given.removeprefix(SQS).startswith(("https://", "http://")):
            raise NotifyUnusable(given, "write sqs: and the URL of the queue, https://sqs...")
        if not source.startswith(("s3://", "s3a://")):
            raise NotifyUnusable(given, f"events of S3 tell nothing of {source!r}")
        library("boto3", what="--notify sqs:... (notify in Python)", extra="sqs")
    elif given == INOTIFY:
        if is_remote(source):
            raise NotifyUnusable(given, f"the kernel tells of local files alone, not of {source!r}")
        library("watchfiles", what="--notify inotify (notify in Python)", extra="watch")
    elif given == NAMES:
        if not is_url(source):
            raise NotifyUnusable(given, f"{source!r} cannot be listed behind a name")
    else:
        raise NotifyUnusable(given, "it is sqs:QUEUE_URL, inotify or names")


def hints_of(
    given: str | None, source: str, open_objects: Callable[[str], ObjectStore]
) -> Callable[[FileEnumeration], Hints] | None:
    """Return a function that makes the queue for an enumerator that knows these files; none if no
    queue is given.
    """
    if given is None:
        return None
    if given.startswith(SQS):
        queue_url = given.removeprefix(SQS)
        return lambda files: SqsHints(queue_url, source)
    if given == INOTIFY:
        return lambda files: InotifyHints(source)

    def newer(files: FileEnumeration) -> Hints:
        keys = (bucket_and_key(url)[1] for url in files.seen)
        return NewerNames(source, max(keys, default=""), open_objects)

    return newer
