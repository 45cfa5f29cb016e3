"""Checkpoints that overlap in a schedule have machines of their own, in series."""

from __future__ import annotations

from tests.conformance.shell import Shell

BEGUN = ("new 1 manual", "start", "running 0")


def answers(*commands: str) -> list[list[str]]:
    """Return what each command prints after a coordinator with one subtask has begun."""
    return Shell().run((*BEGUN, *commands))[len(BEGUN) :]


def test_one_checkpoint_after_the_other_needs_one_set_of_machines() -> None:
    shell = Shell()
    shell.run(BEGUN)
    for checkpoint in range(1, 5):
        shell.run([f"ckpt {checkpoint}", f"cdone {checkpoint} s", f"ack 0 0 {checkpoint}"])
    world = shell.world
    assert world is not None
    assert len(world.lanes) == 1
    shell.run(["ckpt 5", "ckpt 6"])
    assert len(world.lanes) == 2


def test_what_is_held_for_two_checkpoints_is_released_one_after_the_other() -> None:
    closed = ("ckpt 1", "cdone 1 one", "send 0 0 a", "ckpt 2", "cdone 2 two", "send 0 0 b")
    assert answers(*closed)[2:] == [[], ["coord checkpoint 2"], [], []]
    assert answers(*closed, "ack 0 0 1")[-1] == ["deliver 0 0 a"]
    released = answers(*closed, "ack 0 0 1", "sendack a", "ack 0 0 2")
    assert released[-2:] == [["ckptfuture 2 two", "sent a ok"], ["deliver 0 0 b"]]


def test_what_is_held_for_the_newer_waits_for_the_older_too() -> None:
    closed = ("ckpt 1", "cdone 1 one", "send 0 0 a", "ckpt 2", "cdone 2 two", "send 0 0 b")
    assert answers(*closed, "ack 0 0 2")[-1] == []
    assert answers(*closed, "ack 0 0 2", "ack 0 0 1")[-1] == ["deliver 0 0 a", "deliver 0 0 b"]


def test_an_older_checkpoint_waits_for_what_the_newer_holds_when_its_future_is_the_later() -> None:
    closed = ("ckpt 1", "ckpt 2", "cdone 2 two", "send 0 0 a", "cdone 1 one")
    assert answers(*closed)[-1] == []
    released = answers(*closed, "ack 0 0 1", "ack 0 0 2", "sendack a")
    assert released[-2:] == [["deliver 0 0 a"], ["ckptfuture 1 one", "sent a ok"]]


def test_a_new_attempt_begins_with_no_marks_in_any_lane() -> None:
    closed = ("ckpt 1", "cdone 1 one", "send 0 0 a", "ckpt 2", "cdone 2 two", "send 0 0 b")
    renewed = answers(*closed, "reset 0 0", "running 0", "send 0 1 c")
    assert renewed[-3:] == [
        ["coord subtaskReset 0 0", "ckptfuture 2 FAILED", "sent a FAILED", "sent b FAILED"],
        ["coord ready 0 1"],
        ["deliver 0 1 c"],
    ]
