"""Attempts are turned away from hosts that cannot reach the driver, while another has room."""

from __future__ import annotations

import logging

import pytest

from epochgate.spark.placing import ANSWER_S, FAILURES_BEFORE_HELLO_MAX
from tests.spark.scripted_spark import REFUSED, ScriptedSpark


def test_an_attempt_on_a_host_that_has_failed_is_turned_away_while_another_has_room() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.fails("bad")
    spark.begins("bad")
    spark.look()
    assert spark.killed == [1]
    [warning] = spark.said
    assert (
        f"a task on bad failed before it could speak to the driver at driver:7000: {REFUSED}"
        in warning
    )
    spark.begins("good")
    spark.look()
    assert spark.killed == [1]


def test_nothing_is_said_of_the_only_host_while_nothing_speaks_against_it() -> None:
    spark = ScriptedSpark("only")
    spark.begins("only")
    spark.look()
    assert (spark.said, spark.killed) == ([], [])


def test_each_attempt_is_turned_away_once() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.fails("bad")
    attempt = spark.begins("bad")
    spark.look()
    spark.becomes(attempt, "RUNNING")  # Spark takes its time
    spark.look()
    spark.look()
    assert spark.killed == [attempt]


def test_an_attempt_that_spark_does_not_end_may_try_where_it_is() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.fails("bad")
    spark.is_deaf = True
    attempt = spark.begins("bad")
    spark.look()
    spark.look()
    assert spark.killed == [attempt]
    assert spark.given_up == []
    spark.is_deaf = False
    spark.becomes(attempt, "FAILED")
    spark.begins("bad")
    spark.look()
    assert spark.killed == [attempt, attempt + 1]


def test_without_room_elsewhere_an_attempt_may_try_and_that_is_told_once() -> None:
    spark = ScriptedSpark("bad")
    spark.fails("bad")
    spark.begins("bad")
    for _ in range(4):
        spark.look()
    assert spark.killed == []
    assert len(spark.said) == 2
    assert "the only free slots are on hosts whose tasks could not speak" in spark.said[1]
    spark.rooms = {"bad", "good"}
    spark.look()
    assert spark.killed == [1]


def test_that_no_other_host_has_room_is_told_again_after_an_attempt_has_had_a_trusted_one() -> None:
    spark = ScriptedSpark("bad")
    spark.fails("bad")
    spark.becomes(spark.begins("bad"), "RUNNING")
    spark.look()
    spark.becomes(1, "KILLED")
    spark.rooms = {"good"}
    spark.begins("good")
    spark.look()
    spark.becomes(2, "KILLED")
    spark.rooms = {"bad"}
    spark.begins("bad")
    spark.look()
    assert spark.killed == []
    assert ["the only free slots" in text for text in spark.said] == [False, True, True]


def test_of_a_host_only_news_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    spark = ScriptedSpark("bad", "good")
    spark.speaks("good")
    spark.fails("bad", subtask=1)
    spark.fails("bad", subtask=1)
    spark.look()
    assert len(spark.said) == 1
    assert "reach the driver again" not in caplog.text
    spark.speaks("bad", subtask=1)
    spark.look()
    assert "tasks on bad reach the driver again" in caplog.text


def test_a_process_from_a_suspect_host_is_a_process_that_has_come() -> None:
    spark = ScriptedSpark("bad")
    spark.fails("bad")
    spark.look()
    spark.speaks("bad")
    for _ in range(FAILURES_BEFORE_HELLO_MAX):
        spark.fails("bad")
    spark.look()
    assert spark.given_up == []


def test_a_host_whose_process_speaks_is_trusted_again() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.fails("bad")
    spark.look()
    spark.speaks("bad")
    spark.begins("bad", subtask=1)
    spark.look(wanted=[1])
    assert spark.killed == []
    assert not spark.placing.is_urgent(are_missing=True)


