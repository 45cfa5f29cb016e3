"""The memory that a search may take without `max_memory`: most of what is free, and of what a
container, a job of a scheduler or a limit of the shell leaves.
"""

from __future__ import annotations

import mmap
import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

USABLE_SHARE = 0.75
UNKNOWN_BYTES = 4 << 30
"""Where the system does not tell what is free."""
LEAST_FREE_BYTES = 64 << 20
"""With less, the kernel may end a process without a word before that looks again."""
FILES = {
    "cgroup2": (("memory.max", "memory.high"), "memory.current", "inactive_file"),
    "cgroup": (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"),
}
"""Kind of hierarchy -> the files of a control group's limits, the file of its use, and the entry of
memory.stat with the cached pages in that use which the kernel gives back under pressure.
"""


def usable_bytes(root: Path = Path("/")) -> int:
    """Return how many bytes a search may take, a share of what is free."""
    return int(free_bytes(root) * USABLE_SHARE)


def free_bytes(root: Path = Path("/")) -> int:
    """Return the least of what is free, in bytes: on the machine, in each control group around this
    process, and in its address space (`ulimit -v`). `root` holds `proc` and what it names.
    """
    free = [*_free_on_machine(root), *_free_in_groups(root), *_free_addresses(root)]
    return min(free, default=UNKNOWN_BYTES)


def _free_on_machine(root: Path) -> Iterator[int]:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _free_addresses(root: Path) -> Iterator[int]:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _lines(root / "proc/self/statm")
    if limit != resource.RLIM_INFINITY and pages:
        yield max(0, limit - int(pages[0].split()[0]) * mmap.PAGESIZE)


def _free_in_groups(root: Path) -> Iterator[int]:
    """Of each control group with a limit, from the process's own up to the hierarchy's root."""
    paths = _own_groups(root)
    for line in _lines(root / "proc/self/mountinfo"):
        mount, _, about = line.partition(" - ")
        kind, _, controllers = about.split()
        if kind not in paths or (kind == "cgroup" and "memory" not in controllers.split(",")):
            continue
        mounted_from, mounted_at = mount.split()[3:5]
        own = PurePosixPath(paths[kind])
        # A container may see its own group as the root, and be told a path that it cannot see.
        below = own.relative_to(mounted_from) if own.is_relative_to(mounted_from) else None
        top = root / mounted_at.lstrip("/")
        group = top if below is None or ".." in below.parts else top / below
        for directory in (group, *group.parents):
            yield from _free_in(directory, kind)
            if directory == top:
                break


def _own_groups(root: Path) -> dict[str, str]:
    """Kind of hierarchy -> the path in it of this process's control group."""
    paths = {}
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0":
            paths["cgroup2"] = path
        elif "memory" in controllers.split(","):
            paths["cgroup"] = path
    return paths


def _free_in(group: Path, kind: str) -> Iterator[int]:
    limit_files, use_file, reclaimable = FILES[kind]
    told = [line for name in limit_files for line in _lines(group / name) if line.isdigit()]
    used = _lines(group / use_file)
    if not told or not used:
        return
    entries = dict(line.split() for line in _lines(group / "memory.stat"))
    yield max(0, min(map(int, told)) - int(used[0]) + int(entries.get(reclaimable, 0)))


def _lines(file: Path) -> list[str]:
    """Of a file that may not be there, or not be this process's to read."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
