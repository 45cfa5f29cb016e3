"""The shell answers every line, whatever it says, in the form of the protocol."""

from __future__ import annotations

import random
import subprocess
import sys

from tests.conformance.lanes import LANES
from tests.conformance.shell import ARITIES, Shell


def said(*commands: str) -> list[str]:
    """Every line that the last command printed."""
    return Shell().run(commands)[-1]


def test_the_shell_reads_commands_and_ends_each_answer_with_a_point() -> None:
    commands = "new 2 manual\nstart\n\nrunning 0\nsend 0 0 C\nckpt 1\nnonsense\ncdone 1 state1"
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.shell"],
        input=commands,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answers = [answer.split("\n") for answer in done.stdout.removesuffix(".\n").split(".\n")]
    assert [answer[:-1] for answer in answers[:6]] == [
        [],
        ["coord start"],
        [],
        ["coord ready 0 0"],
        ["deliver 0 0 C"],
        ["coord checkpoint 1"],
    ]
    assert answers[6][0].startswith("EXC BadCommand: unknown command 'nonsense'")
    assert answers[7][:-1] == []
    assert done.stderr == ""


def test_a_send_waits_for_the_acknowledgement_of_the_barrier() -> None:
    assert said("new 1", "start", "running 0", "ckpt 1") == ["coord checkpoint 1"]
    closed = ("new 1", "start", "running 0", "ckpt 1", "cdone 1 state1")
    assert said(*closed) == ["ckptfuture 1 state1"]
    assert said(*closed, "send 0 0 C") == []
    assert said(*closed, "send 0 0 C", "ack 0 0 1") == ["deliver 0 0 C", "sent C ok"]


def test_posted_calls_wait_and_inline_calls_overtake_them() -> None:
    begun = ("new 1", "start", "running 0", "auto 0")
    assert said(*begun, "send 0 0 a") == []
    assert said(*begun, "send 0 0 a", "event 0 0 x") == ["coord event 0 0 x"]
    assert said(*begun, "send 0 0 a", "drain") == ["deliver 0 0 a", "sent a ok"]
    assert said(*begun, "send 0 0 a", "auto 1") == ["deliver 0 0 a", "sent a ok"]


def test_a_lost_send_fails_over_then_fails_the_part_that_waited_for_it() -> None:
    waiting = ("new 1 manual", "start", "running 0", "send 0 0 a", "ckpt 1", "cdone 1 s")
    assert said(*waiting, "sendack a lost") == [
        "failover 0 0",
        "ckptfuture 1 FAILED",
        "sent a FAILED",
    ]
    assert said(*waiting, "sendack a") == ["ckptfuture 1 s", "sent a ok"]
    assert said(*waiting, "sendack a", "sendack a") == []


def test_resets_create_the_next_attempts() -> None:
    begun = ("new 2", "start", "running 0", "running 1", "reset 1 7")
    assert said(*begun) == ["coord subtaskReset 1 7"]
    assert said(*begun, "running 1") == ["coord ready 1 1"]
    assert said(*begun, "restore 7 s") == ["coord resetTo 7 s"]
    assert said(*begun, "restore -1", "running 0") == ["coord ready 0 1"]
    assert said(*begun, "restore -1") == ["coord resetTo -1 null"]


def test_a_checkpoint_id_that_regresses_fails_the_part_and_the_job_and_marks_nothing() -> None:
    begun = ("new 2", "start", "ckpt 3", "reset 0 0", "ckpt 2")
    part, job = said(*begun)
    assert part == "ckptfuture 2 FAILED"
    assert job.startswith("GLOBAL ")
    assert said(*begun, "cdone 2 x")[0].startswith("EXC ")
    assert said(*begun, "ckpt 4", "cdone 4 x") == ["ckptfuture 4 x"]


def test_a_batch_snapshot_closes_nothing_and_waits_for_sends_on_their_way() -> None:
    begun = ("new 1 manual", "start", "running 0", "send 0 0 a", "ckpt -1")
    assert said(*begun) == ["coord checkpoint -1"]
    assert said(*begun, "cdone -1 s") == []
    assert said(*begun, "cdone -1 s", "send 0 0 b") == ["deliver 0 0 b"]
    assert said(*begun, "cdone -1 s", "sendack a") == ["ckptfuture -1 s", "sent a ok"]
    assert said(*begun, "cdone -1 s", "fail 0")[1:] == ["ckptfuture -1 FAILED", "sent a FAILED"]
    assert said(*begun, "cfail -1") == ["ckptfuture -1 FAILED"]
    assert said(*begun, "ckpt -1") == ["ckptfuture -1 FAILED"]  # one at a time


def test_more_unfinished_checkpoints_than_there_is_room_for_are_refused() -> None:
    asked = [f"ckpt {id}" for id in range(1, LANES + 2)]
    assert said("new 1", "start", *asked)[0].startswith("EXC TooManyCheckpoints")


def test_odd_input_is_answered_and_survived() -> None:
    chance = random.Random(20)
    words = [*ARITIES, "0", "1", "-1", "9" * 30, "manual", "lost", "a", "é", "\x00", "1e3", "²", ""]
    shell = Shell()
    for _ in range(5_000):
        line = " ".join(chance.choices(words, k=chance.randint(0, 5)))
        for answer in shell.answer(line):
            assert answer.split(" ", 1)[0] in (
                "coord", "deliver", "sent", "ckptfuture", "failover", "GLOBAL", "EXC",
            )  # fmt: skip
    assert said("start")[0].startswith("EXC ")
    assert said("# a remark") == []
    assert said("new -1")[0].startswith("EXC ")
    assert said("new 1", "send 0 0 a")[0].startswith("EXC ")
    assert said("new 1", "start", "running 0", "running 4")[0].startswith("EXC ")
