"""Machine code from LLVM's text form, kept in the user's cache folder by what it was made from.

The folder is `epochgate/code` under $XDG_CACHE_HOME, or under `~/.cache`; EPOCHGATE_CACHE names
another one, and is empty to keep nothing. A file is written beside its place and then moved there,
and it carries its own checksum, so what is damaged or half written is compiled again.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

OPTIMISATION = 2
DIGEST_BYTES = 32


class MachineCode:
    """Compiled functions; the addresses live as long as this object."""

    def __init__(self, object_code: bytes) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
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


def machine_code(key: str, text: Callable[[], str]) -> tuple[MachineCode, bool]:
    """Code compiled from `text()`, or kept from an earlier run with the same key; and whether it
    was kept.
    """
    _initialize()
    path = _path(key)
    kept = _read(path) if path is not None else None
    if kept is not None:
        return MachineCode(kept), True
    made = _compiled(text())
    if path is not None:
        _write(path, made)
    return MachineCode(made), False


def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _features() -> str:
    return str(llvm.get_host_cpu_features().flatten())


def _target() -> Any:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=OPTIMISATION, jit=True
    )


def _compiled(text: str) -> bytes:
    module, target = llvm.parse_assembly(text), _target()
    options = llvm.create_pipeline_tuning_options(speed_level=OPTIMISATION)
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    return bytes(target.emit_object(module))


def _path(key: str) -> Path | None:
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
        str(OPTIMISATION),
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
