/* Exchanges two directories just before the n-th look at a path below one of them.

   Loaded into a reader's process (LD_PRELOAD), it counts what passes through the C library: opening
   of files and directories, and their status. STRADDLED and OTHER are the directories; COUNTS is a
   file of three ints that is mapped: before which look to exchange (0: never), how many looks there
   were, and whether the exchange has happened. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { AT, LOOKS, EXCHANGED };
#define RENAME_BOTH 2

static volatile int *counts;
static const char *straddled, *other;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
    straddled = getenv("STRADDLED"), other = getenv("OTHER");
    int file = syscall(SYS_openat, AT_FDCWD, getenv("COUNTS"), O_RDWR);
    counts = mmap(0, 3 * sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static void look(const char *path) {
    if (!path || strncmp(path, straddled, strlen(straddled))) return;
    pthread_mutex_lock(&mutex);
    if (++counts[LOOKS] == counts[AT])
        counts[EXCHANGED] =
            !syscall(SYS_renameat2, AT_FDCWD, straddled, AT_FDCWD, other, RENAME_BOTH);
    pthread_mutex_unlock(&mutex);
}

static void look_at(int directory, const char *path) {
    char link[64], found[4096];
    if (!path || *path == '/' || directory == AT_FDCWD) {
        look(path);
        return;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t length = readlink(link, found, sizeof found - 1);
    if (length > 0) found[length] = 0, look(found);
}

#define REAL(type, name, ...)                  \
    static type (*real)(__VA_ARGS__);          \
    if (!real) real = dlsym(RTLD_NEXT, #name);
#define MODE(last) va_list more; va_start(more, last); int mode = va_arg(more, int); va_end(more);

#define OPEN(name)                                    \
    int name(const char *path, int flags, ...) {      \
        MODE(flags)                                   \
        REAL(int, name, const char *, int, ...)       \
        look(path);                                   \
        return real(path, flags, mode);               \
    }
#define OPENAT(name)                                             \
    int name(int directory, const char *path, int flags, ...) {  \
        MODE(flags)                                              \
        REAL(int, name, int, const char *, int, ...)             \
        look_at(directory, path);                                \
        return real(directory, path, flags, mode);               \
    }
#define STAT(name, kind)                                     \
    int name(const char *path, struct kind *status) {        \
        REAL(int, name, const char *, struct kind *)         \
        look(path);                                          \
        return real(path, status);                           \
    }
#define STATAT(name, kind)                                                        \
    int name(int directory, const char *path, struct kind *status, int flags) {   \
        REAL(int, name, int, const char *, struct kind *, int)                    \
        look_at(directory, path);                                                 \
        return real(directory, path, status, flags);                              \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)
STATAT(fstatat, stat)
STATAT(fstatat64, stat64)

DIR *opendir(const char *path) {
    REAL(DIR *, opendir, const char *)
    look(path);
    return real(path);
}

int statx(int directory, const char *path, int flags, unsigned mask, struct statx *status) {
    REAL(int, statx, int, const char *, int, unsigned, struct statx *)
    look_at(directory, path);
    return real(directory, path, flags, mask, status);
}
