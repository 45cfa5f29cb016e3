"""What is asked of one file while the files of a source are enumerated, with the errors of a user.

Decides which errors of the operating system make a file bad, and which the whole source unreadable.
Runs on the driver.
"""

from __future__ import annotations

from epochgate.spark.files.content import Stamp, checksum_of, stamp_of
from epochgate.spark.files.errors import BadFile, SourceUnreadable
from epochgate.spark.files.layout import cause_of
from epochgate.spark.files.split import Compression, Format


def probe_stamp(path: str) -> Stamp | None:
    """None for a file that is empty, or gone since it was listed. Raises SourceUnreadable."""
    try:
        stamp = stamp_of(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SourceUnreadable(path, error.strerror) from error
    return stamp if stamp[0] > 0 else None


def probe_checksum(path: str, file_format: Format) -> int:
    """The checksum of its content. Raises SourceUnreadable, BadFile."""
    try:
        return checksum_of(path, file_format)
    except PermissionError as error:
        raise SourceUnreadable(path, error.strerror) from error
    except OSError as error:
        raise bad_file(path, error, "none") from error


def bad_file(path: str, error: BaseException, compression: Compression) -> BadFile:
    """A file that cannot be read from its beginning."""
    return BadFile(path, path, "the beginning", cause_of(error, path, compression))
