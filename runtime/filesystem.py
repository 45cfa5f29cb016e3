"""The file operations that checkpoints and commits consist of.

Decides: which primitive steps a durable write, a directory's creation and a tree's removal consist
of, so that each of them can be interrupted in a test where a real crash could interrupt it.
Leaves to others: what the files mean, and in which order the steps of a commit are taken.
The rules are POSIX's: `rename` within one file system is atomic, a file's bytes survive a power cut
once the file is fsynced, and its name does once its directory is. The user of the process alone may
read files, unless the environment (`FILE_MODE`) or the directory of a table says otherwise.
Runs on the driver and in tasks, on whichever thread calls; nothing is shared but `flock` locks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import itertools
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

from epochgate.errors import UsageError
from epochgate.runtime.exchange import exchange

AnyPath = str | os.PathLike[str]

TEMPORARY_SUFFIX = ".epochgate-temporary"
"""Ends the name of a file that `write_bytes_durably` has not renamed; a crash may leave some."""
FILE_MODE = "EPOCHGATE_FILE_MODE"
"""The variable of the environment with the permissions of new files, in octal, such as 640."""
_PRIVATE = 0o600
WRITEBACK_BYTES = 4 << 20
"""After so much of a new file, the device begins with it."""

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""What NFS without its lock service, some FUSE file systems, and Lustre without `flock` answer."""

_temporary_numbers = itertools.count()


class NotAFile(OSError):
    """A pipe, a socket or a device has the name of a file; to read it might never end."""


class LocksRefused(UsageError):
    """The file system has no locks: nothing would keep two drivers apart."""


class FileModeInvalid(UsageError):
    """The permissions in the environment are none that a job could use for its files."""


def file_mode() -> int:
    """The permissions of new files, which the umask may restrict: 0o600 unless `FILE_MODE` is set.

    Raises FileModeInvalid unless it is octal, with read and write for the user.
    """
    given = os.environ.get(FILE_MODE)
    if given is None:
        return _PRIVATE
    try:
        mode = int(given, 8)
    except ValueError:
        mode = 0
    if mode & ~0o666 or mode & _PRIVATE != _PRIVATE:
        raise FileModeInvalid(
            f"{FILE_MODE} is {given!r}, expected permissions of files in octal, which let their "
            "user read and write, such as 600 (the default), 640 or 644"
        )
    return mode


def opener(path: str, flags: int) -> int:
    """Open a file as `LocalFileSystem` does; for the argument of the same name of `open`."""
    return os.open(path, flags | os.O_CLOEXEC, file_mode())


@dataclass(frozen=True)
class FileStatus:
    """The answer of `FileSystem.status`: size in bytes, modification in ns since 1970, kind,
    device.

    `rename` and `link` work within one device.
    """

    size_bytes: int
    modified_ns: int
    is_directory: bool
    device: int


class WritableFile(Protocol):
    """A new file that is written once, from its beginning to its end."""

    def write(self, data: bytes) -> int:
        """Append `data`; returns how many bytes that is."""

    def fsync(self) -> None:
        """Flush, then wait until the bytes are on the device."""

    def close(self) -> None:
        """Flush and close, without fsync; closing twice is harmless."""


class FileLock(Protocol):
    """An exclusive lock that the operating system releases when its process ends."""

    def release(self) -> None:
        """Let others have it; releasing twice is harmless."""


