"""Machines of other libraries are checked: what is compiled, what is abstracted, what is said."""

from __future__ import annotations

import contextlib
import re
import types
import unittest
from pathlib import Path
from typing import Any

import pytest
from transitions import Machine, MachineError

from epochgate.cli import main
from epochgate.fsm import from_transitions
from epochgate.fsm.checker import Result, Verdict
from epochgate.fsm.existing import (
    CannotRead,
    ExistingMachine,
    always,
    before,
    happens,
    never,
    sometimes,
)
from tests.checker import vault
from tests.checker.vault import Vault
from tests.fsm import known_machines
from tests.fsm.known_machines import KNOWN, Thing, made

Capture = pytest.CaptureFixture[str]


def checked(read: ExistingMachine) -> Result:
    return read.check(engine="python")


def verdicts(result: Result) -> dict[str, str]:
    return {found.claim: found.verdict.value for found in result.properties}


def steps(result: Result) -> list[str]:
    assert result.counterexample is not None
    return [step.trigger for step in result.counterexample.steps]


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "parallel"])
def test_every_known_machine_is_checked(name: str) -> None:
    result = checked(from_transitions(KNOWN[name]()))
    assert result.verdict in (Verdict.PASS, Verdict.VACUOUS)
    assert result.counterexample is None


def test_an_error_of_the_library_itself_is_found() -> None:
    """In transitions 0.9.3 a parallel state with one part in a final state raises when another
    part moves.
    """
    real = KNOWN["parallel"]()
    real.calls = 1
    for trigger in ("enter", "skip"):
        real.trigger(trigger)
    raised = ""
    try:
        real.trigger("go")
    except AttributeError as error:
        raised = str(error)
    found = checked(from_transitions(KNOWN["parallel"]())).counterexample
    if not raised:
        assert found is None
        return
    assert found is not None
    assert [step.because for step in found.steps] == ["enter", "skip if not is_hot", "go"]
    assert "'go' raises AttributeError: 'scoped_enter' does not exist" in found.message


def test_guards_and_actions_of_the_subset_are_checked_as_they_are() -> None:
    result = checked(vault.read)
    assert verdicts(result)["never blocked"] == "FAIL"
    assert steps(result) == ["enter_if_not_is_right"] * 3 + ["enter"]
    assert result.notes[:2] == [
        "1 of 2 guards are abstracted: a counterexample may not be real; a pass holds whatever "
        "they answer",
        "abstracted: is_right: it uses arguments of the trigger",
    ]


def reached(calls: list[tuple[Any, ...]]) -> set[tuple[str, int]]:
    """List what real vaults do by any calls: each is made again for each sequence of calls."""
    found: set[tuple[str, int]] = set()
    waiting: list[tuple[tuple[Any, ...], ...]] = [()]
    while waiting:
        way = waiting.pop(0)
        real: Any = Vault()
        for call in way:
            with contextlib.suppress(MachineError):
                real.trigger(*call)
        if (real.state, real.tries) not in found:
            found.add((real.state, real.tries))
            waiting += [(*way, call) for call in calls]
    return found


def test_compiled_guards_reach_exactly_what_real_objects_reach() -> None:
    real = reached([("enter", 1), ("enter", 1234), ("shut", 0)])
    result = checked(from_transitions(Vault(), fields={"tries": 3}))
    assert result.states == len(real) == 6
    # With less of the vault compiled, what may be reached is more.
    assert checked(from_transitions(Vault())).states == len({state for state, _ in real})


def test_a_model_that_is_mended_passes() -> None:
    class Patient(Vault):
        def count(self, code: int) -> None:
            if self.tries < 2:
                self.tries += 1

    claims = {"never blocked": never("blocked")}
    result = checked(from_transitions(Patient(), fields={"tries": 3}, claims=claims))
    assert verdicts(result)["never blocked"] == "PASS"


def test_without_fields_a_guard_may_answer_either_way() -> None:
    read = from_transitions(Vault(), claims={"never blocked": never("blocked")})
    result = checked(read)
    assert steps(result) == ["enter_if_not_may_try"]
    assert "2 of 2 guards are abstracted" in result.notes[0]
    assert any("'tries', which is no field; `fields` may name it" in one for one in result.notes)


