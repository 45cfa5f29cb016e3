"""Errors of an object store, told so that a person knows what to change.

Decides what is taken out of a client's message, which refusals another try cannot mend, and which
variables of the environment are to be checked for which URL. Pure functions; used on the driver and
in tasks.
"""

from __future__ import annotations

import re
from typing import Final

from epochgate.errors import UsageError

_VARIABLES: Final = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_SCHEME_OF: Final = {"s3a": "s3", "abfs": "az", "abfss": "az"}
_SAID: Final = re.compile(r"<Code>([^<]+)</Code>.*?<Message>([^<]*)</Message>", re.DOTALL)
_STATUS: Final = re.compile(r"status code: (\d{3}[^:\n]*)")
_METADATA_SERVICES: Final = ("169.254.169.254", "metadata.google.internal", "169.254.170.2")
_SILENT: Final = re.compile(
    r"performing \w+ (\w+://[^/\s]+)\S* in .*?, after (\d+) retries,.*? - (.*)"
)
_REFUSALS: Final = (301, 401, 403)
_BUCKET_MISSING: Final = ("NoSuchBucket", "ContainerNotFound")


class ObjectStoreError(OSError):
    """A request has failed, after what the client has tried by itself: key, what the store said."""

    def __str__(self) -> str:
        return f"{self.strerror} (object {self.filename!r})"


class ObjectStoreRefused(ObjectStoreError):
    """The store refuses the request, and will refuse it again: bucket, credentials or region."""


class ObjectReplaced(OSError):
    """The object is another than the one that was asked for, which is gone."""


class ObjectStoreUnusable(UsageError):
    """The URL cannot be opened, or the store behind it not be used: URL, reason."""

    def __str__(self) -> str:
        return f"cannot use {self.args[0]!r}: {self.args[1]}. {advice(self.args[0])}"


class ConditionsIgnored(UsageError):
    """The store overwrites an object that was to be created only if it is not there: URL."""

    def __str__(self) -> str:
        return (
            f"the store behind {self.args[0]!r} ignores conditions: an object that was to be "
            "created only if it is not there (If-None-Match) was overwritten. Two drivers could "
            "both commit there, and rows would be lost or doubled, so nothing was started. Use a "
            "store with conditional writes, such as Amazon S3, Google Cloud Storage, Azure, MinIO "
            "or SeaweedFS."
        )


class ObjectMissing(FileNotFoundError):
    """There is no such object."""


OBJECT_ERRORS: Final = (ObjectStoreError, ObjectReplaced, ObjectMissing)
"""What is wrong with a request; whatever else is raised of an object is wrong with its content."""


def advice(url: str) -> str:
    """Return what to check for a URL that cannot be used.

    >>> advice("gs://bucket/in")
    'Check the URL, and GOOGLE_APPLICATION_CREDENTIALS in the environment of driver and executors.'
    """
    scheme = url.partition("://")[0]
    variables = _VARIABLES.get(_SCHEME_OF.get(scheme, scheme), "the credentials")
    return f"Check the URL, and {variables} in the environment of driver and executors."


def what_was_said(message: str) -> str:
    """The part of a client's message that is for a person.

    >>> what_was_said("status code: 404: <Code>NoSuchKey</Code><Message>It is gone.</Message>")
    'the store answers NoSuchKey: It is gone'
    >>> what_was_said("Generic S3 error: HTTP error: error sending request")
    'HTTP error: error sending request'
    """
    if any(service in message for service in _METADATA_SERVICES):
        return (
            "there are no credentials in the environment or in a profile of ~/.aws, and none from "
            "the machine's metadata service either"
        )
    said = _SAID.search(message)
    if said is not None:
        return f"the store answers {said[1]}: {said[2].rstrip('.')}"
    status = _STATUS.search(message)
    if status is not None:
        return f"the store answers {status[1].strip()}"
    silent = _SILENT.search(message)
    if silent is not None:
        return f"{silent[1]} does not answer, after {silent[2]} more tries ({silent[3]})"
    first = message.partition("\n")[0]
    return first.partition(": ")[2] or first if first.startswith("Generic ") else first


def is_refusal(message: str) -> bool:
    """Return whether another try, later, would be answered in the same way.

    >>> is_refusal("status code: 403 Forbidden"), is_refusal("status code: 503 Slow Down")
    (True, False)
    """
    status, said = _STATUS.search(message), _SAID.search(message)
    if said is not None and said[1] in _BUCKET_MISSING:
        return True
    if any(service in message for service in _METADATA_SERVICES):
        return True
    return status is not None and int(status[1][:3]) in _REFUSALS
