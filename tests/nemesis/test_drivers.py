"""Drivers that lose their master or meet another driver: what was saved is gone on with."""

from __future__ import annotations

import shutil
import signal
import time

import pytest

from tests.nemesis.campaign import Campaign
from tests.nemesis.faults import NO_LIBRARY, disk_full, hanging
from tests.nemesis.host import PATIENCE, wait_until
from tests.nemesis.jobs_program import INGEST, UPDATES
from tests.nemesis.lab import DRIVER, MASTER

pytestmark = [pytest.mark.nemesis, pytest.mark.timeout(600 * PATIENCE)]
ENDS_S = 180.0
REFUSED_S = 60.0
OTHER_PORTS, MORE = 10, "more"
LIMIT_S = 3.0 * PATIENCE
JOBS = {INGEST, UPDATES}


def test_a_driver_on_a_disk_that_refuses_locks_is_refused_beside_one_that_runs(
    campaign: Campaign,
) -> None:
    campaign.lab.start_workers(*campaign.lab.workers, kind=MORE)
    log = campaign.lab.start_driver(locks="refused", ports_on=OTHER_PORTS)
    wait_until(lambda: "LocksRefused" in log.read_text(), REFUSED_S, "the refusal", log.read_text)
    wait_until(lambda: len(campaign.lab.driver.processes(DRIVER)) == 1, REFUSED_S, "its end")
    assert "Mount it with locks" in log.read_text()
    for host in campaign.lab.workers:
        host.kill(f"{MORE}-{host.name}")
    campaign.make_well()
    campaign.judge()


def test_a_stopped_driver_whose_locks_were_forgotten_is_overtaken_and_ends(
    campaign: Campaign,
) -> None:
    lab = campaign.lab
    campaign.failures += ["has lost the checkpoint directory", "TargetTakenOver"]
    *_, last_commit = campaign.history.of("job:Committed")
    lab.start_workers(*lab.workers, kind=MORE)  # the first driver has all executors there are
    [stopped] = lab.driver.signal(signal.SIGSTOP, DRIVER)
    lab.record("fault", name="locks_forgotten", host=lab.driver.name)
    lab.start_driver(locks="forgotten", ports_on=OTHER_PORTS)
    lab.wait_until_well(REFUSED_S)
    lab.driver.send(stopped, signal.SIGCONT)
    lab.record("healed", name="locks_forgotten", host=lab.driver.name)
    wait_until(
        lambda: stopped not in [one.pid for one in lab.driver.processes(DRIVER)],
        ENDS_S,
        "the end of the driver that was overtaken",
        lab.told,
    )
    campaign.make_well()
    campaign.judge()
    ended = {
        line["job"]: line["state"] for line in campaign.history.of("ended", run=last_commit["run"])
    }
    assert ended == {"ingest": "failed", "updates": "failed"}
    lab.kill_driver()  # the next test wants the usual ports, and the usual workers
    for host in lab.workers:
        host.kill(f"{MORE}-{host.name}")


def test_an_ingestion_that_a_full_disk_ends_goes_on_when_it_is_started_again(
    campaign: Campaign,
) -> None:
    """A task that cannot stage rows ends its job; one that cannot store checkpoints goes on."""
    lab = campaign.lab
    campaign.failures += ["no space left"]
    lab.record("fault", name="disk_full", host=lab.driver.name)
    began = time.monotonic()
    heal = disk_full(lab, lab.driver)
    try:
        wait_until(lab.is_over, ENDS_S, "the failure of the ingestion", lab.told)
    finally:
        heal()
    campaign.make_well()
    lab.record("healed", name="disk_full", host=lab.driver.name)
    campaign.judge()
    ended = [line["job"] for line in campaign.history.of("ended") if line["t"] > began]
    assert ended == ["ingest"]


def test_jobs_that_their_master_forgot_warn_and_go_on_when_they_are_started_again(
    campaign: Campaign,
) -> None:
    """No cluster gives such an application executors again; that is told, and nothing is lost."""
    lab = campaign.lab
    lab.record("fault", name="master_forgets", host=lab.driver.name)
    began = time.monotonic()
    lab.driver.kill(MASTER)
    shutil.rmtree(lab.folder / "recovery")
    (lab.folder / "recovery").mkdir()
    lab.start_master()

    def have_warned() -> bool:
        told = [line for line in campaign.history.of("job:Warned") if line["t"] > began]
        return {line["job"] for line in told if "no executor left" in line["text"]} == JOBS

    wait_until(have_warned, ENDS_S, "the warnings of both jobs", lab.told)
    lab.kill_driver()
    lab.start_driver()
    lab.wait_until_well(ENDS_S)
    lab.record("healed", name="master_forgets", host=lab.driver.name)
    campaign.judge()


@pytest.mark.skipif(bool(NO_LIBRARY), reason=NO_LIBRARY)
def test_jobs_whose_disk_hangs_beyond_the_limit_end_and_go_on_when_they_are_started_again(
    campaign: Campaign,
) -> None:
    """The driver's process ends while its calls still hang, and the next start reads the store."""
    lab = campaign.lab
    campaign.failures += ["store_timeout_s is the limit", "commit_timeout_s is the limit"]
    lab.kill_driver()
    lab.start_driver(work_timeout_s=LIMIT_S)
    lab.wait_until_well(ENDS_S)
    lab.record("fault", name="disk_hangs", host=lab.driver.name)
    began = time.monotonic()
    heal = hanging(lab, lab.driver)
    try:
        wait_until(lambda: not lab.driver.processes(DRIVER), ENDS_S, "the driver's end", lab.told)
        lab.start_driver()
        wait_until(lambda: len(lab.driver.processes(DRIVER)) == 1, REFUSED_S, "the next driver")
    finally:
        heal()
    campaign.make_well()
    lab.record("healed", name="disk_hangs", host=lab.driver.name)
    campaign.judge()
    ended = [line["job"] for line in campaign.history.of("ended") if line["t"] > began]
    assert sorted(ended) == sorted(JOBS)
