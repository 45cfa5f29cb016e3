"""Two names that change places in one step: `renameat2` with RENAME_EXCHANGE, of Linux alone.

Decides how the refusals of kernels and file systems are told. Leaves to others what is exchanged.
"""

from __future__ import annotations

import ctypes
import errno
import os

from epochgate.errors import UsageError

AnyPath = str | os.PathLike[str]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_REFUSALS = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems without the operation answer, and kernels before 3.15."""


class ExchangeRefused(UsageError):
    """Two directories cannot change places here: path, reason."""

    def __str__(self) -> str:
        return (
            f"two directories cannot change places in one step beside {self.args[0]!r}: "
            f"{self.args[1]}. That takes Linux and a local file system such as ext4, XFS, Btrfs or "
            "tmpfs; nothing was changed."
        )


def exchange(first: AnyPath, second: AnyPath) -> None:
    """Let two existing names of one file system change places, atomically.

    Raises ExchangeRefused where that cannot be, and OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    renameat2 = getattr(libc, "renameat2", None)
    if renameat2 is None:
        raise ExchangeRefused(os.fspath(first), "this system has no renameat2")
    paths = os.fsencode(first), os.fsencode(second)
    if renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0:
        return
    number = ctypes.get_errno()
    if number in _REFUSALS:
        raise ExchangeRefused(os.fspath(first), f"the file system says {os.strerror(number)!r}")
    raise OSError(number, os.strerror(number), os.fspath(first), None, os.fspath(second))