def test_a_field_is_given_up_where_something_else_may_write_it() -> None:
    class Leaky(Vault):
        def count(self, code: int) -> None:
            self.tries += int(code > 0)

    read = from_transitions(Leaky(), fields={"tries": 3})
    notes = checked(read).notes
    assert "2 of 2 guards are abstracted" in notes[0]
    assert any("the field 'tries' is given up: 'count' may change it" in one for one in notes)


@pytest.mark.parametrize(
    "meddle",
    [
        lambda model: setattr(model, "tries", 0),
        types.MethodType(lambda self: None, object()),
        print,
    ],
)
def test_a_field_is_given_up_for_a_callback_that_cannot_be_followed(meddle: Any) -> None:
    model = Vault()
    model.machine.add_transition("meddle", "locked", "locked", after=meddle)
    assert from_transitions(model, fields={"tries": 3}).callbacks.fields == {}


def test_a_callback_before_the_guards_gives_its_field_up() -> None:
    model = Vault()
    model.machine.add_transition("enter", "blocked", "locked", prepare="forget")
    found = from_transitions(model, fields={"tries": 3}).callbacks
    assert "runs before guards are asked" in found.given_up["tries"]


def test_a_guard_that_a_callback_may_have_changed_answers_freely_again() -> None:
    thing = made(
        Machine,
        states=["a", "b", "c"],
        initial="a",
        transitions=[
            {"trigger": "go", "source": "a", "dest": "b", "conditions": "is_hot"},
            {"trigger": "go", "source": "a", "dest": "c", "conditions": "is_hot",
             "prepare": "count"},
            ["back", ["b", "c"], "a"],
        ],
    )  # fmt: skip
    assert from_transitions(thing).never_taken == ()
    thing.machine.events["go"].transitions["a"][1].prepare.clear()
    assert from_transitions(thing).never_taken == ("go: a -> c",)


def test_what_a_guard_does_not_return_is_not_taken_for_false() -> None:
    class Silent(Thing):
        def is_calm(self) -> Any:  # noqa: RET503  # as users forget it
            if self.is_kept:
                return True

    thing = made(
        Machine,
        Silent(),
        states=["a", "b"],
        initial="a",
        transitions=[{"trigger": "go", "source": "a", "dest": "b", "unless": "is_calm"}],
    )
    reasons = from_transitions(thing, fields={"is_kept": bool}).callbacks.reasons
    assert reasons == {"is_calm": "it does not always return a value"}


def test_a_field_that_exceeds_what_is_said_of_it_is_a_counterexample() -> None:
    result = checked(from_transitions(Vault(), fields={"tries": 2}))
    assert result.counterexample is not None
    assert result.counterexample.kind == "range"


def test_fields_that_the_model_has_not_are_refused() -> None:
    with pytest.raises(CannotRead, match="no attribute 'turns'"):
        checked(from_transitions(Vault(), fields={"turns": 3}))
    with pytest.raises(CannotRead, match="give an int, its greatest value, or bool"):
        checked(from_transitions(Vault(), fields={"tries": "three"}))


def test_claims_look_at_states_alone_or_at_their_order() -> None:
    claims = {
        "solid or later": always(lambda state: state in ("solid", "liquid", "gas", "plasma")),
        "plasma is made": sometimes(lambda state: state == "plasma"),
        "through all": happens("solid", "liquid", "gas", "plasma"),
        "gas before plasma": before("gas", "plasma"),
        "never back": happens("gas", "liquid"),
        "liquid before gas": before("liquid", "gas"),
    }
    result = checked(from_transitions(KNOWN["matter"](), claims=claims))
    assert steps(result) == ["sublimate"]
    del claims["liquid before gas"]
    found = verdicts(checked(from_transitions(KNOWN["matter"](), claims=claims)))
    assert found.pop("never back") == "VACUOUS"
    assert {*found.values()} == {"PASS"}


def test_a_claim_names_nested_states_too() -> None:
    claims = {"never in parallel": never("p"), "unknown": never("q")}
    with pytest.raises(CannotRead, match="names the state 'q'"):
        checked(from_transitions(KNOWN["parallel"](), claims=claims))
    del claims["unknown"]
    assert steps(checked(from_transitions(KNOWN["parallel"](), claims=claims))) == ["enter"]


