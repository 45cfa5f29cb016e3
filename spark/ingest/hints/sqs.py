"""Hints from a queue of Amazon SQS, or of a server that speaks its protocol, through boto3.

Decides that each message is confirmed, whatever it names: the queue is of one job. Credentials come
from where boto3 looks for them. A request is tried once; what repeats it are the rows of
`discovery`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from epochgate.spark.extras import library
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.object_finding import bucket_and_key
from epochgate.spark.ingest.hints.events import objects_in
from epochgate.spark.ingest.hints.hint import Heard, HintsFailed

AT_ONCE: Final = 10
"""The messages that SQS gives out or deletes by one request, at most."""
MESSAGES_MAX: Final = 1000
"""That are heard before their files are looked at."""
WAIT_S_MAX: Final = 20
_CONNECT_S, _READ_S = 5, 15
_REGION = re.compile(r"(?:^|\.)sqs\.([a-z0-9-]+)\.|^([a-z0-9-]+)\.queue\.")


def _library(name: str) -> Any:
    return library(name, what="--notify sqs:... (notify in Python)", extra="sqs")


class SqsHints:
    """The messages of one queue, for a source in an object store."""

    def __init__(self, queue_url: str, source: str) -> None:
        self._queue_url, self._bucket = queue_url, bucket_and_key(source)[0]
        self._client: Any = None

    @property
    def name(self) -> str:
        """The URL of the queue."""
        return self._queue_url

    def hear(self, wait_s: float) -> Heard:
        """Receive messages until there are no more, or many."""
        named: dict[str, Stamp | None] = {}
        receipts: list[str] = []
        foreign = 0
        until_s = time.monotonic() + wait_s
        while len(receipts) < MESSAGES_MAX:
            left_s = 0 if receipts else until_s - time.monotonic()
            messages = self._received(max(0, min(int(left_s), WAIT_S_MAX)))
            for message in messages:
                receipts.append(message["ReceiptHandle"])
                objects = objects_in(message["Body"])
                scheme = self._bucket.partition("://")[0]
                urls = [f"{scheme}://{bucket}/{key}" for bucket, key in objects]
                own = [url for url in urls if url.startswith(f"{self._bucket}/")]
                named.update(dict.fromkeys(own))
                foreign += not own
            if len(messages) < AT_ONCE:
                break
        return Heard(named, receipts, foreign)

    def _received(self, wait_s: int) -> list[dict[str, Any]]:
        answer = self._asked(
            "receive_message",
            MaxNumberOfMessages=AT_ONCE,
            WaitTimeSeconds=wait_s,
        )
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    def confirm(self, receipts: Sequence[str]) -> None:
        """Delete the messages."""
        for first in range(0, len(receipts), AT_ONCE):
            some = receipts[first : first + AT_ONCE]
            entries = [{"Id": str(n), "ReceiptHandle": one} for n, one in enumerate(some)]
            failed = self._asked("delete_message_batch", Entries=entries).get("Failed")
            if failed:
                raise HintsFailed(self.name, f"a message is not deleted: {failed[0]}")

    def close(self) -> None:
        """Release the connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _asked(self, operation: str, **arguments: Any) -> dict[str, Any]:
        told = _library("botocore.exceptions")
        try:
            if self._client is None:
                self._client = self._opened()
            answer: dict[str, Any] = getattr(self._client, operation)(
                QueueUrl=self._queue_url, **arguments
            )
        except (told.BotoCoreError, told.ClientError) as error:
            raise HintsFailed(self.name, f"{operation}: {error}") from error
        return answer

    def _opened(self) -> Any:
        parts = urlsplit(self._queue_url)
        found = _REGION.search(parts.hostname or "")
        region = next(filter(None, found.groups())) if found else None
        session = _library("boto3").session.Session()
        return session.client(
            "sqs",
            region_name=region or session.region_name or "us-east-1",
            # AWS_ENDPOINT_URL may name the store that has the source.
            endpoint_url=f"{parts.scheme}://{parts.netloc}",
            config=_library("botocore.config").Config(
                connect_timeout=_CONNECT_S,
                read_timeout=WAIT_S_MAX + _READ_S,
                retries={"total_max_attempts": 1},
            ),
        )
