"""The list of files that one enumeration of a source's files hands over to another that is its
equal otherwise.

Pure values; made where files are looked for, and taken in on the thread of the protocol.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from epochgate.spark.files.agreement import Layouts
from epochgate.spark.files.known import Changes
from epochgate.spark.files.pending import PendingSplits
from epochgate.spark.files.settling import Settling
from epochgate.spark.files.skipped import SkippedFiles
from epochgate.spark.files.taken import TakenFiles


@dataclass(frozen=True)
class Found:
    """The paths that a scout has found since the last time: as long as these are, and not as what
    is known.
    """

    layouts: Layouts
    known: Changes
    pending: PendingSplits
    skipped: SkippedFiles
    taken: TakenFiles
    settling: Settling
    unread: Counter[str]
