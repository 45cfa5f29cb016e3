"""The lab's random mixtures: the same for a seed, and such that a job can go on."""

from __future__ import annotations

from itertools import islice

from tests.nemesis.faults import FAULTS
from tests.nemesis.schedule import AT_ONCE_MAX, CALM_EVERY, Bout, bouts

BOUTS = 200


def first(seed: int) -> list[Bout]:
    return list(islice(bouts(seed), BOUTS))


def test_a_seed_gives_the_same_faults_again_and_another_seed_others() -> None:
    assert first(1) == first(1)
    assert first(1) != first(2)


def test_no_more_faults_are_active_than_a_job_bears() -> None:
    most = 0
    for bout in first(3):
        for strike in bout:
            active = [other for other in bout if other.at_s <= strike.at_s <= other.end_s]
            places = [other.fault.place for other in active]
            assert len(places) == len(set(places)), f"two at one place: {bout}"
            most = max(most, len(active))
    assert most == AT_ONCE_MAX


def test_every_fault_that_is_mixed_comes_and_no_other() -> None:
    came = {strike.fault.name for bout in first(4) for strike in bout}
    assert came == {fault.name for fault in FAULTS if fault.is_mixed and not fault.missing}


def test_faults_come_often_enough_for_two_hundred_in_an_hour() -> None:
    lasting_s = sum(max(strike.end_s for strike in bout) for bout in first(5))
    calm_s = 60.0 * BOUTS
    assert CALM_EVERY * BOUTS / ((lasting_s + calm_s) / 3600) > 200


def test_names_are_names_of_one_fault_each() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
