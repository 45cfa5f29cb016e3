"""The objects that a message of an object store names.

Takes the events of S3 as S3 sends them, within a notification of SNS, and in the form of
EventBridge; stores that follow S3 send the first. A message that is none of these names nothing.
Pure functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus

_GONE = ("Removed", "Deleted", "Delete")
"""What the name of an event on an object that is not there any more has in it."""


def objects_in(body: str) -> list[tuple[str, str]]:
    """The bucket and key of each object that is there, or came, by this message.

    >>> objects_in('{"Records": [{"eventName": "ObjectCreated:Put", "s3": {"bucket": '
    ...            '{"name": "in"}, "object": {"key": "a+b%2Bc.csv"}}}]}')
    [('in', 'a b+c.csv'), ('in', 'a+b%2Bc.csv')]
    """
    try:
        return [*_objects(json.loads(body))]
    except (ValueError, RecursionError):
        return []


def _objects(message: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(message, dict):
        return
    if message.get("Type") == "Notification" and isinstance(message.get("Message"), str):
        yield from _objects(json.loads(message["Message"]))  # SNS
        return
    if isinstance(message.get("detail"), dict):  # EventBridge
        yield from _named(message["detail"], str(message.get("detail-type")))
    records = message.get("Records")
    for record in records if isinstance(records, list) else []:
        if isinstance(record, dict) and isinstance(record.get("s3"), dict):
            yield from _named(record["s3"], str(record.get("eventName")))


def _named(told: Mapping[str, Any], event: str) -> Iterator[tuple[str, str]]:
    if any(one in event for one in _GONE):
        return
    bucket, named = told.get("bucket"), told.get("object")
    if not (isinstance(bucket, dict) and isinstance(named, dict)):
        return
    name, key = bucket.get("name"), named.get("key")
    if isinstance(name, str) and isinstance(key, str):
        # S3 encodes keys, EventBridge does not: a name that is none costs a look.
        yield from ((name, one) for one in dict.fromkeys((unquote_plus(key), key)))
