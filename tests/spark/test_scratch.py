"""Files that a session writes are removed, also when its driver was killed; never those in use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from epochgate.spark.scratch import (
    ABANDONED_REMOVED_MAX,
    LOCK,
    PREFIX,
    remove_abandoned,
    scratch_folder,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def abandoned(parent: Path, name: str) -> Path:
    folder = parent / f"{PREFIX}{name}"
    (folder / "spark" / "local").mkdir(parents=True)
    (folder / LOCK).touch()
    return folder


def test_a_folder_lasts_as_long_as_its_block(temporary: Path) -> None:
    with scratch_folder() as folder:
        (folder / "file").write_text("of Spark's")
        assert temporary in folder.parents
    assert [*temporary.iterdir()] == []


def test_the_folder_of_a_killed_driver_goes_with_the_next_start(temporary: Path) -> None:
    script = (
        "import os, signal\n"
        "from epochgate.spark.scratch import scratch_folder\n"
        "with scratch_folder() as folder:\n"
        "    (folder / 'file').write_text('of Spark')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(ROOT), TMPDIR=str(temporary))
    killed = subprocess.run([sys.executable, "-c", script], env=environment, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    [left] = temporary.iterdir()
    assert (left / "spark" / "file").exists()
    with scratch_folder() as folder:
        assert [*temporary.iterdir()] == [folder.parent]


def test_the_folder_of_a_living_driver_stays() -> None:
    with scratch_folder() as first, scratch_folder() as second:
        assert first.is_dir()
        assert second.is_dir()


def test_a_folder_that_says_nothing_of_its_driver_stays(temporary: Path) -> None:
    (abandoned(temporary, "young") / LOCK).unlink()
    remove_abandoned(temporary)
    assert [path.name for path in temporary.iterdir()] == [f"{PREFIX}young"]


def test_the_folder_of_another_user_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, user = abandoned(temporary, "theirs"), os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    remove_abandoned(temporary)
    assert folder.is_dir()
    monkeypatch.setattr(os, "getuid", lambda: user)
    remove_abandoned(temporary)
    assert not folder.exists()


def test_what_is_left_of_a_folder_is_found_again(temporary: Path) -> None:
    folder = abandoned(temporary, "half")
    (folder / "spark" / "local").rmdir()
    (folder / "spark").rmdir()
    remove_abandoned(temporary)
    assert not folder.exists()


def test_one_start_removes_a_bounded_number_of_folders(temporary: Path) -> None:
    for number in range(ABANDONED_REMOVED_MAX + 1):
        abandoned(temporary, f"{number:02}")
    remove_abandoned(temporary)
    assert len([*temporary.iterdir()]) == 1
    remove_abandoned(temporary)
    assert [*temporary.iterdir()] == []