def test_a_state_that_is_not_final_and_has_no_way_out_is_a_deadlock() -> None:
    result = checked(from_transitions(vault.trap))
    assert result.counterexample is not None
    assert result.counterexample.kind == "deadlock"
    assert steps(result) == ["go"]


def test_what_is_never_taken_makes_a_check_vacuous() -> None:
    ordered = Machine(
        states=["a", "b"],
        transitions=[["go", "a", "b"], ["go", "a", "a"], ["back", "b", "a"]],
        initial="a",
    )
    result = checked(from_transitions(ordered))
    assert result.verdict is Verdict.VACUOUS
    assert [row.because for row in result.untaken] == ["go: a -> a"]


def test_a_trigger_that_a_callback_fires_before_the_change_is_told() -> None:
    thing = made(
        Machine,
        states=["a", "b", "c"],
        initial="a",
        transitions=[{"trigger": "go", "source": "a", "dest": "b", "before": "leap"},
                     ["leap", "*", "c"]],
    )  # fmt: skip
    notes = checked(from_transitions(thing)).notes
    assert any("'fire_leap' fires 'leap' before its transition is over" in one for one in notes)


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("read", 1, "not always: never blocked"),
        ("ring", 0, "PASS"),
        ("island", 3, "no transition leads to 'island'"),
        ("trap", 1, "deadlock"),
        ("vault", 0, "2 of 2 guards are abstracted"),
        ("Vault", 0, "3 automatic triggers are left out"),
        ("CLAIMS", 2, ""),
    ],
)
def test_the_command_checks_machines_by_name(
    name: str, code: int, told: str, capsys: Capture
) -> None:
    assert main(["check", f"tests.checker.vault:{name}"]) == code
    shown = capsys.readouterr()
    assert told in shown.out
    if code == 2:
        assert "no machine of transitions or python-statemachine" in shown.err


