"""A trace becomes a pytest file, which fails while the machines refuse what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochgate import cli
from epochgate.fsm.traces.lines import opened, sealed
from epochgate.fsm.traces.replaying import Refusal
from epochgate.runtime.tracing.regression import pytest_module
from tests.traces.stories import told


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return told(tmp_path_factory.mktemp("story"))


def run_test(text: str) -> None:
    """Run the one test of a module."""
    names: dict[str, object] = {}
    exec(compile(text, "test_of_trace.py", "exec"), names)  # noqa: S102  the text is what is tested
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    assert callable(test)
    test()


def test_the_test_of_an_accepted_trace_passes(story: Path) -> None:
    text = pytest_module([str(story / "task-0-3.000001.jsonl")])
    assert "def test_the_machines_allow_what_task_0_3_did() -> None:" in text
    assert "The machines accepted them." in text
    run_test(text)


def test_a_long_trace_is_cut_to_its_last_lines_behind_the_state_before_them(story: Path) -> None:
    text = pytest_module([str(story / "driver.000001.jsonl")], lines_max=20)
    assert text.count('"do"') == 20
    run_test(text)


def test_the_test_of_a_refused_trace_fails_with_what_the_machines_say(
    story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (story / "driver.000001.jsonl").read_bytes().splitlines(keepends=True)
    bare = {name: value for name, value in opened(lines[400]).items() if name != "crc"}
    lines[400] = sealed({**bare, "do": "checkpoint.stored", "with": [99], "out": []})
    path, test = tmp_path / "driver.000001.jsonl", tmp_path / "test_found.py"
    path.write_bytes(b"".join(lines))
    assert cli.main(["validate", str(path), "--pytest", str(test)]) == 1
    assert "checkpoint.stored(99) is not possible" in capsys.readouterr().out
    text = test.read_text()
    assert text.count('"do"') == 201
    assert "The machines refused the last one: checkpoint.stored(99) is not possible." in text
    with pytest.raises(Refusal, match=r"checkpoint\.stored\(99\) is not possible"):
        run_test(text)


def test_a_file_that_cannot_be_written_is_named(
    story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "gone" / "test_found.py"
    assert cli.main(["validate", str(story), "--pytest", str(target)]) == 2
    assert f"cannot write {target} (--pytest)" in capsys.readouterr().err
