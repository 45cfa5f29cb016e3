"""The fault points of sinks on a mounted file system: Python's own file calls, below one directory.

Replaces the functions of `os`, `open` and `io.FileIO` while a certification runs; for all but the
actors on the stage, and outside of their place, these do what they always do. A write is a point
where the bytes go to the operating system, so what an actor's buffers hold is lost with it.
Blind spots: what a library writes in C without Python's files, and power cuts.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from epochgate.runtime.testing.certification.points import Actor, Stage

_TWO_PATHS = ("rename", "replace", "link", "symlink")
_ONE_PATH = ("mkdir", "rmdir", "unlink", "remove", "truncate")
_FileIO = io.FileIO
_open = builtins.open
_originals: dict[str, Callable[..., Any]] = {
    name: getattr(os, name)
    for name in (*_TWO_PATHS, *_ONE_PATH, "open", "close", "write", "fsync", "fdatasync")
}


def io_error() -> OSError:
    """Return the error of a broken device."""
    return OSError(errno.EIO, f"{os.strerror(errno.EIO)} (made by certify-sink)")


class Watch:
    """Sees what the actors of one stage do below `place`."""

    def __init__(self, stage: Stage, place: Path) -> None:
        self.stage, self._place = stage, os.path.realpath(place)
        self._descriptors: dict[int, tuple[Actor, str, tuple[int, int]]] = {}

    def inside(self, path: Any, dir_fd: int | None = None) -> str | None:
        """The path as a person reads it, if it lies in the place."""
        if isinstance(path, int):
            held = self._descriptors.get(path)
            return held[1] if held else None
        text = os.fsdecode(path)
        if dir_fd is not None and not os.path.isabs(text):
            text = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), text)
        whole = os.path.join(os.path.realpath(os.path.dirname(text) or "."), os.path.basename(text))
        if whole != self._place and not whole.startswith(self._place + os.sep):
            return None
        return os.path.relpath(whole, self._place)

    def change(self, name: str) -> Callable[..., Any]:
        """Make the stand-in of a function of `os` that takes paths."""
        original = _originals[name]

        def changed(*arguments: Any, **options: Any) -> Any:
            actor = self.stage.actor()
            if actor is None:
                return original(*arguments, **options)
            dir_fd = options.get("dir_fd", options.get("src_dir_fd"))
            shown = self.inside(arguments[0], dir_fd)
            if name in _TWO_PATHS:
                target = self.inside(arguments[1], options.get("dst_dir_fd", dir_fd))
                shown = f"{shown or arguments[0]} {target}" if target else shown
            if shown is None:
                return original(*arguments, **options)
            return self.stage.reach(
                actor, f"{name} {shown}", lambda: original(*arguments, **options), error=io_error
            )

        return changed

    def open_descriptor(self, path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        """In place of `os.open`."""
        original, actor = _originals["open"], self.stage.actor()
        shown = None if actor is None else self.inside(path, options.get("dir_fd"))
        if actor is None or shown is None:
            return int(original(path, flags, *arguments, **options))
        opened: list[int] = []

        def do() -> int:
            opened.append(original(path, flags, *arguments, **options))
            return opened[0]

        try:
            if flags & os.O_CREAT and not os.path.lexists(path):
                self.stage.reach(actor, f"create {shown}", do, error=io_error)
            else:
                do()
        except OSError:
            for descriptor in opened:
                _originals["close"](descriptor)
            raise
        self._hold(actor, opened[0], shown)
        return opened[0]

    def _hold(self, actor: Actor, descriptor: int, shown: str) -> None:
        status = os.fstat(descriptor)
        identity = (status.st_dev, status.st_ino)
        self._descriptors[descriptor] = (actor, shown, identity)

        def release() -> None:
            if self._descriptors.get(descriptor) == (actor, shown, identity):
                del self._descriptors[descriptor]
                with contextlib.suppress(OSError):  # closed by other means
                    status = os.fstat(descriptor)
                    if (status.st_dev, status.st_ino) == identity:
                        _originals["close"](descriptor)

        actor.at_death.append(release)

    def close_descriptor(self, descriptor: int) -> None:
        """In place of `os.close`."""
        self._descriptors.pop(descriptor, None)
        _originals["close"](descriptor)

    def write_descriptor(self, descriptor: int, data: Any) -> int:
        """In place of `os.write`."""
        original, actor = _originals["write"], self.stage.actor()
        shown = None if actor is None else self.inside(descriptor)
        if actor is None or shown is None:
            return int(original(descriptor, data))
        half = bytes(data)[: len(data) // 2]
        written: int = self.stage.reach(
            actor,
            f"write {shown}",
            lambda: original(descriptor, data),
            tear=lambda: original(descriptor, half),
            error=io_error,
        )
        return written

    def sync(self, name: str) -> Callable[[Any], None]:
        """Make the stand-in of `os.fsync` or `os.fdatasync`, which can fail."""
        original = _originals[name]

        def synced(file: Any) -> None:
            actor = self.stage.actor()
            if actor is None:
                original(file)
                return
            shown = "a file"
            descriptor = file if isinstance(file, int) else file.fileno()
            with contextlib.suppress(OSError):  # a system without /proc has no name for it
                shown = self.inside(os.readlink(f"/proc/self/fd/{descriptor}")) or shown
            # Not done: processes die here, and no machine loses its power.
            self.stage.reach(actor, f"{name} {shown}", lambda: None, error=io_error)

        return synced

    def open_file(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        """In place of `open`: for writing, the same layers over a file whose writes are points."""
        writes = any(letter in mode for letter in "wxa+")
        if not writes or self.stage.actor() is None or self.inside(file) is None:
            return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        plain = mode.replace("b", "").replace("t", "")
        raw = io.FileIO(file, plain, closefd, opener)
        if "b" in mode and buffering == 0:
            return raw
        size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
        layer = io.BufferedRandom if "+" in mode else io.BufferedWriter
        buffered = layer(raw, size)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)


def _watched_file(watch: Watch) -> type[io.FileIO]:
    class WatchedFile(_FileIO):
        """A file whose creation and writes are points."""

        _shown: str | None = None
        _actor: Actor

        def __init__(
            self, file: Any, mode: str = "r", closefd: bool = True, opener: Any = None
        ) -> None:
            actor = watch.stage.actor()
            writes = any(letter in mode for letter in "wxa+")
            shown = watch.inside(file) if actor is not None and writes else None
            begin = super().__init__
            if actor is None or shown is None:
                begin(file, mode, closefd, opener)
                return
            try:
                watch.stage.reach(
                    actor,
                    f"{'create' if 'a' not in mode else 'open'} {shown}",
                    lambda: begin(file, mode, closefd, opener),
                    error=io_error,
                )
            except BaseException:
                super().close()
                raise
            if isinstance(file, int):
                watch._descriptors.pop(file, None)
            self._shown, self._actor = shown, actor
            actor.at_death.append(super().close)

        def write(self, data: Any) -> int:
            if self._shown is None:
                return super().write(data)
            if self._actor.is_dead:
                return len(data)
            write, held = super().write, bytes(data)
            written: int = watch.stage.reach(
                self._actor,
                f"write {self._shown}",
                lambda: write(held),
                tear=lambda: write(held[: len(held) // 2]),
                error=io_error,
            )
            return written

    return WatchedFile


@contextlib.contextmanager
def watched_files(stage: Stage, place: Path) -> Iterator[None]:
    """While this lasts, the file calls of actors below `place` are fault points."""
    watch = Watch(stage, place)
    stand_ins: list[tuple[object, str, Any]] = [
        (os, name, watch.change(name)) for name in (*_TWO_PATHS, *_ONE_PATH)
    ]
    stand_ins += [(os, name, watch.sync(name)) for name in ("fsync", "fdatasync")]
    stand_ins += [
        (os, "open", watch.open_descriptor),
        (os, "close", watch.close_descriptor),
        (os, "write", watch.write_descriptor),
        (builtins, "open", watch.open_file),
        (io, "open", watch.open_file),
        (io, "FileIO", _watched_file(watch)),
    ]
    with contextlib.ExitStack() as restoring:
        for owner, name, stand_in in stand_ins:
            restoring.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, stand_in)
        yield
