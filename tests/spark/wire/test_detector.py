"""The failure detector suspects what is silent for longer than it has learnt, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from epochgate.spark.wire import Detection, WireSettingInvalid
from epochgate.spark.wire.detector import DEVIATION_S_MIN, WINDOW, PhiDetector, deviations

INTERVAL_S, PAUSE_S, SILENCE_S_MAX = 0.5, 4.0, 10.0
gaps = st.lists(st.floats(0.001, 3.0), max_size=3 * WINDOW)


def detector(**settings: Any) -> PhiDetector:
    defaults = {
        "interval_s": INTERVAL_S,
        "pause_s": PAUSE_S,
        "threshold": 8.0,
        "silence_s_max": SILENCE_S_MAX,
        "now_s": 0.0,
    }
    return PhiDetector(**{**defaults, **settings})


def after(heard: list[float], **settings: Any) -> tuple[PhiDetector, float]:
    """A detector of a peer that was heard after each of these gaps, and the moment of the last."""
    made, now_s = detector(**settings), 0.0
    for gap_s in heard:
        now_s += gap_s
        made.heard(now_s)
    return made, now_s


def test_a_regular_peer_is_suspected_a_pause_and_six_deviations_late() -> None:
    made, now_s = after([INTERVAL_S] * (2 * WINDOW))
    assert made.limit_s == pytest.approx(INTERVAL_S + PAUSE_S + deviations(8.0) * DEVIATION_S_MIN)
    assert not made.is_suspect(now_s + made.limit_s - 0.01)
    assert made.is_suspect(now_s + made.limit_s + 0.01)


def test_an_irregular_peer_is_given_longer() -> None:
    regular, _ = after([INTERVAL_S] * WINDOW)
    irregular, _ = after([0.3, 1.5] * WINDOW)
    assert irregular.limit_s > regular.limit_s + 2.0


def test_what_was_irregular_long_ago_is_forgotten() -> None:
    made, _ = after([0.3, 3.0] * WINDOW + [INTERVAL_S] * WINDOW)
    assert made.limit_s == pytest.approx(after([INTERVAL_S] * WINDOW)[0].limit_s)


def test_messages_that_follow_each_other_quickly_teach_no_short_gaps() -> None:
    quick, _ = after([0.001] * 10_000)
    assert quick.limit_s > PAUSE_S + INTERVAL_S / 2


def test_a_time_that_is_excused_is_no_silence_and_no_gap() -> None:
    made, now_s = after([INTERVAL_S] * WINDOW)
    limit_s = made.limit_s
    made.excuse(60.0)
    assert made.silence_s(now_s + 60.0 + INTERVAL_S) == pytest.approx(INTERVAL_S)
    made.heard(now_s + 60.0 + INTERVAL_S)
    assert made.limit_s == pytest.approx(limit_s)


def test_a_moment_before_the_last_is_no_news() -> None:
    made, now_s = after([INTERVAL_S] * 5)
    made.heard_since(now_s - 1.0)
    assert made.silence_s(now_s) == 0.0
    made.heard_since(now_s + 1.0)
    assert made.silence_s(now_s + 1.5) == 0.5


def test_phi_is_a_logarithm_of_the_chance_of_such_a_silence() -> None:
    made, now_s = after([INTERVAL_S] * (2 * WINDOW))
    expected_s = now_s + INTERVAL_S + PAUSE_S
    assert made.phi(expected_s) == pytest.approx(-math.log10(0.5), rel=1e-3)
    assert made.phi(expected_s + 3.0902 * DEVIATION_S_MIN) == pytest.approx(3.0, rel=1e-3)
    assert made.phi(expected_s + 3600.0) == math.inf


@given(heard=gaps, threshold=st.floats(1.0, 16.0))
def test_a_peer_is_suspected_exactly_where_phi_reaches_the_threshold(
    heard: list[float], threshold: float
) -> None:
    made, now_s = after(heard, threshold=threshold, silence_s_max=math.inf)
    assert made.phi(now_s + made.limit_s) == pytest.approx(threshold, rel=1e-6)


@given(heard=gaps, silences=st.lists(st.floats(0.0, 60.0), min_size=2))
def test_suspicion_only_grows_while_a_peer_is_silent(
    heard: list[float], silences: list[float]
) -> None:
    made, now_s = after(heard)
    grown = [made.phi(now_s + silence_s) for silence_s in sorted(silences)]
    assert grown == sorted(grown)


@given(heard=gaps)
def test_the_limit_is_never_beyond_the_fixed_one_nor_within_the_pause(heard: list[float]) -> None:
    made, _ = after(heard)
    assert PAUSE_S < made.limit_s <= SILENCE_S_MAX


@given(heard=gaps, silence_s=st.floats(0.0, PAUSE_S))
def test_a_pause_is_no_alarm(heard: list[float], silence_s: float) -> None:
    made, now_s = after(heard)
    assert not made.is_suspect(now_s + silence_s)


@pytest.mark.parametrize(
    "settings",
    [
        {"pause_s": -1.0},
        {"link_pause_s": math.nan},
        {"threshold": 0.0},
        {"threshold": 17.0},
    ],
)
def test_a_setting_out_of_range_is_named_with_its_range(settings: dict[str, float]) -> None:
    [name] = settings
    with pytest.raises(WireSettingInvalid, match=f"{name} of Detection is .*; it must be between"):
        Detection(**settings)