class WrittenOnce(Protocol):
    """The requests of the staging writer and the list of known files to a place: no names ever
    change.

    Every operation raises `OSError` as the operating system does, unless said otherwise here.
    """

    def read_bytes(self, path: AnyPath) -> bytes:
        """The whole file; `NotAFile` for a pipe, a socket or a device."""

    def read_range(self, path: AnyPath, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; fewer at the end of the file."""

    def open_for_writing(self, path: AnyPath) -> WritableFile:
        """Create `path`; `FileExistsError` if it is there: a file is never overwritten."""

    def write_bytes_durably(self, path: AnyPath, data: bytes) -> None:
        """Replace `path` by `data`, all or nothing: a temporary file, fsync, rename, fsync."""

    def make_directory(self, path: AnyPath) -> None:
        """Create `path` and its missing parents, durably; harmless if it is there."""

    def fsync_directory(self, path: AnyPath) -> None:
        """Make names created, renamed or removed in `path` survive a power cut."""

    def list_directory(self, path: AnyPath) -> list[str]:
        """The names in `path`, sorted."""

    def remove(self, path: AnyPath) -> bool:
        """Remove a file; false if there was none."""

    def exists(self, path: AnyPath) -> bool:
        """Return whether there is something of this name, a link that leads nowhere included."""

    def size(self, path: AnyPath) -> int:
        """The file's size in bytes."""


class FileSystem(WrittenOnce, Protocol):
    """The requests of the checkpoint store and the committer to a file system."""

    def rename(self, source: AnyPath, destination: AnyPath) -> None:
        """Atomic. A file replaces a file; a directory may only replace an empty directory."""

    def link(self, source: AnyPath, destination: AnyPath) -> None:
        """A second name for a file; `FileExistsError` if `destination` is there."""

    def copy_mode(self, source: AnyPath, destination: AnyPath) -> None:
        """Give a file or directory the permissions of another."""

    def exchange(self, first: AnyPath, second: AnyPath) -> None:
        """Let two names change places, atomically; `ExchangeRefused` where that cannot be."""

    def remove_tree(self, path: AnyPath) -> bool:
        """Remove a directory and all below it, or a file; false if there was none."""

    def remove_empty_directory(self, path: AnyPath) -> None:
        """Remove one directory; `OSError` if there is anything in it, also by now."""

    def is_directory(self, path: AnyPath) -> bool:
        """Return whether it is a directory, and not a link to one."""

    def status(self, path: AnyPath) -> FileStatus:
        """Look at what is there, links followed."""

    def try_lock(self, path: AnyPath) -> FileLock | None:
        """Take the exclusive lock whose file is `path` (created if missing); none if it is held.

        Raises `LocksRefused` where the file system has no locks.
        """

    def wait_for_lock(self, path: AnyPath) -> FileLock:
        """Take the same lock once its holder lets it go; for what is held for moments only.

        Raises `LocksRefused` where the file system has no locks.
        """


class ComposedOperations:
    """Builds the larger operations from the primitive ones, for every implementation alike."""

    def write_bytes_durably(self: FileSystem, path: AnyPath, data: bytes) -> None:
        target = os.fspath(path)
        directory, name = os.path.split(target)
        unique = f".{name}.{os.getpid()}-{next(_temporary_numbers)}{TEMPORARY_SUFFIX}"
        temporary = os.path.join(directory, unique)
        try:
            file = self.open_for_writing(temporary)
            try:
                file.write(data)
                file.fsync()
            finally:
                file.close()
            self.rename(temporary, target)
        except OSError:
            # The disk may be full: give back what this took. The first error is the one to report.
            with contextlib.suppress(OSError):
                self.remove(temporary)
            raise
        self.fsync_directory(directory or ".")

    def make_directory(self: _HasCreateDirectory, path: AnyPath) -> None:
        target = os.path.abspath(path)
        if self.is_directory(target):
            return
        parent = os.path.dirname(target)
        self.make_directory(parent)
        # Another process may create it in between; what counts is that it is there afterwards.
        try:
            self.create_directory(target)
        except FileExistsError:
            if not self.is_directory(target):
                raise
        self.fsync_directory(parent)

    def remove_tree(self: FileSystem, path: AnyPath) -> bool:
        target = os.fspath(path)
        if not self.is_directory(target):
            return self.remove(target)
        for name in self.list_directory(target):
            self.remove_tree(os.path.join(target, name))
        self.remove_empty_directory(target)
        return True


class _HasCreateDirectory(FileSystem, Protocol):
    def create_directory(self, path: AnyPath) -> None: ...


class _LocalFile:
    """Has the device begin with what is written, so that little is left for `fsync` to wait for."""

    def __init__(self, path: AnyPath, mode: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        opened = io.FileIO(os.open(path, flags, mode), "w")
        self._file = io.BufferedWriter(opened, buffer_size=1 << 20)
        self._written = self._begun = 0

    def write(self, data: bytes) -> int:
        self._written += self._file.write(data)
        if self._written - self._begun >= WRITEBACK_BYTES and hasattr(os, "posix_fadvise"):
            self._file.flush()
            # Linux begins to write pages that are not needed, and keeps them until it has.
            length = self._written - self._begun
            os.posix_fadvise(self._file.fileno(), self._begun, length, os.POSIX_FADV_DONTNEED)
            self._begun = self._written
        return len(data)

    def fsync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _open_at_once(path: str, flags: int) -> int:
    """Without waiting for a writer, if it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


class _LocalLock:
    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class LocalFileSystem(ComposedOperations):
    """The operating system's own files, which `file_mode` is for."""

    _mode: int | None = None

    @classmethod
    def of_table(cls, directory: AnyPath) -> Self:
        """For a table's files, which are as readable as its directory, if there is one."""
        made = cls()
        with contextlib.suppress(OSError):  # what makes the directory tells why it cannot be used
            made._mode = os.stat(directory).st_mode & 0o666 | _PRIVATE
        return made

    def _file_mode(self) -> int:
        return file_mode() if self._mode is None else self._mode

    def read_bytes(self, path: AnyPath) -> bytes:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NotAFile(errno.EINVAL, "it is no regular file", os.fspath(path))
            return file.read()

    def read_range(self, path: AnyPath, offset: int, length: int) -> bytes:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(length)

    def open_for_writing(self, path: AnyPath) -> WritableFile:
        return _LocalFile(path, self._file_mode())

    def rename(self, source: AnyPath, destination: AnyPath) -> None:
        os.rename(source, destination)

    def link(self, source: AnyPath, destination: AnyPath) -> None:
        os.link(source, destination)

    def create_directory(self, path: AnyPath) -> None:
        """Create one directory, not durably; `FileExistsError` if it is there."""
        mode = self._file_mode()
        os.mkdir(path, mode | (mode & 0o444) >> 2)

    def fsync_directory(self, path: AnyPath) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def list_directory(self, path: AnyPath) -> list[str]:
        return sorted(os.listdir(path))

    def remove(self, path: AnyPath) -> bool:
        try:
            os.remove(path)
        except FileNotFoundError:
            return False
        return True

    def remove_empty_directory(self, path: AnyPath) -> None:
        """Remove one directory; `OSError` if there is anything in it."""
        os.rmdir(path)

    def exists(self, path: AnyPath) -> bool:
        return os.path.lexists(path)

    def is_directory(self, path: AnyPath) -> bool:
        return os.path.isdir(path) and not os.path.islink(path)

    def size(self, path: AnyPath) -> int:
        return os.stat(path).st_size

    def status(self, path: AnyPath) -> FileStatus:
        found = os.stat(path)
        return FileStatus(
            found.st_size, found.st_mtime_ns, stat.S_ISDIR(found.st_mode), found.st_dev
        )

    def copy_mode(self, source: AnyPath, destination: AnyPath) -> None:
        os.chmod(destination, stat.S_IMODE(os.stat(source).st_mode))

    def exchange(self, first: AnyPath, second: AnyPath) -> None:
        exchange(first, second)

    def try_lock(self, path: AnyPath) -> FileLock | None:
        return self._locked(path, self.lock_exclusively)

    def wait_for_lock(self, path: AnyPath) -> FileLock:
        lock = self._locked(path, lambda descriptor: fcntl.flock(descriptor, fcntl.LOCK_EX))
        assert lock is not None, "it was waited for"
        return lock

    def _locked(self, path: AnyPath, take: Callable[[int], None]) -> FileLock | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, self._file_mode())
        try:
            take(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return None
            if error.errno in _NO_LOCKS:
                raise LocksRefused(
                    f"the file system of {os.fspath(path)} refuses locks ({error.strerror}), "
                    "without which two drivers could write there at once. Mount it with locks "
                    "(NFS: version 4, or version 3 with its lock service and without nolock; "
                    "Lustre: with flock), or use a directory on another file system"
                ) from error
            raise
        return _LocalLock(descriptor)

    def lock_exclusively(self, descriptor: int) -> None:
        """Lock an open file at once; OSError with EWOULDBLOCK if another has it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
