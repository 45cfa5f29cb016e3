"""Counterexamples as tests: they fail while the claim breaks, for the reason that the checker gave,
and pass once the machines are mended.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from epochgate.cli import main
from epochgate.fsm.checker import Result, check
from epochgate.fsm.checker.schedule import ClaimBroken, StepUnknown, play
from epochgate.fsm.closed import ClosedSystem
from epochgate.reports import pytest_module
from epochgate.reports.regression import SystemNotImportable
from tests.checker import small_systems as small
from tests.checker.broken import NoValve
from tests.models import test_closed_job as variants


def the_test_in(text: str, folder: Path) -> Callable[[], None]:
    """The only test function of a generated file."""
    path = folder / "test_generated.py"
    path.write_text(text, encoding="utf-8")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    (found,) = [value for name, value in vars(module).items() if name.startswith("test_")]
    return found  # type: ignore[no-any-return]  # what a generated file defines is a test


def written(system: type[ClosedSystem], result: Result, folder: Path) -> str:
    return pytest_module({"it": result}, {"it": system}, folder)


@pytest.mark.parametrize(
    ("broken", "constants", "reason"),
    [
        (
            variants.WithOpenGateway,
            {"subtasks": 1, "coordinators": 2, "wanted": 1, "F": 0},
            r"store.finish_save: I2: coordinator 0 had sent 0 events .* the subtask's state holds",
        ),
        (
            variants.WithForgetfulCheckpoint,
            {"subtasks": 1},
            "process.0..hear_again: the job master has stopped: checkpoint 1 is not under way",
        ),
        (
            variants.WithHastySnapshot,
            {"subtasks": 1},
            "the job master has stopped: HastySnapshot.* refuses",
        ),
    ],
)
def test_the_runtime_with_a_broken_machine_fails_and_with_the_mended_one_passes(
    broken: type[ClosedSystem], constants: dict[str, int], reason: str, tmp_path: Path
) -> None:
    text = written(broken, check(broken(**constants)), tmp_path)
    assert "from epochgate.testing import play" in text
    with pytest.raises(ClaimBroken, match=reason):
        the_test_in(text, tmp_path)()
    own = f"from {broken.__module__} import {broken.__name__}"
    assert own in text
    mended = f"from epochgate.models.closed.job import ClosedJob as {broken.__name__}"
    the_test_in(text.replace(own, mended), tmp_path)()


@pytest.mark.parametrize(
    "system",
    [
        small.UnfairHouse,
        small.QuietHouse,
        small.OutOfRange,
        small.Overflowing,
        small.Refusing,
        small.Deadlocked,
        small.RaisingProperty,
        NoValve,
    ],
)
def test_machines_of_ones_own_fail_as_they_did_in_the_search(
    system: type[ClosedSystem], tmp_path: Path
) -> None:
    result = check(system, engine="python")
    assert result.counterexample is not None
    with pytest.raises(ClaimBroken) as broken:
        the_test_in(written(system, result, tmp_path), tmp_path)()
    claim = next(
        (p.claim for p in result.properties if p.name == result.counterexample.property),
        result.counterexample.message.rpartition(": ")[2],
    )
    assert claim in str(broken.value)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (("visitor[0].ask", "visitor[1].ask", "visitor[1].enter"), "it does not lead back"),
        (("visitor[0].ask",), "a visitor who may enter is put off for ever"),
        (("visitor[0].ask", "visitor[0].enter", "visitor[0].leave"), "the promise is kept"),
    ],
)
def test_a_loop_that_is_none_breaks_no_promise(steps: tuple[str, ...], why: str) -> None:
    assert play(small.UnfairHouse(), *steps, cycle=1, promise="first_wants") == [], why


DOOR = """
from epochgate.fsm import Machine, Opaque, Row, machines
from epochgate.fsm.closed import ClosedSystem, Step, always
from epochgate.models.closed.job import ClosedJob
from epochgate.models.gateway import Gateway


