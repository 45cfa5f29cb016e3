"""Files of a job are its user's alone, unless `EPOCHGATE_FILE_MODE` or a table says otherwise."""

from __future__ import annotations

import ast
import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from epochgate.runtime.filesystem import FILE_MODE, FileModeInvalid, LocalFileSystem
from epochgate.runtime.observing.history import History
from epochgate.runtime.observing.status import NothingToSee, checkpoint_directory_in
from epochgate.runtime.requests.place import RequestPlace
from epochgate.runtime.savepoints import write_savepoint
from epochgate.runtime.store import DirectoryCheckpointStore
from epochgate.spark.streaming import Control, DirectoryLedger
from epochgate.spark.streaming.notes import Notes
from tests.runtime.store.mediums import JOB, checkpoint_of
from tests.runtime.test_history import WHOLE
from tests.traces.stories import told

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def usual_umask(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(FILE_MODE, raising=False)
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(place: Path) -> dict[str, set[int]]:
    """The permissions of all files and of all directories below `place`, which is none of them."""
    found = list(place.rglob("*"))
    assert any(one.is_file() for one in found)
    of = {
        "files": [one for one in found if one.is_file()],
        "directories": [one for one in found if one.is_dir()],
    }
    return {
        kind: {stat.S_IMODE(one.stat().st_mode) for one in some}
        for kind, some in of.items()
        if some
    }


def checkpoints(place: Path) -> None:
    with DirectoryCheckpointStore(place / "checkpoints", job_id=JOB) as store:
        store.write_file("known-files/one.segment", b"a")
        store.save(checkpoint_of(1))


def savepoint(place: Path) -> None:
    write_savepoint(str(place / "a" / "savepoint"), checkpoint_of(1), lambda _: b"known")


def requests(place: Path) -> None:
    RequestPlace(str(place)).write("x.request", {"to": None})


def history(place: Path) -> None:
    listener = History(str(place / "history"))
    for event in WHOLE:
        listener.on_event(event)
    listener.close()


def control(place: Path) -> None:
    Control("limits", {"limit": 1}, store=str(place / "controls")).update(limit=2)


def ledger(place: Path) -> None:
    DirectoryLedger(str(place / "ledger")).notes().exchange(Notes(), {})


def trace(place: Path) -> None:
    told(place / "trace")


@pytest.mark.parametrize(
    "make", [checkpoints, savepoint, requests, history, control, ledger, trace]
)
@pytest.mark.parametrize(
    ("setting", "file", "directory"), [(None, 0o600, 0o700), ("640", 0o640, 0o750)]
)
def test_what_a_job_writes_is_private_unless_the_setting_says_otherwise(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    setting: str | None,
    file: int,
    directory: int,
) -> None:
    if setting is not None:
        monkeypatch.setenv(FILE_MODE, setting)
    make(tmp_path)
    assert modes(tmp_path) in ({"files": {file}, "directories": {directory}}, {"files": {file}})


@pytest.mark.parametrize("given", ["rw", "888", "1777", "0", "400", ""])
def test_a_setting_that_is_no_mode_for_files_is_refused_with_an_example(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FILE_MODE, given)
    with pytest.raises(FileModeInvalid, match=f"EPOCHGATE_FILE_MODE is '{given}'.* 640"):
        DirectoryCheckpointStore(tmp_path / "checkpoints", job_id=JOB)


def test_files_of_a_table_are_as_readable_as_its_directory_and_never_beyond_the_umask(
    tmp_path: Path,
) -> None:
    for mode, expected in ((0o755, 0o644), (0o750, 0o640), (0o700, 0o600), (0o777, 0o644)):
        table = tmp_path / f"{mode:o}"
        table.mkdir()
        table.chmod(mode)
        files = LocalFileSystem.of_table(table)
        files.make_directory(table / "below")
        files.write_bytes_durably(table / "below" / "file", b"row")
        assert modes(table)["files"] == {expected}
    LocalFileSystem.of_table(tmp_path / "new").make_directory(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


@contextlib.contextmanager
def without_access(directory: Path) -> Iterator[None]:
    """Let this process be one that may not read `directory`: of another user, if it is root's."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    else:
        directory.chmod(0)
    try:
        yield
    finally:
        os.seteuid(user)
        directory.chmod(0o700)


def test_another_user_s_checkpoints_are_refused_with_owner_and_permissions() -> None:
    # Not in tmp_path, whose own directory is private.
    with tempfile.TemporaryDirectory() as made:
        place, owner = Path(made) / "checkpoints", os.geteuid()
        Path(made).chmod(0o755)
        DirectoryCheckpointStore(place, job_id=JOB).close()
        with (
            without_access(place),
            pytest.raises(NothingToSee, match=rf"it is of user {owner} and has the permissions \d"),
        ):
            checkpoint_directory_in(str(place))


MAKING = {"mkdir", "makedirs", "write_text", "write_bytes", "FileIO", "mkstemp"}
"""Calls that make a file or directory with the permissions of the umask."""
EXCEPTIONS = {
    "runtime/filesystem.py": "gives the mode",
    "spark/checking/folder.py": "gives the mode",
    "spark/checking/keeper.py": "in a directory that is made for its user alone",
    "spark/home.py": "in a directory of mkdtemp, which is private",
    "spark/scratch.py": "in a directory of mkdtemp, which is private",
    "spark/shipping.py": "the program's own source, in Spark's private directory",
    "spark/java.py": "Java's programs, which hold nothing of a job",
}


def makes_files(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name == "open" and isinstance(node.func, ast.Name):
        modes = [one.value for one in node.args[1:2] if isinstance(one, ast.Constant)]
        is_writing = any(set("wxa") & set(str(mode)) for mode in modes)
        return is_writing and not any(one.arg == "opener" for one in node.keywords)
    return name in MAKING


@pytest.mark.parametrize("room", ["runtime", "spark"])
def test_no_other_code_makes_files_with_the_permissions_of_the_umask(room: str) -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / room).rglob("*.py")
        if "testing" not in path.parts
        and any(map(makes_files, ast.walk(ast.parse(path.read_text()))))
    }
    assert found <= EXCEPTIONS.keys()
