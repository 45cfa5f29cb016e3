"""The tests of the runtime that are quick, run with every mutant that nothing before has found.

They run in a process of their own: each test once as it stands, and then with each mutant that has
not failed one yet.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from epochgate.fsm import System
from epochgate.models.batch_decision import BatchDecisions
from epochgate.models.batch_plan import BatchPlans
from epochgate.models.batch_snapshot import BatchSnapshots
from epochgate.models.committing_job import CommittingJob
from epochgate.models.compaction import Compactions
from epochgate.models.concurrent_job import ConcurrentJob
from epochgate.models.control_update import ControlUpdates
from epochgate.models.discovery import Discoveries
from epochgate.models.in_flight import RecordsInFlight
from epochgate.models.job import Job
from epochgate.models.placement import Placements
from epochgate.models.query_batch import QueryBatches
from epochgate.models.read_splits import SplitsRead
from epochgate.models.receive_window import ReceiveWindows
from epochgate.models.recreation import Recreations
from epochgate.models.resident import Residents
from epochgate.models.send_window import SendWindows
from epochgate.models.setting_change import SettingChanges
from epochgate.models.split_assignment import SplitAssignments
from epochgate.models.table_owner import TableOwners
from epochgate.models.task import TaskSystem
from tests.mutation.mutants import AnyMutant
from tests.mutation.seen import Seen

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 1500
OF_THE_JOB = (
    "tests/runtime/test_job.py",
    "tests/runtime/test_late.py",
    "tests/runtime/test_worker.py",
    "tests/runtime/test_client_requests.py",
    "tests/runtime/test_batch_snapshots.py",
    "tests/runtime/test_post_commits.py",
)
OF_SOURCES = (
    "tests/runtime/source/test_attempts_side_by_side.py",
    "tests/runtime/source/test_coordinator.py",
    "tests/runtime/source/test_handing_out.py",
    "tests/runtime/source/test_late_words.py",
    "tests/runtime/source/test_resets.py",
    "tests/runtime/source/test_work_elsewhere.py",
)
HANGING = "tests/runtime/steering/test_hanging.py"
TESTS: dict[type[System], tuple[str, ...]] = {
    Job: OF_THE_JOB,
    TaskSystem: OF_THE_JOB,
    BatchSnapshots: (
        "tests/runtime/test_late_batch_snapshots.py",
        "tests/runtime/test_batch_snapshots.py",
    ),
    Recreations: (
        "tests/runtime/test_late_closes.py",
        "tests/runtime/test_recreate_on_reset.py",
    ),
    ConcurrentJob: (
        "tests/runtime/test_spare_processes.py",
        "tests/runtime/test_concurrent_attempts.py",
    ),
    CommittingJob: (
        "tests/runtime/committing/test_steps.py",
        "tests/runtime/committing/test_tries.py",
    ),
    SplitAssignments: OF_SOURCES,
    Discoveries: ("tests/spark/ingest/test_discovering.py",),
    SplitsRead: ("tests/spark/ingest/test_read_splits.py",),
    Compactions: ("tests/spark/compaction/test_steps.py",),
    QueryBatches: ("tests/spark/streaming/test_steps.py",),
    BatchDecisions: (
        "tests/runtime/steering/test_deciding.py",
        "tests/runtime/steering/test_control.py",
        "tests/runtime/steering/test_coordinated.py",
        HANGING,
    ),
    BatchPlans: (
        "tests/runtime/source/batches/test_planning.py",
        "tests/runtime/source/batches/test_pruning.py",
        HANGING,
    ),
    ControlUpdates: ("tests/runtime/steering/test_updating.py", HANGING),
    Placements: ("tests/spark/test_placing.py",),
    Residents: ("tests/spark/test_task_main.py",),
    RecordsInFlight: ("tests/runtime/pipeline/test_in_flight.py",),
    SettingChanges: ("tests/runtime/pipeline/test_setting.py",),
    SendWindows: ("tests/runtime/test_send_window.py",),
    ReceiveWindows: ("tests/spark/test_paused_reading.py",),
    TableOwners: ("tests/spark/tables/test_owner.py",),
}
"""System -> the tests of its machines where they run."""


def found_by_tests(mutants: Sequence[AnyMutant]) -> dict[str, Seen]:
    """Run the tests of the mutants' systems: mutant -> the test that fails with it, and how."""
    seen: dict[str, Seen] = {}
    for tests in dict.fromkeys(TESTS.values()):
        concerned = [mutant.name for mutant in mutants if TESTS[mutant.home.system] == tests]
        if concerned and tests:
            for name, failed in failures(tests, concerned, is_once=True).items():
                for test, failure in failed.items():
                    seen[name] = Seen("test", f"{test}: {failure}")
    return seen


def failures(
    tests: Iterable[str], mutants: Iterable[str], *, is_once: bool = False
) -> dict[str, dict[str, str]]:
    """Mutant -> test -> how it fails, of tests that pass as they stand; with `is_once` not more
    than one for each mutant. RuntimeError for a test that does not pass as it stands.
    """
    with TemporaryDirectory() as folder:
        out = Path(folder) / "failed.json"
        plugin = ["-p", "tests.mutation.planted", "-p", "no:cacheprovider"]
        planting = [word for name in mutants for word in ("--mutant", name)]
        once = ["--mutants-once"] if is_once else []
        command = ["-q", *plugin, *planting, *once, "--mutants-out", str(out), *tests]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *command],
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name[:7] != "PYTEST_"},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        if done.returncode != 0:
            told = f"{done.stdout[-2000:]}{done.stderr}"
            raise RuntimeError(f"{' '.join(tests)} fails as it stands:\n{told}")
        failed: dict[str, dict[str, str]] = json.loads(out.read_text(encoding="utf-8"))
        return failed
