"""A search that was stopped, or killed, goes on from its file."""

from __future__ import annotations

import fcntl
import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from epochgate.cli import main
from epochgate.exit_codes import ExitCode
from epochgate.fsm.checker import Verdict, check
from epochgate.fsm.checker.asserting import assert_passes
from epochgate.fsm.checker.resuming import CannotResume, CannotSave
from epochgate.fsm.closed import always, sometimes
from epochgate.models.studies.reference import Reference
from tests.checker.broken import LateAcknowledgement
from tests.checker.small_systems import House
from tests.checker.wandering import Wandering

STATES, TRANSITIONS = 120_524, 561_792
HOUSE = "tests.checker.small_systems:House"
STATE_BYTES, CHECKSUM_BYTES = 2 * 8, 4
KILLED_AT_BYTES = 200_000
"""The kernel kills the search in the write that would make its file larger: SIGXFSZ."""


def levels(path: Path) -> int:
    """Return how many complete levels a file of the reference model holds."""
    found = 0
    with path.open("rb") as file:
        if not file.readline().endswith(b"\n"):
            return 0  # its head is not written yet
        while line := file.readline():
            try:
                length = json.loads(line)["states"] * STATE_BYTES + CHECKSUM_BYTES
            except ValueError:
                break
            if len(file.read(length)) < length:
                break
            found += 1
    return found


