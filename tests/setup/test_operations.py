"""The files for operators can be read, and name metrics, options and exit codes that there are."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from epochgate.cli import parser
from epochgate.exit_codes import OF_COMMANDS
from epochgate.runtime.observing.metrics_page import MetricsPage
from epochgate.spark.java import ensure_java

ROOT = Path(__file__).parents[2]
FILES = ROOT / "examples" / "operations"
ALERTS, BOARD = FILES / "prometheus-rules.yaml", FILES / "grafana.json"
OF_TASKS = "epochgate_task_"
OF_AN_INGESTION = {
    "epochgate_committer_rows_rejected": "spark/ingest/rejects.py",
    "epochgate_coordinator_bytes_waiting": "spark/ingest/file_enumerator.py",
    "epochgate_coordinator_files_skipped": "spark/ingest/file_enumerator.py",
}
"""Metrics that a page has once there are figures, and the code that counts them."""


def documents(path: Path) -> list[Any]:
    ruamel = pytest.importorskip("strictyaml.ruamel.main", reason="the extra iceberg brings it")
    return list(ruamel.YAML(typ="safe", pure=True).load_all(path.read_text("utf-8")))


def expressions() -> dict[str, str]:
    """The queries of alerts and dashboard, by alert and panel."""
    [rules] = documents(ALERTS)
    found = {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    for panel in json.loads(BOARD.read_text("utf-8"))["panels"]:
        for target in panel["targets"]:
            found[f"{panel['title']} {target['refId']}"] = target["expr"]
    return found


def names_on(url: str) -> set[str]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return set(re.findall(r"^(epochgate_\w+)", answer.read().decode(), re.MULTILINE))


def names_in(expression: str) -> set[str]:
    """Metrics; a label of a series may be called as its metric is."""
    return set(re.findall(r"\bepochgate_\w+(?!\w|=)", expression))


def pod_command() -> list[str]:
    [deployment] = [
        one for one in documents(FILES / "kubernetes.yaml") if one["kind"] == "Deployment"
    ]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    arguments: list[str] = container["args"]
    return arguments


def test_alerts_and_dashboard_ask_for_metrics_that_a_job_exports() -> None:
    page = MetricsPage()
    exported = names_on(page.url)
    page.close()
    asked = {name for query in expressions().values() for name in names_in(query)}
    others = {name for name in asked if not name.startswith(OF_TASKS)} - exported
    assert others == set(OF_AN_INGESTION)
    for name, counted_in in OF_AN_INGESTION.items():
        figure = name.split("_", 2)[2]
        assert f'"{figure}":' in (ROOT / counted_in).read_text("utf-8"), name
    assert len(asked) > 10


def test_every_query_is_closed_and_every_alert_says_what_to_do() -> None:
    for query in expressions().values():
        for opened, closed in ("()", "{}", "[]"):
            assert query.count(opened) == query.count(closed), query
    [rules] = documents(ALERTS)
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        assert {"summary", "description"} <= set(rule["annotations"])
        assert rule["labels"]["severity"] in {"page", "ticket"}


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/**/*.yml")), ids=lambda path: path.name)
def test_a_file_for_the_code_host_can_be_read(path: Path) -> None:
    assert documents(path)


def test_the_workflow_runs_targets_of_the_makefile() -> None:
    [workflow] = documents(ROOT / ".github" / "workflows" / "ci.yml")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in workflow["jobs"]["ci"]["strategy"]["matrix"]["target"]:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_unit_and_the_pod_have_options_that_there_are() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # the names of systemd
    unit.read(FILES / "epochgate-ingest.service")
    service = unit["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert Path(program).name == "epochgate"
    for command in (arguments, pod_command()):
        assert parser().parse_args(command).follow
    codes = OF_COMMANDS["ingest"]
    assert codes[int(service["SuccessExitStatus"])].startswith("the same, and rows or files")
    assert codes[int(service["RestartPreventExitStatus"])] == "misuse"


def test_the_jobs_have_options_that_there_are_and_know_the_exit_codes() -> None:
    [cron] = documents(FILES / "kubernetes-cronjob.yaml")
    [savepoint] = documents(FILES / "kubernetes-savepoint.yaml")
    run = cron["spec"]["jobTemplate"]["spec"]
    pods = [run["template"]["spec"], savepoint["spec"]["template"]["spec"]]
    parsed = [parser().parse_args(pod["containers"][0]["args"]) for pod in pods]
    assert [one.command for one in parsed] == ["ingest", "savepoint"]
    assert not parsed[0].follow
    [deployment] = [
        one for one in documents(FILES / "kubernetes.yaml") if one["kind"] == "Deployment"
    ]
    for pod in pods:
        assert pod["restartPolicy"] == "Never"  # podFailurePolicy demands it
        for part in ("volumes", "securityContext"):
            assert pod[part] == deployment["spec"]["template"]["spec"][part]
    rules = {
        rule["action"]: rule["onExitCodes"]["values"] for rule in run["podFailurePolicy"]["rules"]
    }
    codes = OF_COMMANDS["ingest"]
    assert [codes[code] for code in rules["FailJob"]] == ["misuse"]
    assert all(codes[code].startswith("the same, and rows or files") for code in rules["Ignore"])
    names = {rule["onExitCodes"]["containerName"] for rule in run["podFailurePolicy"]["rules"]}
    assert names == {one["name"] for one in pods[0]["containers"]}


@pytest.mark.programs
@pytest.mark.spark
def test_the_command_of_the_pod_serves_what_the_dashboard_shows_and_stops_on_sigterm(
    tmp_path: Path,
) -> None:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "first.csv").write_text("id,price\n1,2\n")
    command = [part.replace("/data", str(tmp_path)) for part in pod_command()]
    command = [part for part in command if not part.startswith("--metrics-port")]
    command += ["--metrics-port=0", "--log-level=info", "--settle-s=0", "--checkpoint-every=1s"]
    environment = {**os.environ, "JAVA_HOME": str(ensure_java())}
    log = tmp_path / "log"
    with log.open("w") as written:
        driver = subprocess.Popen(
            [sys.executable, "-m", "epochgate", *command], stderr=written, env=environment
        )
    try:
        asked = {name for query in expressions().values() for name in names_in(query)}
        missing, until = asked, time.monotonic() + 120
        while missing and driver.poll() is None and time.monotonic() < until:
            time.sleep(0.5)
            found = re.search(r"http://0\.0\.0\.0:(\d+)/metrics", log.read_text())
            if found is not None:
                missing = asked - names_on(f"http://127.0.0.1:{found[1]}/metrics")
        assert missing == set(), log.read_text()[-2000:]
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(timeout=120) == 0, log.read_text()[-2000:]
    finally:
        driver.kill()
        driver.wait()
    assert len(list((tmp_path / "events").rglob("*.parquet"))) == 1
