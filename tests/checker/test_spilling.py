"""A search that keeps its states on disk finds what one in memory finds, whatever ends it."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epochgate.benchmarks.independent import Filter, Table, Track
from epochgate.cli import main
from epochgate.exit_codes import ExitCode
from epochgate.fsm.checker import Result, Verdict, budget, check
from epochgate.fsm.checker.checking import CannotCheck
from epochgate.fsm.checker.compiler import layout
from epochgate.fsm.checker.engines import (
    key_files,
    plan,
    rekeying,
    spill_directory,
    spilling,
)
from epochgate.fsm.checker.engines.key_files import Damaged
from epochgate.fsm.checker.engines.spilling import SpillingSearch
from epochgate.fsm.checker.resuming import CannotResume
from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.concurrent import ConcurrentAttempts
from epochgate.models.closed.job import ClosedJob
from epochgate.models.closed.resuming import ResumingJob
from epochgate.models.studies.reference import Reference
from tests.checker import small_systems as small
from tests.checker.broken import LateAcknowledgement
from tests.checker.gymnasium import Gymnasium
from tests.checker.random_systems import random_system
from tests.checker.relay import Relay

SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.extended) for seed in range(12, 300))]
STATES, TRANSITIONS = 120_524, 561_792
SMALL = Reference(N=2, C=1, K=1)
EARLIER_BYTES = 20_000


def told(result: Result) -> Any:
    """The part of a result that the place of the states may not change."""
    if result.counterexample is not None:
        found = result.counterexample
        return result.verdict, len(found.steps)
    claims = [(claim.name, claim.verdict) for claim in result.properties]
    rows = [(row.is_taken, row.untaken_from) for row in result.coverage]
    counts = result.states, result.transitions, result.depth, result.terminal_states
    return result.verdict, counts, result.left_out, claims, rows


@pytest.fixture
def cramped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves room for the successors of a few states, and has them written to many files of small
    blocks, which are merged time and again.
    """
    monkeypatch.setattr(SpillingSearch, "capacity", property(lambda self: 6 * self.fanout))
    monkeypatch.setattr(spilling, "BLOCK_KEYS", 16)
    monkeypatch.setattr(key_files, "WINDOW", 32)
    monkeypatch.setattr(spilling, "SHARED_FROM", 40)
    monkeypatch.setattr(spilling, "PARTS_MAX", 2)
    monkeypatch.setattr(spilling, "MERGED_TOGETHER", 64)
    monkeypatch.setattr(key_files, "FEW", 3)
    # Nothing here is about a disk that loses what it was told to keep.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_systems_are_explored_as_in_memory(seed: int, cramped: None, tmp_path: Path) -> None:
    system = random_system(seed, tmp_path)
    plain = check(system)
    for workers in (1, 2):
        spilled = check(system, spill=tmp_path / f"spilled-{workers}", workers=workers)
        assert told(spilled) == told(plain)


@pytest.mark.parametrize(
    "system",
    [
        Gymnasium(),
        Relay(),
        SMALL,
        Table(places=6),
        Filter(),
        Track(),
        LateAcknowledgement(C=1),
        pytest.param(Reference(N=3, C=1, K=1, E=1), marks=pytest.mark.extended),
    ],
    ids=lambda system: type(system).__name__,
)
def test_systems_are_explored_as_in_memory(
    system: ClosedSystem, cramped: None, tmp_path: Path
) -> None:
    assert told(check(system, spill=tmp_path / "spilled")) == told(check(system))


def test_a_budget_that_ends_a_search_in_memory_is_enough(tmp_path: Path) -> None:
    spill = tmp_path / "spilled"
    assert check(Reference(), max_memory=1 << 20).verdict is Verdict.BOUNDED
    found = check(Reference(), max_memory=3 << 20, spill=spill)
    assert (found.verdict, found.states, found.transitions) == (Verdict.PASS, STATES, TRANSITIONS)
    assert found.bytes_per_state * STATES <= 3 << 20
    assert found.disk_bytes < 5 * STATES
    assert sum(file.stat().st_size for file in spill.glob("keys-*")) == found.disk_bytes


def test_a_search_tells_for_how_many_states_the_disk_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "REPORT_EVERY_S", 0)
    reports: list[budget.Report] = []
    result = check(Reference(), spill=tmp_path, progress=reports.append)
    last = reports[-1]
    assert (last.room, last.depth) == ("disk", result.depth + 1)
    assert last.room_for > last.states
    assert last.bytes_per_state == last.disk_bytes / last.states < 5
    assert last.full_in_s > 0