def test_a_subtask_that_is_not_missing_is_left_alone() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.fails("bad")
    spark.begins("bad", subtask=1)
    spark.look(wanted=[0])
    assert spark.killed == []


def test_where_no_process_has_ever_come_failures_in_a_row_end_the_job_with_the_last() -> None:
    spark = ScriptedSpark("bad")
    for _ in range(FAILURES_BEFORE_HELLO_MAX):
        spark.fails("bad")
    spark.look()
    [reason] = spark.given_up
    assert "the tasks fail before they can speak to the driver; subtask 0 did 5 times" in reason
    assert reason.endswith(REFUSED)
    spark.fails("bad")
    spark.look(now_s=1000.0)
    assert len(spark.given_up) == 1
    assert spark.overdue == []


def test_where_processes_have_come_the_restart_strategy_is_asked_once_for_each_time_limit() -> None:
    spark = ScriptedSpark("bad")
    spark.speaks("bad")
    for _ in range(2 * FAILURES_BEFORE_HELLO_MAX):
        spark.fails("bad")
    for now_s in (10.0, 66.0, 67.0, 100.0, 127.0):
        spark.look(now_s=now_s)
    assert [subtask for subtask, _ in spark.overdue] == [0, 0]
    assert spark.overdue[0][1] == (
        f"no process has come for [0]. The last failure of a task: {REFUSED}"
    )
    assert spark.given_up == []


def test_a_first_process_that_does_not_come_in_time_ends_the_job() -> None:
    spark = ScriptedSpark()
    spark.look(now_s=66.0)
    assert spark.given_up == ["no process has come for [0]"]


def test_a_subtask_that_never_had_a_process_ends_the_job_although_another_has_one() -> None:
    spark = ScriptedSpark("only")
    spark.speaks("only", subtask=1)
    spark.look(now_s=66.0)
    assert spark.given_up == ["no process has come for [0]"]
    assert spark.overdue == []


def test_settled_attempts_are_not_asked_for_again() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.speaks("good", subtask=1)
    spark.fails("bad")
    waiting = spark.begins("good")
    spark.fails("bad", subtask=2)
    spark.look()
    spark.look()
    assert spark.asked_behind == [0, 2]
    spark.placing.note_hello(waiting)
    spark.look()
    spark.look()
    assert spark.asked_behind == [0, 2, 2, 4]


def test_what_spark_does_not_tell_decides_nothing() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.fails("bad")
    spark.begins("bad")
    spark.rooms = None
    spark.look(now_s=1000.0)
    assert (spark.killed, spark.said, spark.given_up) == ([], [], [])


def test_the_host_of_an_executor_that_spark_has_forgotten_is_remembered() -> None:
    spark = ScriptedSpark("bad", "good")
    attempt = spark.begins("bad")
    spark.look()
    spark.forgotten.add("bad")
    spark.becomes(attempt, "FAILED", REFUSED)
    spark.look()
    assert "a task on bad failed before it could speak" in spark.said[0]
    spark.forgotten.clear()
    spark.speaks("bad")
    spark.look()
    assert not spark.placing.is_urgent(are_missing=True)


def test_nothing_is_said_of_the_host_of_an_executor_that_spark_has_never_told() -> None:
    spark = ScriptedSpark("good")
    spark.hosts.add("gone")
    spark.forgotten.add("gone")
    running = spark.begins("gone")
    spark.look()
    spark.becomes(running, "FAILED", REFUSED)
    spark.becomes(spark.speaks("gone"), "KILLED")
    for attempts in range(2, 1 + FAILURES_BEFORE_HELLO_MAX):
        spark.fails("gone")
        spark.look()
        assert (spark.said, spark.given_up) == ([], [])
        spark.look()
        assert spark.asked_behind[-1] == 1 + attempts
    assert not spark.placing.is_urgent(are_missing=True)
    spark.fails("gone")
    spark.look()
    assert "subtask 0 did 5 times" in spark.given_up[0]