@pytest.mark.parametrize("engine", ["llvm", "python"])
def test_a_stopped_search_goes_on_to_the_same_result(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "search"
    bounds = {"N": 2, "C": 2, "K": 1}
    stopped = check(Reference(**bounds), engine=engine, resume=path, max_states=3_000)
    assert (stopped.verdict, stopped.exit_code) == (Verdict.BOUNDED, 4)
    resumed = check(Reference(**bounds), engine=engine, resume=path)
    straight = check(Reference(**bounds), engine="python")
    assert (resumed.verdict, resumed.states, resumed.transitions, resumed.depth) == (
        straight.verdict,
        straight.states,
        straight.transitions,
        straight.depth,
    )
    assert resumed.terminal_states == straight.terminal_states
    assert all(row.is_taken for row in resumed.coverage)


def test_a_search_stopped_by_memory_goes_on_with_more(tmp_path: Path) -> None:
    path = tmp_path / "search"
    stopped = check(Reference(), resume=path, max_memory=2 << 20)
    assert stopped.verdict is Verdict.BOUNDED
    assert "memory" in stopped.stopped
    resumed = check(Reference(), resume=path)
    assert (resumed.states, resumed.transitions) == (STATES, TRANSITIONS)


def test_one_engine_goes_on_where_another_stopped(tmp_path: Path) -> None:
    path = tmp_path / "search"
    check(Reference(), engine="python", resume=path, max_states=2_000)
    resumed = check(Reference(), engine="llvm", workers=2, resume=path)
    assert (resumed.states, resumed.transitions) == (STATES, TRANSITIONS)


def test_two_workers_go_on_where_two_workers_stopped(tmp_path: Path) -> None:
    path = tmp_path / "search"
    check(Reference(), workers=2, resume=path, max_states=40_000)
    resumed = check(Reference(), workers=2, resume=path)
    assert (resumed.states, resumed.transitions) == (STATES, TRANSITIONS)


def test_a_finished_search_is_finished_at_once(tmp_path: Path) -> None:
    path = tmp_path / "search"
    check(House, resume=path)
    again = check(House, resume=path)
    assert (again.verdict, again.states) == (Verdict.PASS, 8)


def test_a_way_to_a_violation_leads_through_what_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "search"
    check(LateAcknowledgement(C=1), resume=path, max_depth=9)
    found = check(LateAcknowledgement(C=1), resume=path).counterexample
    assert found is not None
    assert len(found.steps) == 17


def test_a_level_that_was_not_written_to_its_end_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "search"
    check(Reference(), resume=path, max_depth=15)
    whole = path.read_bytes()
    before = levels(path)
    path.write_bytes(whole[:-100])
    assert levels(path) == before - 1
    resumed = check(Reference(), resume=path)
    assert (resumed.states, resumed.transitions) == (STATES, TRANSITIONS)


def test_a_file_of_another_search_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "search"
    check(House, resume=path)
    with pytest.raises(CannotResume, match="is a search of House"):
        check(Reference(), resume=path)
    path.write_text("something else\n")
    with pytest.raises(CannotResume, match="is no search of epochgate"):
        check(House, resume=path)


def test_a_file_of_an_earlier_format_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "search"
    check(House, resume=path)
    path.write_bytes(path.read_bytes().replace(b"epochgate search 2", b"epochgate search 1"))
    with pytest.raises(CannotResume, match="'epochgate search 1'; this one goes on from"):
        check(House, resume=path)


def test_a_search_killed_within_a_write_loses_at_most_its_last_level(tmp_path: Path) -> None:
    path = tmp_path / "search"
    program = (
        "import resource, signal\n"
        "from epochgate.fsm.checker import check\n"
        "from epochgate.models.studies.reference import Reference\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({KILLED_AT_BYTES}, {KILLED_AT_BYTES}))\n"
        f"check(Reference(), engine='python', resume={str(path)!r})\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False
    )
    assert killed.returncode == -signal.SIGXFSZ
    assert path.stat().st_size == KILLED_AT_BYTES
    assert levels(path) >= 10
    resumed = check(Reference(), resume=path)
    assert (resumed.verdict, resumed.states, resumed.transitions) == (
        Verdict.PASS,
        STATES,
        TRANSITIONS,
    )


def test_two_searches_at_once_do_not_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "search"

    check(House(), engine="python", resume=path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(CannotResume, match="another process searches with"):
            check(House(), engine="python", resume=path)
    assert check(House(), engine="python", resume=path).verdict is not Verdict.BOUNDED


def test_a_full_disk_ends_the_saving_and_not_the_search(tmp_path: Path) -> None:
    path = tmp_path / "search"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (KILLED_AT_BYTES, hard))
    try:
        result = check(Reference(), resume=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (result.verdict, result.states) == (Verdict.PASS, STATES)
    saved = levels(path)
    assert result.notes[0].startswith(f"{path} has no room for more than {saved} levels (File too")
    assert path.stat().st_size < KILLED_AT_BYTES
    resumed = check(Reference(), resume=path)
    assert (resumed.states, resumed.transitions, resumed.notes) == (STATES, TRANSITIONS, [])


def test_a_disk_without_room_for_a_file_is_told_before_the_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(CannotSave, match="search cannot be written: File too large"):
            check(Reference(), resume=tmp_path / "search")
        failed = main(["check", HOUSE, "--resume", str(tmp_path / "search")])
        assert failed == ExitCode.RUN_FAILED
        assert "name a file on another disk" in capsys.readouterr().err
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (tmp_path / "search").exists()


def test_a_file_that_cannot_be_made_or_opened_is_a_run_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", HOUSE, "--resume", str(tmp_path)]) == ExitCode.RUN_FAILED
    assert f"{tmp_path} cannot be opened: Is a directory" in capsys.readouterr().err
    file = tmp_path / "file"
    file.touch()
    assert main(["check", HOUSE, "--resume", str(file / "search")]) == ExitCode.RUN_FAILED
    assert f"{file / 'search'} cannot be made: [Errno " in capsys.readouterr().err


@pytest.mark.parametrize("option", ["resume", "spill"])
def test_only_a_search_with_the_same_claims_goes_on(option: Any, tmp_path: Path) -> None:
    def claimed(kind: Any) -> type[Wandering]:
        def is_far(self: Wandering) -> bool:
            return self.wanderer.state == "e"

        return type("Claimed", (Wandering,), {"is_far": kind("it is at e")(is_far)})

    place: dict[str, Any] = {option: tmp_path / "search"}
    for _ in range(2):
        assert_passes(claimed(sometimes), **place)
    with pytest.raises(CannotResume, match="its states or its claims are others here"):
        check(claimed(always), **place)
