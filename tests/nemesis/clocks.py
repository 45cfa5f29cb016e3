"""Clocks of the lab's hosts: a library, loaded before libc, that adds an offset to the time of day.

The offset lies in a file that the processes of a host map, so that their clocks jump together and
while they run. Clocks that measure time since the machine's start stay as they are. Needs a C
compiler.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

COMPILER = shutil.which("cc")
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile long long none = 0, *offset = &none;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LAB_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) offset = found;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *offset;
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now) *now = precise.tv_sec;
    return precise.tv_sec;
}
"""


class Clocks:
    """In a folder, one file for each host; without a compiler, clocks that cannot be set."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._library = folder, folder / "clock.so"
        folder.mkdir()
        if COMPILER is not None:
            command = [COMPILER, "-shared", "-fPIC", "-O1", "-x", "c", "-"]
            command += ["-o", str(self._library), "-ldl"]
            subprocess.run(command, input=SOURCE, text=True, check=True)

    def set(self, host: str, seconds: int) -> None:
        """Let the clock of a host be as many seconds ahead of the machine's."""
        path = self._folder / host
        with path.open("r+b" if path.exists() else "wb") as file:
            file.write(seconds.to_bytes(8, "little", signed=True))

    def variables(self, host: str) -> Mapping[str, str]:
        """With which a process has the clock of its host."""
        if COMPILER is None:
            return {}
        return {"LD_PRELOAD": str(self._library), "LAB_CLOCK": str(self._folder / host)}