def test_a_process_is_heard_of_once_spark_tells_where_it_runs() -> None:
    spark = ScriptedSpark("good", "late")
    spark.forgotten.add("late")
    attempt = spark.speaks("late")
    spark.look()
    spark.forgotten.clear()
    spark.look()
    spark.falls_silent(attempt)
    spark.look(wanted=())
    assert spark.killed == [attempt]
    assert "a process on late is not heard any more" in spark.said[0]


def test_a_silent_process_is_ended_at_once_and_its_successor_goes_to_another_host() -> None:
    spark = ScriptedSpark("bad", "good")
    attempt = spark.speaks("bad")
    spark.falls_silent(attempt)
    assert spark.placing.is_urgent(are_missing=False)
    spark.look(now_s=10.0, wanted=())
    assert spark.killed == [attempt]
    assert "a process on bad is not heard any more. While another host" in spark.said[0]
    successor = spark.begins("bad")
    assert spark.placing.is_urgent(are_missing=True)
    spark.look(now_s=10.1)
    assert spark.killed == [attempt, successor]
    spark.speaks("good")
    spark.look(now_s=10.2)
    assert spark.killed == [attempt, successor]
    assert spark.removed == []
    assert not spark.placing.is_urgent(are_missing=False)


def test_an_executor_that_does_not_answer_is_given_up_once_its_host_is_silent() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.is_answering = False
    first, other = spark.speaks("bad"), spark.speaks("bad", subtask=1)
    spark.falls_silent(first)
    spark.looks(10.0, 10.2 + ANSWER_S)
    assert spark.removed == []  # the other process is heard
    spark.falls_silent(other, subtask=1)
    spark.looks(13.0, 13.2 + ANSWER_S)
    assert spark.removed == ["of bad"]
    assert spark.killed == [first, other]


def test_an_executor_is_given_up_also_while_every_free_slot_is_on_a_suspect_host() -> None:
    spark = ScriptedSpark("bad")
    spark.is_answering = False
    spark.fails("bad")
    lost = spark.speaks("lost", subtask=1)
    spark.hosts.add("lost")
    spark.begins("bad")
    spark.look()
    assert "the only free slots are on hosts" in spark.said[-1]
    spark.falls_silent(lost, subtask=1)
    spark.looks(10.1, 10.4 + ANSWER_S)
    assert spark.removed == ["of lost"]
    spark.fails("worse", subtask=2)
    spark.look(now_s=11.0 + ANSWER_S)
    spark.look(now_s=12.0 + ANSWER_S)
    assert sum("the only free slots" in text for text in spark.said) == 1


def test_that_free_slots_are_on_suspect_hosts_is_news_again_after_whatever_happened_before() -> (
    None
):
    spark = ScriptedSpark("bad")
    spark.is_answering = False
    first = spark.speaks("bad")
    spark.speaking.discard(first)
    spark.becomes(first, "KILLED")
    spark.fails("bad")
    lost = [spark.speaks("lost", subtask) for subtask in (1, 2)]
    spark.hosts.add("lost")
    spark.falls_silent(lost[0], subtask=1)
    spark.look(wanted=())
    spark.falls_silent(lost[1], subtask=2)
    spark.looks(10.1, 10.4 + ANSWER_S)
    assert spark.removed == ["of lost"]
    spark.begins("bad")
    spark.look(now_s=70.0)
    spark.look(now_s=200.0)
    assert spark.overdue
    assert sum("the only free slots" in text for text in spark.said) == 1


def test_on_a_suspect_host_a_silent_process_is_ended_also_while_no_other_host_has_room() -> None:
    spark = ScriptedSpark("bad")
    spark.is_answering = False
    lost = [spark.speaks("lost", subtask) for subtask in (1, 2, 3)]
    spark.hosts.add("lost")
    spark.falls_silent(lost[0], subtask=1)
    spark.fails("bad")
    spark.begins("bad")
    spark.look()
    spark.look(now_s=11.0)
    spark.falls_silent(lost[1], subtask=2)
    spark.looks(11.1, 11.4 + ANSWER_S)
    assert spark.killed == lost[:2]
    assert spark.removed == []  # the third process there is heard
    spark.begins("bad", subtask=4)
    spark.look(now_s=20.0, wanted=[4])
    assert sum("the only free slots" in text for text in spark.said) == 1


