"""Changes since a revision of git: told, painted, and silent where there are none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.diagrams.description import Description, describe
from epochgate.diagrams.difference import Difference, differences
from epochgate.models import MACHINES
from tests.fsm.turnstile import Turnstile

Capture = pytest.CaptureFixture[str]
MODULE = Path(__file__).parents[1] / "fsm" / "turnstile.py"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose first revision has the turnstile, in the module `planted` below src; the
    present folder is src.
    """
    source = tmp_path / "src"
    source.mkdir()
    (source / "planted.py").write_text(MODULE.read_text(encoding="utf-8"), encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    monkeypatch.chdir(source)
    monkeypatch.delitem(sys.modules, "planted", raising=False)
    return source


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, timeout=60)


def change(source: Path, *pairs: tuple[str, str]) -> None:
    path = source / "planted.py"
    text = path.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def test_nothing_is_said_where_nothing_has_changed(repository: Path, capsys: Capture) -> None:
    change(repository, ("return self.is_free", "return self.is_free  # all day"))
    assert main(["draw", "planted:Turnstile", "--diff", "HEAD", "-o", "shown"]) == 0
    assert capsys.readouterr().out == ""
    assert not Path("shown").exists()


def test_a_guard_with_another_text_is_told_and_painted(repository: Path, capsys: Capture) -> None:
    change(repository, ("coin >= self.system.fare", "coin > self.system.fare"))
    assert main(["draw", "planted:Turnstile", "--diff", "HEAD", "-o", "shown"]) == 0
    told = capsys.readouterr().out
    assert "-     return self.coins + coin >= self.system.fare\n" in told
    assert "+     return self.coins + coin > self.system.fare\n" in told
    assert told.count("text of is enough has changed") == 2
    assert "push" not in told
    shown = Path("shown/Turnstile.svg").read_text(encoding="utf-8")
    assert shown.count(">text of is enough has changed<") == 2
    table = Path("shown/Turnstile.md").read_text(encoding="utf-8")
    assert table.count("**text of is enough has changed**") == 2


def test_rows_and_states_that_came_went_and_changed_are_told(
    repository: Path, capsys: Capture
) -> None:
    change(
        repository,
        ('LOCKED, UNLOCKED, BROKEN = "locked", "unlocked", "broken"', _STATES),
        ("STATES = (LOCKED, UNLOCKED, BROKEN)", "STATES = (LOCKED, UNLOCKED, JAMMED)"),
        ("TERMINAL = (BROKEN,)", "TERMINAL = (JAMMED,)"),
        ("(LOCKED, UNLOCKED), BROKEN,", "(LOCKED, UNLOCKED), JAMMED,"),
        ('Ignore("hit",  BROKEN, ', 'Ignore("hit",  JAMMED, '),
        ('"more is due"', '"the fare is higher"'),
        (
            '"for the next"),',
            '"for the next"),\n        Row("kick", LOCKED, STAY, None, "tell", "no"),',
        ),
        ("    hit: Trigger\n", "    hit: Trigger\n    kick: Trigger\n"),
    )
    assert main(["draw", "planted:Turnstile", "--diff", "HEAD", "-o", "shown"]) == 0
    told = capsys.readouterr().out.splitlines()
    for line in (
        "- state broken",
        "+ state jammed",
        "- ends in broken",
        "+ ends in jammed",
        "- pay in locked stays [not is_enough] / take (more is due)",
        "+ pay in locked stays [not is_enough] / take (the fare is higher)",
        "+ kick in locked stays / tell (no)",
        "- hit in locked, unlocked -> broken / tell (it is not solid)",
        "+ hit in locked, unlocked -> jammed / tell (it is not solid)",
    ):
        assert line in told
    assert not [line for line in told if "push" in line]
    shown = Path("shown/Turnstile.svg").read_text(encoding="utf-8")
    for text in ("broken", "jammed", "removed", "added", "destination was broken"):
        assert f">{text}<" in shown


