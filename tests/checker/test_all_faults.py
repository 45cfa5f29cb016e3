"""All that is wrong with a declaration is told at once, and what is right beside it is checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from epochgate.fsm import STAY, DeclarationError, Int, Machine, Row, machines
from epochgate.fsm.closed import ClosedSystem, Step
from epochgate.fsm.faults import deferred, faults_of

MODULE = """
from typing import Any, ClassVar

from epochgate.fsm import STAY, Int, Machine, Row, machines
from epochgate.fsm.closed import ClosedSystem, Environment, Step, always

class Lamp(Environment):
    STATES, INITIAL = ("off", "on", "lit"), "off"
    system: Any
    times: int = Int(3)
    ROWS = (
        Row("press", "off", "on", None, None, "it is switched on"),
        Row("press", "on", STAY, "may", "count", "it is pressed again"),
        Row("burn", "on", "lit", None, None, "it is bright"),
        Row("burn", "lit", STAY, None, None, "it burns on, without end"),
    )
    def may(self) -> bool:
        return self.times < 3
    def count(self) -> None:
        self.times += 1

class Lit(ClosedSystem):
    STEPS = (Step("lamp", "press"), Step("lamp", "burn"))
    lamp: Lamp = machines(Lamp)

class Broken(Environment):
    STATES, INITIAL = ("off",), "off"
    system: Any
    times: int = Int(3)
    ROWS = (Row("press", "off", STAY, "may", "count", "it is pressed"),)
    def may(self) -> int:
        return self.times
    def count(self) -> None:
        name = str(self.times)
        self.times = float(1)
        if name == "1":
            self.times = [1]

class Dark(ClosedSystem):
    STEPS = (Step("lamp", "press"),)
    lamp: Broken = machines(Broken)

class Late(ClosedSystem):
    STEPS = (Step("lamp", "press"), Step("lamp", "dim"), Step("light", "press"))
    UNTAKEN: ClassVar[dict[str, str]] = {"lamp.dim": "no", "lamp.press": "well"}
    lamp: Lamp = machines(Lamp)
"""


def checked(folder: Path, name: str) -> tuple[int, str, str]:
    (folder / "house.py").write_text(MODULE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "epochgate", "check", f"house:{name}", "--engine", "python"],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_system_is_checked_beside_others_that_are_refused(tmp_path: Path) -> None:
    code, out, err = checked(tmp_path, "Lit")
    assert (code, "4 of 4 rows taken" in out) == (0, True)
    assert "beside Lit this is refused:" in err
    for line, told in (
        (31, "a guard must return a bool"),
        (34, "Broken.count: a call of `str`"),
        (35, "Broken.count: a call of `float`"),
        (37, "a list is outside the checked subset"),
        (43, "has no trigger 'dim'"),
        (43, "a step names the machine 'light'"),
        (43, "UNTAKEN names 'lamp.dim'"),
    ):
        assert any(f"house.py:{line}:" in text and told in text for text in err.splitlines())
    assert "the name 'name'" not in err


def test_a_system_that_is_refused_is_told_everything(tmp_path: Path) -> None:
    code, _, err = checked(tmp_path, "Dark")
    assert code == 2
    assert "Traceback" not in err
    assert all(told in err for told in ("`str`", "`float`", "a list", "return a bool"))


def test_without_deferring_a_class_is_refused_as_it_is_created() -> None:
    def act(self: Any) -> None:
        self.number = [1]
        self.number = {}

    body = {
        "STATES": ("on",),
        "INITIAL": "on",
        "number": Int(1),
        "act": act,
        "ROWS": (Row("go", "on", STAY, None, "act", "x"), Row("go", "no", "far", "a", None, "y")),
    }
    with pytest.raises(DeclarationError, match="unknown source state 'no'"):
        type("Wrong", (Machine,), body)
    body["ROWS"] = body["ROWS"][:1]  # type: ignore[index]  # a tuple of rows
    with pytest.raises(DeclarationError) as refused:
        type("Wrong", (Machine,), body)
    assert [text.partition("Wrong.act: ")[2][:6] for text in refused.value.faults] == [
        "a list",
        "a dict",
    ]


def test_a_system_of_refused_machines_is_refused_when_it_is_made() -> None:
    class Idle(ClosedSystem):
        CONSTANTS: ClassVar[dict[str, int]] = {}

    with deferred() as refused:

        class Off(Machine):
            STATES, INITIAL = ("on",), "off"
            ROWS = (Row("go", "on", STAY, None, None, "x"),)

        class Kept(Idle):
            STEPS = (Step("off", "go"),)
            off: Off = machines(Off)

    assert refused == [Off, Kept]
    assert len(faults_of(refused)) == 1
    with pytest.raises(DeclarationError, match="'off' is not among STATES"):
        Kept()


def test_a_bound_that_is_no_constant_is_refused_at_once() -> None:
    class Counter(Machine):
        STATES, INITIAL = ("on",), "on"
        count: int = Int("nowhere")
        other: int = Int("elsewhere")
        ROWS = (Row("go", "on", STAY, None, None, "x"),)

    with pytest.raises(DeclarationError, match="bounded by 'nowhere'") as refused:
        type("Loose", (ClosedSystem,), {"it": machines(Counter), "STEPS": (Step("it", "go"),)})
    assert len(refused.value.faults) == 2