def test_an_executor_is_given_up_once_with_one_warning() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.is_answering = False
    for subtask in range(3):
        spark.falls_silent(spark.speaks("bad", subtask), subtask)
    spark.looks(10.0, 11.0 + 3 * ANSWER_S)
    assert spark.removed == ["of bad"]
    assert [text for text in spark.said if "is given up" in text] == [spark.said[-1]]


def test_spark_is_asked_again_for_an_executor_that_it_has_not_given_up() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.is_answering = False
    spark.falls_silent(spark.speaks("bad"))
    spark.is_deaf = True
    spark.looks(10.0, 10.2 + ANSWER_S)
    assert spark.removed == ["of bad"]
    assert [text for text in spark.said if "is given up" in text] == []
    spark.is_deaf = False
    spark.looks(10.3 + ANSWER_S, 10.5 + 3 * ANSWER_S)
    assert spark.removed == ["of bad", "of bad"]
    assert [text for text in spark.said if "is given up" in text] == [spark.said[-1]]


def test_a_time_in_which_the_driver_did_not_look_is_no_silence_of_an_executor() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.is_answering = False
    spark.falls_silent(spark.speaks("bad"))
    spark.looks(10.0, 10.2)
    spark.looks(60.0, 59.2 + ANSWER_S)
    assert spark.removed == []
    spark.looks(59.3 + ANSWER_S, 60.2 + ANSWER_S)
    assert spark.removed == ["of bad"]


def test_an_executor_that_has_ended_the_process_is_kept() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.falls_silent(spark.speaks("bad"))
    for now_s in (10.0, 20.0, 30.0):
        spark.look(now_s=now_s, wanted=())
    assert spark.removed == []
    assert not spark.placing.is_urgent(are_missing=False)


def test_silence_of_an_attempt_that_spark_has_not_told_of_waits_for_spark() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.placing.note_silence(0, 0)
    spark.look(wanted=())
    assert spark.killed == []
    spark.begins("bad")
    spark.look(wanted=())
    assert spark.killed == [0]


def test_silence_of_an_attempt_that_has_a_successor_is_no_news() -> None:
    spark = ScriptedSpark("bad", "good")
    old = spark.speaks("bad")
    spark.becomes(old, "KILLED")
    spark.speaks("good")
    spark.falls_silent(old)
    spark.look(wanted=())
    assert (spark.killed, spark.said) == ([], [])


def test_each_silent_process_of_a_host_is_ended_and_the_host_is_told_once() -> None:
    spark = ScriptedSpark("bad", "good")
    first, other = spark.speaks("bad"), spark.speaks("bad", subtask=1)
    spark.falls_silent(first)
    spark.falls_silent(other, subtask=1)
    spark.look(wanted=())
    assert spark.killed == [first, other]
    assert len(spark.said) == 1


def test_an_older_attempt_that_still_runs_does_not_hide_a_silent_one() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.begins("bad")
    newer = spark.speaks("good")
    spark.look(wanted=())
    spark.falls_silent(newer)
    spark.look(wanted=())
    assert spark.killed == [newer]


def test_a_silent_attempt_that_spark_has_forgotten_is_not_waited_for() -> None:
    spark = ScriptedSpark("bad", "good")
    spark.is_answering = False
    spark.falls_silent(spark.speaks("bad"))
    spark.look(wanted=())
    spark.attempts.clear()
    spark.looks(10.1, 11.0 + ANSWER_S)
    assert spark.removed == []
    assert not spark.placing.is_urgent(are_missing=False)
