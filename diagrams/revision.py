"""The machines as another revision of the repository has them.

Git writes the files of the revision into a folder of its own, and a child process, whose path leads
there, describes the machines as data (`describing`): old code and new never meet in one process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from epochgate.diagrams.description import Description, of_data
from epochgate.errors import UsageError

TIMEOUT_S = 120.0


class NoRevision(UsageError):
    """The machines of a revision cannot be read."""


def described_at(revision: str, names: Sequence[str]) -> dict[str, Description]:
    """Return the machines that these names, as `module:attribute`, stand for in a revision of the
    repository that the present folder belongs to; those that it does not have are left out.

    Raises NoRevision.
    """
    top = Path(_git("rev-parse", "--show-toplevel").decode().strip()).resolve()
    commit = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", told=revision)
    with _files_of(commit.decode().strip(), top) as tree:
        found = _loaded(tree, top, revision, names)
    for name, file in found["files"].items():
        path = Path(file)
        if not path.is_relative_to(tree) and not path.is_relative_to(top):
            raise NoRevision(
                f"{name} comes from {file}, which is not in the repository {top}: it has no "
                f"revision {revision}; name machines of this repository"
            )
    # A module that only the present files have is imported from these, and is not of the revision.
    of_revision = {n for n, file in found["files"].items() if Path(file).is_relative_to(tree)}
    return {
        key: of_data(data) for key, (name, data) in found["machines"].items() if name in of_revision
    }


@contextmanager
def _files_of(commit: str, top: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="epochgate-revision-") as name:
        archive, tree = Path(name) / "files.tar", Path(name).resolve() / "files"
        _git("-C", str(top), "archive", "--format=tar", f"--output={archive}", commit)
        with tarfile.open(archive) as files:
            files.extractall(tree, filter="tar")
        archive.unlink()
        yield tree


def _loaded(tree: Path, top: Path, revision: str, names: Sequence[str]) -> dict[str, Any]:
    """Run `describing` on the files in `tree`, and read the result."""
    paths = [Path.cwd(), *(Path(entry or ".") for entry in sys.path)]
    inside = [path.resolve() for path in paths if path.resolve().is_relative_to(top)]
    mapped = dict.fromkeys(str(tree / path.relative_to(top)) for path in inside)
    try:
        outcome = subprocess.run(
            [sys.executable, "-P", str(Path(__file__).with_name("describing.py")), *names],
            cwd=tree,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path for path in mapped if Path(path).is_dir()),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NoRevision(
            f"the modules of revision {revision} were not imported in {TIMEOUT_S:.0f} s"
        ) from error
    if outcome.returncode != 0:
        said = outcome.stderr.strip().splitlines() or ["nothing"]
        raise NoRevision(
            f"the machines of revision {revision} cannot be imported; Python says: {said[-1]}. "
            f"Choose a revision whose modules work with what is installed"
        )
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


def _git(*arguments: str, told: str | None = None) -> bytes:
    try:
        outcome = subprocess.run(
            ["git", *arguments], capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except FileNotFoundError as error:
        raise NoRevision("there is no program git on PATH, which reads revisions") from error
    if outcome.returncode == 0:
        return outcome.stdout
    if told is not None:
        raise NoRevision(
            f"there is no revision {told!r} in this repository; name a commit, a branch or a tag. "
            f"A shallow clone has its newest commits only: git fetch --unshallow"
        )
    said = outcome.stderr.decode(errors="replace").strip()
    raise NoRevision(f"git {arguments[0]} fails in {Path.cwd()}: {said}")
