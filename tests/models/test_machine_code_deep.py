"""Machine code comes to the same as plain Python on every space that the other tests of this folder
search without it; making it takes longer than those searches, so this is for `make check-deep`.
"""

from __future__ import annotations

import pytest

from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.explore import check
from epochgate.models.acknowledged import Acknowledged
from epochgate.models.batch_job import BatchJob
from epochgate.models.broken.catalogue import BROKEN
from epochgate.models.closed_concurrent import ConcurrentAttempts
from epochgate.models.closed_job import ClosedJob, EndingJob, LiveJob, TalkingJob
from epochgate.models.recreated_job import RecreatedJob
from tests.models import test_batch_job as batch
from tests.models import test_closed_job as job
from tests.models import test_concurrent_attempts as concurrent
from tests.models import test_designs as designs
from tests.models import test_recreated_job as recreated

pytestmark = pytest.mark.deep

SYSTEMS: tuple[ClosedSystem, ...] = (
    *(design() for design in designs.SIZES),
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
    ConcurrentAttempts(),
    *(ConcurrentAttempts(**constants) for constants, _, _ in concurrent.BOUNDS),
    ClosedJob(subtasks=1),
    ClosedJob(subtasks=1, coordinators=2, wanted=1),
    ClosedJob(),
    EndingJob(),
    TalkingJob(),
    LiveJob(),
    LiveJob(subtasks=1),
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
