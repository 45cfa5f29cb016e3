"""Plays a schedule of the closed job, as the checker finds one, on the production runtime.

    play(ClosedJob(subtasks=1), "launch.launch", "process[0].arrive", "process[0].hear")

The closed job's machines go along, and after every step both are held against each other: the
machines' state, and what is possible next. I1 to I3 are claimed of what coordinators sent,
operators received and the store holds. On an `InterleavedStage` steps begin while the events of
earlier ones wait in the job's queue. Everything happens on the caller's thread.
"""

from epochgate.runtime.testing.playing.action import Action
from epochgate.runtime.testing.playing.actions import ACTIONS
from epochgate.runtime.testing.playing.interleaving import (
    NOT_BEHIND_ANY,
    InterleavedStage,
)
from epochgate.runtime.testing.playing.scripted import ScriptedJob
from epochgate.runtime.testing.playing.stage import (
    Diverged,
    NotPlayable,
    ProductionStage,
    play,
    playable,
)

__all__ = [
    "ACTIONS",
    "NOT_BEHIND_ANY",
    "Action",
    "Diverged",
    "InterleavedStage",
    "NotPlayable",
    "ProductionStage",
    "ScriptedJob",
    "play",
    "playable",
]
