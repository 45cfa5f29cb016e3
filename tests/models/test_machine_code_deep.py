"""Machine code comes to the same as plain Python on the spaces that the other tests of this folder
search with one of the two; all with both is for `make check-deep`.
"""

from __future__ import annotations

import pytest

from epochgate.fsm.checker import check
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.asked import AskedJob
from epochgate.models.closed.batch import BatchJob
from epochgate.models.closed.choosing import ChosenQuery
from epochgate.models.closed.commits import HangingWork
from epochgate.models.closed.concurrent import ConcurrentAttempts
from epochgate.models.closed.endings import EndingJob
from epochgate.models.closed.flooding import FloodedTask
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.live import LiveJob
from epochgate.models.closed.planning import PlannedQuery
from epochgate.models.closed.pressed import PressedJob
from epochgate.models.closed.readers import ConcurrentSources
from epochgate.models.closed.recreation import RecreatedJob
from epochgate.models.closed.resuming import ResumingJob
from epochgate.models.closed.sources import Sources
from epochgate.models.closed.steering import SteeredQuery
from epochgate.models.closed.talking import TalkingJob
from epochgate.models.studies.acknowledged import Acknowledged
from epochgate.models.studies.broken.catalogue import BROKEN
from tests.models import (
    test_batch_job as batch,
    test_closed_job as job,
    test_concurrent_attempts as concurrent,
    test_designs as designs,
    test_recreated_job as recreated,
)

pytestmark = pytest.mark.deep

SYSTEMS: tuple[ClosedSystem, ...] = (
    *((design if isinstance(design, type) else type(design))() for design in designs.SIZES),
    *(broken.system() for broken in BROKEN.values()),
    *designs.HOLDING.values(),
    Acknowledged(sources=1),
    Acknowledged(sources=2),
    BatchJob(),
    batch.WithHasty(),
    batch.WithGullible(),
    RecreatedJob(),
    recreated.WithMixing(),
    recreated.WithHasty(),
    Sources(subtasks=1, S=2),
    ConcurrentSources(),
    ConcurrentAttempts(),
    *(ConcurrentAttempts(**constants) for constants, _, _ in concurrent.BOUNDS),
    ClosedJob(subtasks=1),
    ClosedJob(subtasks=1, coordinators=2, wanted=1),
    ClosedJob(),
    EndingJob(),
    TalkingJob(),
    AskedJob(),
    ResumingJob(),
    PressedJob(),
    LiveJob(),
    LiveJob(subtasks=1),
    HangingWork(subtasks=1),
    PlannedQuery(F=1),
    SteeredQuery(batches=2, F=1),
    ChosenQuery(F=1),
    FloodedTask(events=3, large=3, said=1),
    *(broken(**constants) for broken, constants, _, _ in job.BROKEN),
)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: type(system).__name__)
def test_machine_code_comes_to_the_same(system: ClosedSystem) -> None:
    pytest.importorskip("llvmlite")
    plain, compiled = (check(system, engine=engine) for engine in ("python", "llvm"))
    assert (compiled.verdict, compiled.states, compiled.transitions, compiled.depth) == (
        plain.verdict,
        plain.states,
        plain.transitions,
        plain.depth,
    )
    assert compiled.counterexample == plain.counterexample
    assert compiled.coverage == plain.coverage
