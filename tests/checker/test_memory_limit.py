"""A search keeps within what its machine, its container and its shell leave it."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from epochgate.fsm.checker import Verdict, budget, check
from epochgate.fsm.checker.memory_limit import UNKNOWN_BYTES, USABLE_SHARE, free_bytes, usable_bytes
from epochgate.models.closed.batch import BatchJob
from epochgate.models.studies.reference import Reference

MACHINE = {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n"}
FREE = 8000 * 1024
SECOND = "36 32 0:31 {root} /sys/fs/cgroup rw,relatime shared:11 - cgroup2 cgroup2 rw"
FIRST = "30 25 0:26 {root} /sys/fs/cgroup/memory rw shared:5 - cgroup cgroup rw,memory"
OTHER = "31 25 0:27 / /sys/fs/cgroup/cpu rw shared:6 - cgroup cgroup rw,cpu"


def machine(folder: Path, files: dict[str, str]) -> Path:
    """A root folder with these files."""
    for name, text in {**MACHINE, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_without_control_groups_what_the_machine_has_free_counts(tmp_path: Path) -> None:
    root = machine(tmp_path, {})
    assert free_bytes(root) == FREE
    assert usable_bytes(root) == int(FREE * USABLE_SHARE)


def test_a_system_that_tells_nothing_is_taken_for_a_small_one(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) == UNKNOWN_BYTES


@pytest.mark.parametrize("limit_at", ["job.slice/one.scope", "job.slice"])
@pytest.mark.parametrize("limit", ["memory.max", "memory.high"])
def test_the_tightest_group_around_a_process_counts(
    tmp_path: Path, limit: str, limit_at: str
) -> None:
    groups = {
        f"sys/fs/cgroup/{group}/{name}": text
        for group in ("job.slice", "job.slice/one.scope")
        for name, text in {
            "memory.max": "max\n",
            "memory.high": "max\n",
            "memory.current": "400000\n",
            "memory.stat": "anon 100000\ninactive_file 300000\n",
        }.items()
    }
    groups[f"sys/fs/cgroup/{limit_at}/{limit}"] = "1000000\n"
    root = machine(
        tmp_path,
        {
            "proc/self/cgroup": "0::/job.slice/one.scope\n",
            "proc/self/mountinfo": SECOND.format(root="/") + "\n",
            **groups,
        },
    )
    assert free_bytes(root) == 1_000_000 - 400_000 + 300_000


@pytest.mark.parametrize(
    ("mounted_from", "path"),
    [("/", "/"), ("/docker/ab12", "/docker/ab12"), ("/", "/../outside"), ("/docker", "/pod/x")],
    ids=["namespace", "bound", "outside", "not to be seen"],
)
def test_a_container_sees_its_own_group_as_the_root(
    tmp_path: Path, mounted_from: str, path: str
) -> None:
    root = machine(
        tmp_path,
        {
            "proc/self/cgroup": f"4:memory:{path}\n1:cpu:/\n0::/\n",
            "proc/self/mountinfo": f"{OTHER}\n{FIRST.format(root=mounted_from)}\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "900000\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "500000\n",
            "sys/fs/cgroup/memory/memory.stat": "inactive_file 7\ntotal_inactive_file 100000\n",
            "sys/fs/cgroup/cpu/memory.limit_in_bytes": "1\n",
        },
    )
    assert free_bytes(root) == 500_000


def test_a_group_that_is_full_leaves_nothing(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "proc/self/mountinfo": SECOND.format(root="/") + "\n",
            "sys/fs/cgroup/memory.max": "1000\n",
            "sys/fs/cgroup/memory.current": "2000\n",
        },
    )
    assert free_bytes(root) == 0


def test_a_limit_of_address_space_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = 1000
    monkeypatch.setattr(resource, "getrlimit", lambda _: (pages * resource.getpagesize(), -1))
    root = machine(tmp_path, {"proc/self/statm": f"{pages - 3} 50 20 1 0 90 0\n"})
    assert free_bytes(root) == 3 * resource.getpagesize()


def test_a_graph_without_room_is_told_instead_of_built() -> None:
    result = check(BatchJob(), max_memory=1 << 20)
    assert result.verdict is Verdict.BOUNDED
    assert "is about runs without end, whose graph of" in result.stopped
    assert "set a larger --max-memory" in result.stopped


def test_a_search_stops_before_the_memory_of_its_container_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "free_bytes", lambda: 50 << 20)
    monkeypatch.setattr(budget, "LOOK_EVERY_S", 0.0)
    result = check(Reference())
    assert result.verdict is Verdict.BOUNDED
    assert result.stopped.startswith("only 50 MiB of memory are left on this machine or in its")
