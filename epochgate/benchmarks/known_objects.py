"""The cost of finding new objects of a source in an object store that knows many: by listing all of
them, and by listing what is behind the greatest known name.

A real server on the loopback address, so that a listing of all objects is as many requests as in a
store elsewhere, each of them quicker. The objects are real, of one record each; that they are known
is written into the enumeration, since taking them would be most of the work.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from epochgate.benchmarks.figures import Table, number
from epochgate.benchmarks.known_files import CONTENT, FilesMissing
from epochgate.benchmarks.object_server import BUCKET, seaweedfs
from epochgate.environment import set_in_environment
from epochgate.runtime.objects.client import ObjectStore, open_url
from epochgate.spark.files import FileEnumeration
from epochgate.spark.files.access import FileAccess
from epochgate.spark.files.content import Stamp
from epochgate.spark.files.known import KnownFile
from epochgate.spark.ingest.hints.newer_names import NewerNames

OBJECTS = (1_000, 10_000, 100_000)
NEW_OBJECTS = 100
"""That each look finds."""
LOOKS = 3
REQUESTS_AT_ONCE = 16
FOLDER = "known-objects"


@dataclass(frozen=True)
class Cost:
    """The medians of a look of one number of known objects, in seconds on the clock and of the
    driver's processor: of a listing, and behind the greatest name.
    """

    objects: int
    listing_wall_s: float
    listing_s: float
    behind_wall_s: float
    behind_s: float


class KnowingSource:
    """A source that knows the first `objects` objects below `prefix`."""

    def __init__(self, prefix: str, objects: int) -> None:
        self._prefix, self.objects = prefix, 0
        self._store: ObjectStore = open_url(f"s3://{BUCKET}")
        source = f"s3://{BUCKET}/{prefix}"
        self.files = FileEnumeration(source, follow=True)
        self._put(1)
        self.files.discover()
        self._put(objects - 1)
        access, checksum = FileAccess(), 0
        for one in self._store.find(prefix):
            path, stamp = (
                f"s3://{BUCKET}/{one.key}",
                Stamp(one.size_bytes, one.modified_ns, one.etag),
            )
            checksum = checksum or access.checksum_of(path, stamp, "jsonl")
            self.files._known.add(path, KnownFile(stamp, checksum))
        self.names = NewerNames(source, self._key(self.objects - 1), open_url)

    def _key(self, number: int) -> str:
        return f"{self._prefix}/{number:09}.jsonl"

    def _put(self, count: int) -> None:
        numbers = range(self.objects, self.objects + count)
        with ThreadPoolExecutor(REQUESTS_AT_ONCE) as requests:
            list(requests.map(lambda one: self._store.put(self._key(one), CONTENT), numbers))
        self.objects += count

    def look(self, *, is_behind: bool) -> tuple[float, float]:
        """Put new objects, and return how long finding them takes, on the clock and in processor
        time. Raises FilesMissing.
        """
        self._put(NEW_OBJECTS)
        begun = time.perf_counter(), time.process_time()
        files = self.files
        new = files.look_at(self.names.hear(0).named) if is_behind else files.discover()
        took = time.perf_counter() - begun[0], time.process_time() - begun[1]
        if not is_behind:
            self.names = NewerNames(self.files.source, self._key(self.objects - 1), open_url)
        if len(new) != NEW_OBJECTS:
            raise FilesMissing(f"a look has found {len(new)} of {NEW_OBJECTS} new objects")
        return took


@contextlib.contextmanager
def serving() -> Iterator[None]:
    """Run a server, and let clients in this process find it."""
    with (
        tempfile.TemporaryDirectory(prefix="epochgate-bench-") as folder,
        seaweedfs(Path(folder)) as variables,
        set_in_environment(variables),
    ):
        yield


def cost_of(objects: int, looks: int = LOOKS) -> Cost:
    """Measure with this number of known objects, in turn; a server is there."""
    source = KnowingSource(f"{FOLDER}/{objects}", objects)
    listing, behind = [], []
    for _ in range(looks):
        listing.append(source.look(is_behind=False))
        behind.append(source.look(is_behind=True))

    def median(taken: list[tuple[float, float]], part: int) -> float:
        return statistics.median(one[part] for one in taken)

    return Cost(
        objects, median(listing, 0), median(listing, 1), median(behind, 0), median(behind, 1)
    )


def measure(
    sizes: tuple[int, ...] = OBJECTS,
    note: Callable[[str], None] = lambda text: None,
) -> Table:
    """Measure one number of known objects after the other."""
    costs = []
    with serving():
        for objects in sizes:
            note(f"{objects:,} objects")
            costs.append(cost_of(objects))
    return Table(
        question="known-objects",
        title=f"Finding {NEW_OBJECTS} new objects beside many known ones",
        header=(
            "known objects",
            "by listing, s",
            "processor, s",
            "behind the greatest name, s",
            "processor, s",
        ),
        rows=tuple(
            (
                f"{one.objects:,}",
                *map(number, (one.listing_wall_s, one.listing_s)),
                *map(number, (one.behind_wall_s, one.behind_s)),
            )
            for one in costs
        ),
        notes=(
            f"SeaweedFS on the same machine; medians of {LOOKS} looks of each kind, in turn, in "
            "seconds on the clock and of the driver's processor. Both read each new object once, "
            "which is most of a look behind the greatest name (`--notify names`)."
        ),
    )