def test_a_test_file_of_a_machine_that_was_read_is_refused(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "test_found.py"
    assert main(["check", "tests.checker.vault:read", "--pytest", str(file)]) == 2
    assert "call `from_transitions(...).check()` in a test" in capsys.readouterr().err
    assert not file.exists()


def test_each_form_of_a_result_says_that_guards_are_abstracted(
    tmp_path: Path, capsys: Capture
) -> None:
    files = {name: tmp_path / f"found.{name}" for name in ("json", "junit", "sarif", "html")}
    options = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    main(["check", "tests.checker.vault:vault", *options])
    main(["check", "tests.checker.vault:vault", "--simulate", "100"])
    told = "2 of 2 guards are abstracted: a counterexample may not be real"
    assert capsys.readouterr().out.count(told) == 2
    assert [name for name, file in files.items() if told not in file.read_text()] == []


def test_the_command_draws_machines_by_name(tmp_path: Path) -> None:
    arguments = ["draw", "tests.checker.vault:Vault", "-o", str(tmp_path), "--format", "table,dot"]
    assert main(arguments) == 0
    page = (tmp_path / "Vault.md").read_text()
    assert "| `enter` | `locked` | `open` | `may_try` and `is_right` | `forget` |  |" in page
    assert "the first is taken" in page
    assert "may try and is right" in (tmp_path / "Vault.dot").read_text()


def run(machine: Any) -> unittest.TestResult:
    from hypothesis import settings

    machine.TestCase.settings = settings(
        machine.TestCase.settings, max_examples=20, stateful_step_count=15, database=None
    )
    result = unittest.TestResult()
    machine.TestCase("runTest").run(result)
    return result


def fuzzed(model: type[Vault], **options: Any) -> unittest.TestResult:
    st = pytest.importorskip("hypothesis.strategies")
    codes = {"enter": st.tuples(st.sampled_from([1, 1234]))}
    return run(from_transitions(model()).fuzz(model, arguments=codes, **options))


@pytest.mark.fuzz
def test_real_machines_are_fuzzed_and_compared_with_the_table() -> None:
    right = fuzzed(Vault)
    assert right.wasSuccessful(), right.errors

    class Sticky(Vault):
        def forget(self, code: int) -> None:
            self.tries = 0
            self.state = "locked"

    (_, told), *_ = fuzzed(Sticky).failures + fuzzed(Sticky).errors
    assert "'enter' in 'locked', where guards answered [True, True]" in told
    assert "the state is 'locked', but the table says" in told


@pytest.mark.fuzz
def test_invariants_of_the_user_are_asked_after_each_trigger() -> None:
    invariants = {"few tries": lambda model: model.tries < 3}
    (_, told), *_ = fuzzed(Vault, invariants=invariants).failures
    assert "few tries: it does not hold in 'locked'" in told


def test_arguments_of_an_unknown_trigger_are_refused() -> None:
    with pytest.raises(CannotRead, match="no trigger 'open'"):
        from_transitions(Vault()).fuzz(Vault, arguments={"open": None})


def page() -> str:
    return (Path(__file__).parents[2] / "docs" / "existing-machines.md").read_text()


def test_the_page_shows_what_the_commands_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    program = re.findall(r"```python\n(.*?)```", page(), re.DOTALL)[0]
    (tmp_path / "hero_of_page.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "hero_of_page:hero"]) == 1
    said = capsys.readouterr().out
    told = re.findall(r"```text\n(.*?)```", page(), re.DOTALL)[0]
    assert [line for line in told.splitlines() if line not in said] == []
    assert main(["draw", "hero_of_page:hero", "-o", ".", "--format", "mermaid"]) == 0
    drawn = re.findall(r"```mermaid\n(.*?)```", page(), re.DOTALL)[0]
    assert (tmp_path / "hero.mmd").read_text() == drawn
    mended = program.replace('"nap", "*"', '"nap", ["asleep", "hanging out", "hungry", "sweaty"]')
    (tmp_path / "mended_hero_of_page.py").write_text(mended)
    assert main(["check", "mended_hero_of_page:hero"]) == 0


def test_triggers_that_are_named_like_answers_of_others_stay_apart() -> None:
    thing = made(
        Machine,
        states=["a", "b", "c"],
        initial="a",
        transitions=[
            {"trigger": "go", "source": "a", "dest": "b", "conditions": "is_lucky"},
            {"trigger": "go_if_is_lucky", "source": "a", "dest": "c"},
            ["back", ["b", "c"], "a"],
        ],
    )
    for state in ("b", "c"):
        claims = {"never": never(state)}
        assert len(steps(checked(from_transitions(thing, claims=claims)))) == 1


def test_a_state_that_is_not_left_is_not_entered_again() -> None:
    thing = made(
        Machine,
        states=["a", "b"],
        initial="a",
        transitions=[["look", "a", None], ["go", "a", "b"], ["stay", "b", "="]],
    )
    claims = {"a again": happens("a", "a"), "b again": happens("b", "b")}
    found = verdicts(checked(from_transitions(thing, claims=claims)))
    assert found == {"a again": "VACUOUS", "b again": "PASS"}


def test_a_run_that_guards_stop_in_a_state_that_is_not_final_is_a_deadlock() -> None:
    class Short(Thing):
        def is_first(self) -> bool:
            return self.calls < 1

        def note(self) -> None:
            self.calls += 1

    thing = made(
        Machine,
        Short(),
        states=["a", "b", {"name": "end", "final": True}],
        initial="a",
        transitions=[
            {"trigger": "go", "source": "a", "dest": "b", "after": "note"},
            {"trigger": "stop", "source": "b", "dest": "end", "conditions": "is_first"},
        ],
    )
    result = checked(from_transitions(thing, fields={"calls": 5}))
    assert result.counterexample is not None
    assert result.counterexample.kind == "deadlock"


def test_a_field_that_is_a_trigger_too_is_refused() -> None:
    thing = made(Machine, states=["a"], initial="a", transitions=[["calls", "a", None]])
    with pytest.raises(CannotRead, match="'calls' of Thing is a trigger too"):
        checked(from_transitions(thing, fields={"calls": 5}))


def test_a_transition_that_raises_is_a_counterexample() -> None:
    thing = made(
        Machine,
        states=["a", "b"],
        initial="a",
        transitions=[["go", "a", "b"], ["fall", "b", "a"]],
    )
    thing.machine.events["fall"].transitions["b"][0].dest = "nowhere"
    result = checked(from_transitions(thing))
    assert result.counterexample is not None
    assert steps(result) == ["go", "fall"]
    assert "'fall' raises ValueError: State 'nowhere'" in result.counterexample.message
    assert result.counterexample.file == known_machines.__file__
