"""The clock and the disk of a host as its Python processes see them: a library, loaded before libc,
that adds an offset to the time of day, and in which calls about files of the disk hang.

Both are set in a file that the processes of a host map, so that their clocks jump together and
while they run. Clocks that measure time since the machine's start stay as they are. A call hangs as
on a network file system whose server is silent: it goes on once the server is back, and a process
that hangs can be killed. Needs a C compiler.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

COMPILER = shutil.which("cc")
OFFSET_AT, HANGS_AT = 0, 8
SOURCE = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long none[2] = {0, 0}, *set = none;
static const char *disk;
static int (*real_clock)(clockid_t, struct timespec *);
#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LAB_HOST");
    int file = path ? REAL(open)(path, O_RDONLY | O_CLOEXEC) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(0, 16, PROT_READ, MAP_SHARED, file, 0);
    disk = getenv("LAB_DISK");
    if (found != MAP_FAILED) set = found;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real_clock) real_clock = REAL(clock_gettime);
    int failed = real_clock(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += set[0];
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

static void hold(const char *path) {
    if (set[1] && disk && path && !strncmp(path, disk, strlen(disk)))
        while (set[1]) usleep(20000);
}

static void hold_file(int file) {
    char link[64], path[4096];
    if (!set[1]) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return;
    path[size] = 0;
    hold(path);
}

#define OPEN(name)                                                  \
    int name(const char *path, int flags, ...) {                    \
        va_list rest;                                               \
        va_start(rest, flags);                                      \
        mode_t mode = va_arg(rest, mode_t);                         \
        va_end(rest);                                               \
        hold(path);                                                 \
        return REAL(name)(path, flags, mode);                       \
    }
OPEN(open)
OPEN(open64)

int rename(const char *from, const char *to) { hold(to); return REAL(rename)(from, to); }
int link(const char *from, const char *to) { hold(to); return REAL(link)(from, to); }
int unlink(const char *path) { hold(path); return REAL(unlink)(path); }
int mkdir(const char *path, mode_t mode) { hold(path); return REAL(mkdir)(path, mode); }
DIR *opendir(const char *path) { hold(path); return REAL(opendir)(path); }
int fsync(int file) { hold_file(file); return REAL(fsync)(file); }
int fdatasync(int file) { hold_file(file); return REAL(fdatasync)(file); }
"""


class HostLibrary:
    """In `folder`, one file for each host, whose disk is `disk`; without a compiler, hosts whose
    clocks and disks cannot be set.
    """

    def __init__(self, folder: Path, disk: Path) -> None:
        self._folder, self._disk, self._library = folder, disk, folder / "host.so"
        folder.mkdir()
        if COMPILER is not None:
            command = [COMPILER, "-shared", "-fPIC", "-O1", "-x", "c", "-"]
            command += ["-o", str(self._library), "-ldl"]
            subprocess.run(command, input=SOURCE, text=True, check=True)

    def begin(self, host: str) -> None:
        """A host with the machine's clock, and a disk that answers."""
        (self._folder / host).write_bytes(bytes(16))

    def set_clock(self, host: str, seconds: int) -> None:
        """Let the clock of a host be as many seconds ahead of the machine's."""
        self._set(host, OFFSET_AT, seconds)

    def set_hanging(self, host: str, *, is_hanging: bool) -> None:
        """Let calls about files of the disk hang on a host, or go on."""
        self._set(host, HANGS_AT, int(is_hanging))

    def _set(self, host: str, at: int, value: int) -> None:
        with (self._folder / host).open("r+b") as file:
            file.seek(at)
            file.write(value.to_bytes(8, "little", signed=True))

    def variables(self, host: str) -> Mapping[str, str]:
        """With which a process has the clock and the disk of its host."""
        if COMPILER is None:
            return {}
        return {
            "LD_PRELOAD": str(self._library),
            "LAB_HOST": str(self._folder / host),
            "LAB_DISK": str(self._disk),
        }
