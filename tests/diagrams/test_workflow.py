"""The workflow that tells of changed machines in a pull request: its commands are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.diagrams.test_difference import change, repository as repository

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "machine-changes.yml"
GH = """\
#!/bin/sh
echo "$*" >> {calls}
case "$*" in *--paginate*) cat {told} ;; esac
"""


def commands(step: str) -> str:
    """The commands of a step."""
    text = WORKFLOW.read_text(encoding="utf-8").split(f"- name: {step}\n")[1]
    found = re.search(r"        run: \|\n((?:          .*\n)+)", text)
    assert found is not None
    return textwrap.dedent(found[1])


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with programs named gh and epochgate, first on the path; `calls` notes those of gh,
    and `told` has the comment that is there already.
    """
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "told").write_text("")
    texts = {
        "gh": GH.format(calls=folder / "calls", told=folder / "told"),
        "epochgate": f'#!/bin/sh\nexec {sys.executable} -m epochgate "$@"\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    for name, value in {
        "BASE": "HEAD",
        "GITHUB_REPOSITORY": "someone/doors",
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "MACHINES": "planted:Turnstile",
        "PULL": "7",
        "RUN": "https://example.org/run",
    }.items():
        monkeypatch.setenv(name, value)
    return folder


def told(programs: Path) -> list[str]:
    """Return the calls of gh, without those that look something up."""
    for step in ("compare", "tell"):
        subprocess.run(["bash", "-eo", "pipefail", "-c", commands(step)], check=True, timeout=60)
    calls = (programs / "calls").read_text().splitlines()
    return [call for call in calls if "--paginate" not in call]


def test_a_change_is_told_and_the_comment_kept_up_to_date(repository: Path, programs: Path) -> None:
    change(repository, ("coin >= self.system.fare", "coin > self.system.fare"))
    comments = "repos/someone/doors/issues"
    assert told(programs) == [f"api {comments}/7/comments -F body=@comment.md"]
    comment = Path("comment.md").read_text()
    assert comment.startswith("<!-- machine changes -->\n## Changes of the state machines")
    assert "+     return self.coins + coin > self.system.fare" in comment
    assert Path("changed/Turnstile.svg").is_file()
    (programs / "told").write_text("31\n")
    assert told(programs)[-1] == f"api -X PATCH {comments}/comments/31 -F body=@comment.md"


def test_it_is_silent_where_nothing_has_changed(repository: Path, programs: Path) -> None:
    assert told(programs) == []
    assert (programs / "summary").read_text() == ""
    (programs / "told").write_text("31\n")
    assert told(programs) == ["api -X DELETE repos/someone/doors/issues/comments/31"]