@pytest.mark.extended
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("system", [ClosedJob, ResumingJob, ConcurrentAttempts])
def test_our_systems_are_explored_as_in_memory(
    system: type[ClosedSystem], workers: int, tmp_path: Path
) -> None:
    spilled = check(system, spill=tmp_path, workers=workers, max_memory=24 << 20)
    assert told(spilled) == told(check(system))
    assert spilled.stopped == ""


@pytest.mark.parametrize("options", [{"symmetry": "subtask"}, {"partial_order": True}])
def test_reductions_leave_the_same_states(
    options: dict[str, Any], cramped: None, tmp_path: Path
) -> None:
    plain = check(SMALL, **options)
    assert told(check(SMALL, spill=tmp_path / "spilled", **options)) == told(plain)


def test_a_reduced_search_does_not_go_on_in_full(tmp_path: Path) -> None:
    system = Table(places=4)
    check(system, spill=tmp_path / "spilled", partial_order=True)
    with pytest.raises(CannotResume, match="its states or its claims are others here"):
        check(system, spill=tmp_path / "spilled")


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes words and parts of keys narrow, so that other plans are made; the list holds how many
    parts their keys had.
    """
    parts: list[int] = []
    choose = plan.plan

    def noted(words: int, count: int, states: Any) -> plan.Plan:
        parts.append(count)
        return choose(words, count, states)

    monkeypatch.setattr(spilling, "PLANNED_FROM", 40)
    monkeypatch.setattr(layout, "WORD_BITS", 20)
    monkeypatch.setattr(plan, "KEY_BITS", 44)
    monkeypatch.setattr(plan, "SPARE_BITS", 0)
    monkeypatch.setattr(rekeying, "plan", noted)
    return parts


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "system", [Gymnasium(), Relay(), Reference(N=3, C=1, K=1, E=1), LateAcknowledgement(C=1)],
    ids=lambda system: type(system).__name__,
)  # fmt: skip
def test_states_stay_the_same_when_all_get_other_keys(
    system: ClosedSystem, workers: int, restless: list[int], tmp_path: Path
) -> None:
    plain = check(system, engine="python")
    assert told(check(system, spill=tmp_path / "spilled", workers=workers)) == told(plain)
    assert restless or not isinstance(system, Reference)


def test_a_search_goes_on_with_other_keys(
    cramped: None, restless: list[int], tmp_path: Path
) -> None:
    system = Reference(N=3, C=1, K=1, E=1)
    depth = 0
    while (found := check(system, spill=tmp_path / "spilled", max_depth=depth)).stopped:
        depth += 3
    assert (found.states, found.transitions) == (10_340, 48_117)
    assert restless


# What ends a search, and what goes on


def test_a_stopped_search_goes_on_to_the_same_result(cramped: None, tmp_path: Path) -> None:
    spill = tmp_path / "spilled"
    stopped = check(SMALL, spill=spill, max_states=500)
    assert (stopped.verdict, stopped.exit_code) == (Verdict.BOUNDED, 4)
    depths = [check(SMALL, spill=spill, max_depth=depth).depth for depth in (12, 14)]
    assert depths == [12, 14]
    plain = told(check(SMALL))
    assert told(check(SMALL, spill=spill, workers=2)) == plain
    assert told(check(SMALL, spill=spill)) == plain


def test_a_way_to_a_violation_leads_through_what_was_there(cramped: None, tmp_path: Path) -> None:
    system = LateAcknowledgement(C=1)
    check(system, spill=tmp_path, max_depth=9)
    for _ in range(2):
        found = check(system, spill=tmp_path).counterexample
        assert found is not None
        assert len(found.steps) == 17


def killed_at(operations: int, spill: Path) -> bool:
    """Search in a process that kills itself at one of its operations on the disk; tells whether it
    did not come to its end before.
    """
    left = operations

    def counted(operation: Any) -> Any:
        def done(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*arguments, **named)

        return done

    if not (child := os.fork()):
        try:
            os.fsync = counted(lambda descriptor: None)
            Path.replace, Path.unlink = counted(Path.replace), counted(Path.unlink)  # type: ignore[method-assign]
            os.pread = counted(os.pread)
            check(SMALL, spill=spill)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_a_search_that_is_killed_time_and_again_goes_on(cramped: None, tmp_path: Path) -> None:
    plain, kills = told(check(SMALL)), 0
    while killed_at(97 + kills % 50 * 41, tmp_path):
        kills += 1
    assert kills > 5
    assert told(check(SMALL, spill=tmp_path)) == plain


@pytest.mark.extended
def test_a_search_that_is_killed_anywhere_goes_on(cramped: None, tmp_path: Path) -> None:
    plain, operations = told(check(SMALL)), 1
    while killed_at(operations, tmp_path / str(operations)):
        spill = tmp_path / str(operations)
        assert told(check(SMALL, spill=spill)) == plain
        operations += 1 + operations // 9
    assert operations > 500


def test_a_full_disk_ends_the_search_and_loses_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (EARLIER_BYTES, hard))
    try:
        stopped = check(Reference(), spill=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert stopped.verdict is Verdict.BOUNDED
    assert stopped.stopped.startswith(f"{tmp_path} has no room for more (File too large)")
    assert {*manifest(tmp_path)["files"]} == {file.name for file in tmp_path.glob("*-*")}
    found = check(Reference(), spill=tmp_path)
    assert (found.verdict, found.states, found.transitions) == (Verdict.PASS, STATES, TRANSITIONS)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.extended
def test_a_disk_that_is_full_is_told_and_a_larger_one_gone_on_with(small_disk: Path) -> None:
    stopped = check(Reference(), spill=small_disk / "spilled")
    assert "has no room for more (No space left on device)" in stopped.stopped
    resize = ["mount", "-o", "remount,size=60m", str(small_disk)]
    subprocess.run(resize, check=True)
    found = check(Reference(), spill=small_disk / "spilled")
    assert (found.verdict, found.states, found.transitions) == (Verdict.PASS, STATES, TRANSITIONS)


# What is not gone on with


def manifest(spill: Path) -> dict[str, Any]:
    """The manifest, and the names of the files in it."""
    found: dict[str, Any] = json.loads((spill / "search.json").read_text().partition("\n")[0])
    keys = [file[0] for level in found["levels"] for file in level]
    return {**found, "files": [found["words"][0], *keys]}


@pytest.mark.parametrize("name", ["keys", "words", "search"])
@pytest.mark.parametrize("damage", ["a byte is another", "the end is missing"])
def test_a_damaged_file_is_refused(name: str, damage: str, tmp_path: Path) -> None:
    check(SMALL, spill=tmp_path, max_depth=12)
    path = max(tmp_path.glob(f"{name}*"), key=lambda file: file.stat().st_size)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data if damage == "a byte is another" else data[:-3])
    with pytest.raises((Damaged, CannotResume)) as refused:
        check(SMALL, spill=tmp_path)
    assert str(path) in str(refused.value)
    assert "name another directory" in str(refused.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    check(SMALL, spill=tmp_path, max_depth=12)
    next(tmp_path.glob("keys-*")).unlink()
    with pytest.raises(Damaged, match=r"cannot be opened \(No such file"):
        check(SMALL, spill=tmp_path)


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photograph.jpg").touch()
    with pytest.raises(CannotResume, match=r"holds 'photograph.jpg', which is of no search"):
        check(SMALL, spill=tmp_path)
    assert [*tmp_path.iterdir()] == [tmp_path / "photograph.jpg"]


def test_a_path_that_cannot_be_a_directory_is_misuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "inside", Path("/proc/search")):
        assert main(["check", "reference", "--spill", str(path)]) == ExitCode.MISUSE
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert f"{path} is no directory, and cannot be made one" in said


def test_a_directory_of_another_search_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(SMALL, spill=tmp_path, max_depth=3)
    with pytest.raises(CannotResume, match="holds a search of Reference"):
        check(Filter, spill=tmp_path)
    monkeypatch.setattr(spill_directory, "FORMAT", "epochgate spilled search 2")
    with pytest.raises(CannotResume, match="'epochgate spilled search 1', and this version goes"):
        check(SMALL, spill=tmp_path)


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    check(SMALL, spill=tmp_path, max_depth=3)
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(CannotResume, match="another process searches in"):
            check(SMALL, spill=tmp_path)
    finally:
        os.close(held)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "python"}, "only the engine llvm spills"),
        ({"order": "depth"}, "cannot be resumed, spilled, shared"),
        ({"resume": "search"}, "name no file to resume from"),
    ],
)
def test_what_does_not_go_together_is_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(CannotCheck, match=message):
        check(SMALL, spill=tmp_path, **options)


def test_claims_about_whole_runs_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(CannotCheck, match=r"'[^']+' is about whole runs, for which all states"):
        check(small.PoliteHouse, spill=tmp_path)
