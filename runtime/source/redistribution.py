"""The splits of a source's readers, dealt out to another number of readers.

Decides which reader goes on with which split: in turns, in the order of their ids, so that two
readers differ by one split at most. A split keeps its position, and is in exactly one new state.
Source: Apache Flink's redistribution of operator list state. Pure; driver.
"""

from __future__ import annotations

from collections.abc import Mapping

from epochgate.runtime.api.rescaling import NotRescalable
from epochgate.runtime.source.errors import SplitAssignedTwice
from epochgate.runtime.source.reader_state import ReaderState
from epochgate.runtime.source.source import Source


def redistributed(
    source: Source, operator_id: str, states: Mapping[int, bytes], parallelism: int
) -> dict[int, bytes]:
    """The states of `parallelism` readers, made of those of the readers before.

    Raises SourceStateRefused for a state of another format, SplitAssignedTwice for a split that two
    readers have, and NotRescalable for more states of readers than there are readers.
    """
    old = [
        ReaderState.from_bytes(state, f"reader {subtask} of {operator_id!r}")
        for subtask, state in sorted(states.items())
    ]
    splits = {split.split_id: (split, at) for state in old for split, at in state.splits}
    if len(splits) != sum(len(state.splits) for state in old):
        raise SplitAssignedTwice(
            f"two readers of {operator_id!r} have the same split in their states, so these cannot "
            "be redistributed. Start with the parallelism that the checkpoint was taken with"
        )
    new = [ReaderState() for _ in range(parallelism)]
    for number, split_id in enumerate(sorted(splits)):
        new[number % parallelism].splits.append(splits[split_id])
    own = source.redistribute_reader_states(
        [state.own for state in old if state.own is not None], parallelism
    )
    if len(own) > parallelism:
        raise NotRescalable(
            f"{type(source).__name__}.redistribute_reader_states made {len(own)} states for "
            f"{parallelism} readers"
        )
    for state, of_reader in zip(new, own, strict=False):
        state.own = of_reader
    return {subtask: state.to_bytes() for subtask, state in enumerate(new)}