def test_an_event_that_is_ignored_no_more_is_painted_as_both(repository: Path) -> None:
    stays = 'Ignore("push", LOCKED,                       "not is_open",'
    change(repository, (stays, 'Row("push", LOCKED, STAY, "not is_open", "tell",'))
    assert main(["draw", "planted:Turnstile", "--diff", "HEAD", "-o", "shown"]) == 0
    shown = Path("shown/Turnstile.svg").read_text(encoding="utf-8")
    for text in ("/ ignored", "removed", "added"):
        assert shown.count(f">{text}<") == (1 if text == "/ ignored" else 2)


_STATES = 'LOCKED, UNLOCKED, JAMMED = "locked", "unlocked", "jammed"'


def test_a_machine_that_the_revision_does_not_have_is_all_new(
    repository: Path, capsys: Capture
) -> None:
    (repository / "planted.py").rename("renewed.py")
    assert main(["draw", "renewed:Turnstile", "--diff", "HEAD"]) == 0
    told = capsys.readouterr().out
    assert "### Turnstile, added" in told
    assert told.count("\n+ ") >= len(Turnstile.ROWS)
    assert "\n- " not in told


def test_old_code_is_imported_in_another_process(repository: Path, capsys: Capture) -> None:
    change(repository, ("coin >= self.system.fare", "coin > self.system.fare"))
    with (repository / "planted.py").open("a") as file:
        file.write("\nimport sys\nsys.planted_by = 'present'\n")
    git(repository, "commit", "--quiet", "--all", "--message", "second")
    change(repository, ("'present'", "'other'"))
    assert main(["draw", "planted:Turnstile", "--diff", "HEAD"]) == 0
    assert capsys.readouterr().out == ""
    assert vars(sys)["planted_by"] == "other"


@pytest.mark.parametrize(
    ("revision", "message"),
    [
        ("no-such", "there is no revision 'no-such' in this repository"),
        ("HEAD", "cannot be imported; Python says: ZeroDivisionError: division by zero"),
    ],
)
def test_a_revision_that_cannot_be_read_is_told(
    repository: Path, revision: str, message: str, capsys: Capture
) -> None:
    (repository / "planted.py").write_text("1 / 0\n")
    git(repository, "commit", "--quiet", "--all", "--message", "broken")
    (repository / "planted.py").write_text(MODULE.read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["draw", "planted:Turnstile", "--diff", revision]) == 2
    assert message in capsys.readouterr().err


def test_machines_that_are_of_no_revision_of_the_repository_are_told(
    repository: Path, capsys: Capture
) -> None:
    assert main(["draw", "gateway", "--diff", "HEAD"]) == 2
    assert "which is not in the repository" in capsys.readouterr().err


def test_a_folder_without_a_repository_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["draw", "gateway", "--diff", "HEAD"]) == 2
    assert "git rev-parse fails" in capsys.readouterr().err


ALL = describe(MACHINES)


def test_a_machine_does_not_differ_from_itself() -> None:
    assert differences(ALL, ALL) == []


@pytest.mark.parametrize("name", ALL)
def test_every_row_of_both_sides_is_painted_or_in_a_pair(name: str) -> None:
    """Compared with a machine of other states and rows."""
    other = ALL["checkpoint" if name != "checkpoint" else "gateway"]
    renamed = Description(**{**vars(other), "name": name})
    (found,) = differences({name: renamed}, {name: ALL[name]})
    assert isinstance(found, Difference)
    merged, painting = found.picture()
    assert {*ALL[name].rows} <= {*merged.rows}
    pairs = dict(found.pairs)
    for row in other.rows:
        assert row in pairs or painting.rows[row].paint == "removed"
    new = {*pairs.values()}
    for row in ALL[name].rows:
        assert row in new or painting.rows[row].paint == "added"
    assert {*merged.states} == {*other.states, *ALL[name].states}


def test_what_a_guard_calls_belongs_to_it() -> None:
    one = ALL["gateway"]
    changed = {**one.bodies, "is_bound": "def is_bound(self):\n    return self.is_near()"}
    before = Description(**{**vars(one), "bodies": {**changed, "is_near": "old"}})
    after = Description(**{**vars(one), "bodies": {**changed, "is_near": "new"}})
    (found,) = differences({"gateway": before}, {"gateway": after})
    _, painting = found.picture()
    painted = {row for row, mark in painting.rows.items() if mark.paint == "changed"}
    assert painted == {r for r in one.rows if "is_bound" in dict(r.literals)}
