"""Goes over to another plan for the keys of all states that a search has on disk.

Every file is read, and written with other keys beside it; the manifest then names the new files. So
the disk needs room for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from epochgate.errors import InvariantBroken
from epochgate.fsm.checker.engines import store_kernels as s
from epochgate.fsm.checker.engines.functions import NO_KEY
from epochgate.fsm.checker.engines.key_files import KeyFile
from epochgate.fsm.checker.engines.plan import plan
from epochgate.fsm.checker.engines.replanning import SAMPLE_MAX, TooManyNumbers, renamed
from epochgate.fsm.checker.engines.store import NoRoom, Values

if TYPE_CHECKING:
    from epochgate.fsm.checker.engines.spilling import SpillingSearch

SAMPLED_BLOCKS = 16
PARTS_MIN = 2


def rekey(search: SpillingSearch) -> None:
    """Give every state another key; the buffer is empty."""
    count, words = search.known, search.program.words
    sample = search.spelled(_sample(search)).reshape(-1, words)
    old = search.former = search.values
    parts = min(search.parts(old.allocated), len(old.plan.parts))
    while True:
        search.values = search.numbering(plan(words, parts, sample))
        for worker in search.workers:
            worker.status[[s.VALUE_NEXT, s.VALUE_END]] = 0
        try:
            levels, place = _rewritten(search, old)
            search.first = search.entered(search.begins)
        except TooManyNumbers:
            parts -= 1
            if parts < min(PARTS_MIN, words):
                raise NoRoom from None
        else:
            break
    for file in (file for level in search.levels for file in level):
        file.close()
    search.levels, search.place, search.former = levels, place, None
    search.count()
    for worker in search.workers:
        worker.recent[:] = NO_KEY
    if search.known != count:
        raise InvariantBroken(
            f"{count:,} states became {search.known:,} when they got other keys; please report "
            f"this, and check without --spill"
        )
    search.commit()


def _sample(search: SpillingSearch) -> Any:
    """Keys from all over the files."""
    blocks = [block for level in search.levels for file in level for block in file.blocks]
    chosen = blocks[:: max(1, len(blocks) // SAMPLED_BLOCKS)]
    each = max(1, SAMPLE_MAX // len(chosen))
    return np.concatenate([keys[:: max(1, len(keys) // each)] for keys in (b.keys for b in chosen)])


def _rewritten(search: SpillingSearch, old: Values) -> tuple[list[list[KeyFile]], int]:
    """The files with other keys, and how many of the level's states have been expanded."""
    levels: list[list[KeyFile]] = []
    place = 0
    for number, files in enumerate(search.levels):
        if number == search.depth:
            expanded = _renamed_files(search, old, _between(files, 0, search.place))
            place = sum(file.count for file in expanded)
            rest = _renamed_files(search, old, _between(files, search.place, None))
            levels.append(expanded + rest)
        else:
            levels.append(_renamed_files(search, old, _between(files, 0, None)))
    return levels, place


def _between(files: list[KeyFile], first: int, end: int | None) -> Iterator[Any]:
    """The keys of some files from one place to another."""
    passed = 0
    for block in (block for file in files for block in file.blocks):
        start, passed = passed, passed + len(block)
        low, high = max(first, start), passed if end is None else min(end, passed)
        if low < high:
            yield block.keys[low - start : high - start]


def _renamed_files(search: SpillingSearch, old: Values, keys: Iterable[Any]) -> list[KeyFile]:
    """Write what the present plan calls these states."""
    files: list[KeyFile] = []
    room, filled = search.capacity, 0
    for some in keys:
        if filled + len(some) > room:
            files += _sorted_file(search, filled)
            filled = 0
        search.buffer.array[filled : filled + len(some)] = renamed(search, old, some)
        filled += len(some)
    return files + _sorted_file(search, filled)


def _sorted_file(search: SpillingSearch, filled: int) -> list[KeyFile]:
    part = search.buffer.array[:filled]
    part.sort()
    with search.writing():
        file = search.directory.writer().written([part])
    return [] if file is None else [file]
