"""The package sends itself to executors that do not have it.

Decides what travels: one zip with the whole package as this driver runs it, and beside it, for
executors that lack them, its dependencies in pure Python. Leaves to `bootstrap` what is used of it.
The zip stands before an installed copy on the path, so that a part of the package would hide the
rest of that copy. Compiled code is in the zip as well, since every replaced worker imports again;
another Python version ignores it and compiles the sources. Runs on the driver, on the caller's
thread.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import py_compile
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any, Final

import epochgate

CARRIED: Final = ("msgpack", "transitions", "six")
CARRIED_FOLDER: Final = "epochgate_carried"
_lock = threading.Lock()
_shipped: dict[str, str] = {}
"""Spark application id -> the archive's name there."""
_built: dict[str, bytes] = {}
"""Digest of the sources -> the zip of them, of the last build: compiling takes a second."""


def ship(context: Any) -> str:
    """Give the package to all executors of `context`, a SparkContext, now and later; its file name.

    The driver's own `sys.path` stays as it is, which `addPyFile` would change.
    """
    application: str = context.applicationId
    with _lock:
        if application not in _shipped:
            folder = tempfile.mkdtemp(prefix="epochgate-ship-", dir=context._temp_dir)
            archive = build_archive(Path(folder))
            context.addFile(str(archive))
            _shipped[application] = archive.name
        return _shipped[application]


def build_archive(folder: Path) -> Path:
    """Write the zip into `folder`; its name holds a digest of what is in it."""
    sources = _package_sources()
    for name in CARRIED:
        sources.update(_carried_sources(name))
    texts = {name: sources[name].read_bytes() for name in sorted(sources)}
    parts = (f"{name}\0{len(text)}\0".encode() + text for name, text in texts.items())
    digest = hashlib.sha256(b"".join(parts)).hexdigest()
    if digest not in _built:
        _built.clear()
        _built[digest] = _zipped(texts, sources)
    archive = folder / f"epochgate-{digest[:16]}.zip"
    archive.write_bytes(_built[digest])
    return archive


def _zipped(texts: dict[str, bytes], sources: dict[str, Path]) -> bytes:
    built = io.BytesIO()
    with zipfile.ZipFile(built, "w") as target, tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder, "module.pyc")
        for name, text in texts.items():
            target.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
            if name.endswith(".py"):
                py_compile.compile(
                    str(sources[name]),
                    cfile=str(scratch),
                    dfile=name,
                    doraise=True,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )
                compiled = zipfile.ZipInfo(name + "c")
                target.writestr(compiled, scratch.read_bytes(), zipfile.ZIP_DEFLATED)
    return built.getvalue()


def _package_sources() -> dict[str, Path]:
    """Name in the zip -> file, of the package's face and the folders that its links lead to."""
    root = Path(epochgate.__path__[0])
    sources = {f"epochgate/{file.name}": file for file in root.glob("*.py*") if file.is_file()}
    for folder in (path for path in root.iterdir() if path.is_dir()):
        real = folder.resolve()
        for file in (*real.rglob("*.py"), *real.rglob("__init__.pyi")):
            sources[f"epochgate/{folder.name}/{file.relative_to(real).as_posix()}"] = file
    return sources


def _carried_sources(name: str) -> dict[str, Path]:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return {}
    origin = Path(spec.origin)
    if origin.name != "__init__.py":
        return {f"{CARRIED_FOLDER}/{origin.name}": origin}
    root = origin.parent
    return {
        f"{CARRIED_FOLDER}/{name}/{file.relative_to(root).as_posix()}": file
        for file in root.rglob("*.py")
    }
