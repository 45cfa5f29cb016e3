"""Machine code from LLVM's text form, kept in the user's cache folder by what it was made from.

The folder is `epochgate/code` under $XDG_CACHE_HOME, or under `~/.cache`; EPOCHGATE_CACHE names
another one, and is empty to keep nothing. A file is written beside its place and then moved there,
and it carries its own checksum, so what is damaged or half written is compiled again.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import llvmlite
import llvmlite.binding as llvm

QUICK, OPTIMISED = 0, 2
"""LLVM's levels of optimisation."""
DIGEST_BYTES = 32
_log = logging.getLogger(__name__)


class MachineCode:
    """Compiled functions; the addresses live as long as this object."""

    def __init__(self, object_code: bytes) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target(QUICK))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        self._engine.finalize_object()

    def function(self, name: str, *types: Any) -> Callable[..., int]:
        """A callable for an exported function that returns a 64-bit integer; `types` are the ctypes
        of its arguments. It lets other Python threads run meanwhile.
        """
        address = self._engine.get_function_address(name)
        compiled = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(address)

        def call(*arguments: Any, _keep: MachineCode = self) -> int:
            return int(compiled(*arguments))

        return call


def kept(key: str, level: int) -> MachineCode | None:
    """Code of this key and level from an earlier run, if there is any."""
    _initialize()
    path = _path(key, level)
    found = _read(path) if path is not None else None
    return None if found is None else MachineCode(found)


def compiled(key: str, level: int, text: str) -> MachineCode:
    """Compile `text`, and keep the code for later runs."""
    _initialize()
    return _remembered(key, level, object_code(text, level))


def object_code(text: str, level: int) -> bytes:
    """Compile LLVM's text form. QUICK skips all of LLVM's passes: twenty times faster to compile,
    two to three times slower to run.
    """
    _initialize()
    module, target = llvm.parse_assembly(text), _target(level)
    if level != QUICK:
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        passes = llvm.create_pass_builder(target, options)
        passes.getModulePassManager().run(module, passes)
    return bytes(target.emit_object(module))


class Optimisation:
    """Compiles optimised code in a process beside the search, which can be given up at any time."""

    def __init__(self, key: str, text: str) -> None:
        self._key = key
        self._folder = TemporaryDirectory(prefix="epochgate-code-")
        self._made = Path(self._folder.name, "code.o")
        source = Path(self._folder.name, "module.ll")
        source.write_text(text, encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(source), str(self._made)],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            process_group=0,  # Ctrl-C is for the search, which gives this process up
        )

    @property
    def is_done(self) -> bool:
        return self._process.poll() is not None

    def code(self) -> MachineCode | None:
        """The code, once it is done; None where the compiler failed, which a warning tells."""
        if self._process.returncode != 0:
            _log.warning(
                "the optimised code was not made: the compiler ended with exit code %s; the "
                "search goes on without",
                self._process.returncode,
            )
            return None
        return _remembered(self._key, OPTIMISED, self._made.read_bytes())

    def close(self) -> None:
        """Give up what is not done."""
        if not self.is_done:
            self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def _remembered(key: str, level: int, code: bytes) -> MachineCode:
    path = _path(key, level)
    if path is not None:
        _write(path, code)
    return MachineCode(code)


def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _features() -> str:
    return str(llvm.get_host_cpu_features().flatten())


def _target(level: int) -> Any:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=level, jit=True
    )


def _path(key: str, level: int) -> Path | None:
    named = os.environ.get("EPOCHGATE_CACHE")
    if named == "":
        return None
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(named) if named else Path(home).expanduser() / "epochgate"
    surroundings = (
        key,
        llvmlite.__version__,
        llvm.get_default_triple(),
        llvm.get_host_cpu_name(),
        _features(),
        str(level),
    )
    digest = hashlib.sha256("\0".join(surroundings).encode()).hexdigest()
    return folder / "code" / f"{digest}.o"


def _read(path: Path) -> bytes | None:
    try:
        found = path.read_bytes()
    except OSError:
        return None
    digest, code = found[:DIGEST_BYTES], found[DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(path: Path, code: bytes) -> None:
    """Keep the code; a folder that cannot be written to only costs the next run its time."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside.write_bytes(hashlib.sha256(code).digest() + code)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)


if __name__ == "__main__":
    _source, _destination = map(Path, sys.argv[1:])
    _destination.write_bytes(object_code(_source.read_text(encoding="utf-8"), OPTIMISED))