class Door(Machine):
    STATES = ("shut", "ajar", "open")
    INITIAL = "shut"
    ROWS = (
        Row("push", "shut", "ajar", None, None, "a guest comes"),
        Row("pull", "ajar", "shut", None, None, "a guest leaves"),
        Row("push", "ajar", "open", "may_open", None, "more of them come"),
        Row("pull", "open", "ajar", None, None, "a guest leaves"),
    )

    def may_open(self) -> bool:
        return {may_open}


class House(ClosedSystem):
    STEPS = (Step("door", "push"), Step("door", "pull"))
    door: Door = machines(Door)

    @always("the house stays warm")
    def is_warm(self) -> bool:
        return self.door.state != "open"


class MyGateway(Gateway):
    def hold(self, attempt: int, event: Opaque) -> None:
        {hold}


class MyJob(ClosedJob):
    gateway: dict[tuple[int, int], Gateway] = machines(MyGateway)
"""


def run_pytest(folder: Path) -> tuple[int, str]:
    """Run the tests of a folder as a user does."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.programs
def test_the_command_writes_tests_that_users_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, folder = tmp_path / "own_door.py", tmp_path / "tests"
    folder.mkdir()
    module.write_text(
        DOOR.format(may_open="True", hold="self.sender.held(event); self.pass_on(event)")
    )
    monkeypatch.chdir(tmp_path)
    house, job = folder / "test_house.py", folder / "test_job.py"
    assert main(["check", "own_door:House", "--engine", "python", "--pytest", str(house)]) == 1
    bounds = [f"--set={name}" for name in ("subtasks=1", "coordinators=2", "wanted=1", "F=0")]
    assert main(["check", "own_door:MyJob", *bounds, "--pytest", str(job)]) == 1
    assert "schedule.play(" in house.read_text()
    assert '"user[0].take_snapshot",  # ' in job.read_text()
    code, shown = run_pytest(tmp_path)
    assert code == 1
    assert "step 2 of 2, door.push: not always: the house stays warm" in shown
    assert (
        "I2: coordinator 0 had sent 0 events to subtask 0 when it completed checkpoint 1" in shown
    )
    module.write_text(
        DOOR.format(may_open="False", hold="self.held.push(event); self.sender.held(event)")
    )
    code, shown = run_pytest(tmp_path)
    assert (code, "2 passed" in shown) == (0, True), shown
    assert capsys.readouterr().err == ""


def test_without_a_counterexample_no_file_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "test_it.py"
    arguments = ["check", "tests.checker.small_systems:House", "--engine", "python"]
    assert main([*arguments, "--pytest", str(path)]) == 0
    assert not path.exists()
    assert f"no counterexample was found: {path} is not written" in capsys.readouterr().err


def test_no_text_breaks_out_of_a_generated_file(tmp_path: Path) -> None:
    hostile = '"""\n\x00\\ raise SystemExit # é'
    result = check(small.UnfairHouse, engine="python")
    way = result.counterexample
    assert way is not None
    steps = tuple(replace(step, because=hostile) for step in way.steps)
    hurt = replace(
        result,
        counterexample=replace(way, message=hostile, steps=steps),
        properties=[replace(found, claim=hostile) for found in result.properties],
    )
    text = pytest_module({hostile: hurt}, {hostile: small.UnfairHouse}, tmp_path)
    assert max(map(len, text.splitlines())) <= 130
    with pytest.raises(ClaimBroken, match="the first visitor gets in"):
        the_test_in(text, tmp_path)()


def test_a_schedule_of_another_system_is_refused() -> None:
    with pytest.raises(StepUnknown, match="UnfairHouse has no step 'lift"):
        play(small.UnfairHouse(), "lift.rise")


def test_a_system_that_cannot_be_imported_is_refused(tmp_path: Path) -> None:
    class Local(small.UnfairHouse):
        """Declared within a function."""

    with pytest.raises(SystemNotImportable, match="top level of a module"):
        written(Local, check(Local, engine="python"), tmp_path)
