"""`epochgate` runs by itself and says what the kit brings; with the kit beside it all is there."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import grimp
import pytest

from epochgate import __version__, cli, proving
from epochgate.spark.java import ensure_java
from tests.setup.distributions import ROOT, Environment, build_both, wheel_of
from tests.setup.test_facades import FACADES
from tests.test_readme import block_with

STARTED_BY_NAME = (
    "epochgate.models",
    "epochgate.runtime.filtering",
    "epochgate.spark.iceberg_sink.partitions",
    "epochgate.spark.iceberg_sink.rewriting",
    "epochgate.spark.task_main",
    "epochgate.spark.worker_daemon",
)
INSTALL = f"`pip install epochgate-proving=={__version__}`"
IMPORT_ALL = """
import importlib, pkgutil
import epochgate

def failed(name):
    raise

left_out = {
    f"epochgate.{name}__main__" for name in ("", "benchmarks.flink.", "benchmarks.peers.")
}
names = [one.name for one in pkgutil.walk_packages(epochgate.__path__, "epochgate.", failed)]
for name in names:
    if name not in left_out and not name.startswith("epochgate.benchmarks.peers.programs."):
        importlib.import_module(name)
print(len(names))
"""
ASK_FOR_ALL = """
import importlib
from epochgate import UsageError, proving

for name in proving.MODULES:
    try:
        importlib.import_module(name)
    except (ImportError, UsageError) as error:
        print(error)
"""
PIPELINE = """
from pathlib import Path
from epochgate.pipeline import FunctionSource, Pipeline
from epochgate.spark import local_session

def write(checkpoint, rows):
    with open("rows", "a") as file:
        file.writelines(f"{row}\\n" for row in rows)

with local_session("local[1,1000]") as spark:
    source = FunctionSource(range(0, 30, 10), lambda first: range(first, first + 10))
    result = Pipeline(source=source, sink=write).run(spark, "checkpoints", parallelism=1)
print(result.state, sorted(map(int, Path("rows").read_text().split())) == list(range(30)))
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    build_both(folder, "wheel")
    return folder


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Environment:
    return Environment(tmp_path_factory.mktemp("alone"), wheel_of("epochgate", wheels))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Environment:
    kit = wheel_of("epochgate_proving", wheels)
    return Environment(tmp_path_factory.mktemp("both"), wheel_of("epochgate", wheels), kit)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("epochgate", cache_dir=None, exclude_type_checking_imports=True)


def of_the_kit(graph: grimp.ImportGraph) -> set[str]:
    return {module for name in proving.MODULES for module in {name, *graph.find_descendants(name)}}


def test_nothing_that_runs_imports_the_kit(graph: grimp.ImportGraph) -> None:
    kit = of_the_kit(graph)
    found = {
        (module, imported)
        for module in graph.modules - kit
        for imported in graph.find_modules_directly_imported_by(module) & kit
    }
    assert len(kit) > 200
    assert found == set()


def test_what_runs_needs_each_module_that_it_ships_with(graph: grimp.ImportGraph) -> None:
    """Others belong to the kit. It begins with commands, facades and what Spark starts by name."""
    runs = graph.modules - of_the_kit(graph)
    reached: set[str] = set()
    left = {"epochgate.__main__", *STARTED_BY_NAME, *(FACADES & runs)}
    left |= {f"epochgate.commands.{name.replace('-', '_')}" for name in cli.COMMANDS} & runs
    while left:
        module = left.pop()
        reached.add(module)
        found = graph.find_modules_directly_imported_by(module) | named_in_stub(module)
        left |= ({module.rpartition(".")[0], *found} & runs) - reached
    assert runs - reached == set()


def named_in_stub(module: str) -> set[str]:
    """The modules from which a package takes its names when they are first used."""
    stub = ROOT / module.replace(".", "/") / "__init__.pyi"
    if not stub.exists():
        return set()
    nodes = ast.parse(stub.read_text("utf-8")).body
    return {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_the_package_alone_imports_all_that_it_has(alone: Environment, tmp_path: Path) -> None:
    ran = alone.run(tmp_path, "python", "-c", IMPORT_ALL)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 300


def test_help_names_the_commands_of_the_kit_too(alone: Environment, tmp_path: Path) -> None:
    ran = alone.run(tmp_path, "epochgate", "--help")
    assert ran.returncode == 0, ran.stderr
    listed = re.findall(r"^ {4}([\w-]+)\s+(\S.*)$", ran.stdout, re.MULTILINE)
    assert [name for name, _ in listed] == list(cli.COMMANDS)
    assert {name for name, told in listed if "epochgate-proving" in told} == proving.COMMANDS


@pytest.mark.parametrize("asked", [("check",), ("draw", "--help"), ("certify-sink", "my:Case")])
def test_a_command_of_the_kit_is_refused_in_one_line(
    alone: Environment, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    ran = alone.run(tmp_path, "epochgate", *asked)
    told = "this command is part of epochgate-proving, which is not installed"
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        2,
        "",
        f"epochgate {asked[0]}: {told}: {INSTALL}\n",
    )


def test_chaos_without_the_kit_is_refused_before_anything_starts(
    alone: Environment, tmp_path: Path
) -> None:
    ran = alone.run(tmp_path, "epochgate", "ingest", "landing", "table", "--chaos", "5")
    told = "epochgate.chaos is part of epochgate-proving, which is not installed"
    assert (ran.returncode, ran.stderr) == (2, f"epochgate ingest: {told}: {INSTALL}\n")


def test_a_job_that_is_not_there_has_no_status(alone: Environment, tmp_path: Path) -> None:
    ran = alone.run(tmp_path, "epochgate", "status", "nowhere")
    assert ran.returncode == 2
    assert "nowhere" in ran.stderr


def test_each_module_of_the_kit_names_it_when_it_is_imported(
    alone: Environment, tmp_path: Path
) -> None:
    ran = alone.run(tmp_path, "python", "-c", ASK_FOR_ALL)
    told = f"is part of epochgate-proving, which is not installed: {INSTALL}"
    assert set(ran.stdout.splitlines()) == {f"{name} {told}" for name in proving.MODULES}


@pytest.mark.parametrize(
    ("asked", "module"),
    [
        ("from epochgate.testing import assert_passes", "testing"),
        ("from epochgate.fsm import from_transitions", "fsm.existing"),
        ("from epochgate.fsm import checker", "fsm.checker"),
    ],
)
def test_a_name_of_the_kit_says_where_it_is(
    alone: Environment, tmp_path: Path, asked: str, module: str
) -> None:
    ran = alone.run(tmp_path, "python", "-c", asked)
    assert ran.stderr.splitlines()[-1] == (
        f"epochgate.proving.ProvingKitMissing: epochgate.{module} is part of epochgate-proving, "
        f"which is not installed: {INSTALL}"
    )


def test_a_kit_that_lies_elsewhere_is_named(
    alone: Environment, tmp_path: Path, wheels: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.unpack_archive(wheel_of("epochgate_proving", wheels), elsewhere, "zip")
    program = f"import sys; sys.path.append({str(elsewhere)!r}); import epochgate.testing"
    ran = alone.run(tmp_path, "python", "-c", program)
    assert ran.stderr.splitlines()[-1].endswith(
        f"of which version {__version__} is installed, but not beside epochgate {__version__}: "
        f"`pip install --force-reinstall epochgate=={__version__} "
        f"epochgate-proving=={__version__}`"
    )


@pytest.mark.programs
def test_both_together_import_all_that_there_is(both: Environment, tmp_path: Path) -> None:
    ran = both.run(tmp_path, "python", "-c", IMPORT_ALL)
    assert ran.returncode == 0, ran.stderr


def test_the_kit_checks_a_system(both: Environment, tmp_path: Path) -> None:
    (tmp_path / "airlock.py").write_text(block_with("class Airlock", "docs/checking.md"))
    ran = both.run(tmp_path, "epochgate", "check", "airlock:Airlock")
    assert ran.returncode == 1, ran.stderr
    assert "not always: never two doors open" in ran.stdout


def test_pytest_finds_the_plugin_of_the_kit(both: Environment, tmp_path: Path) -> None:
    (tmp_path / "test_rules.py").write_text(block_with("class RulesProvider", "docs/testing.md"))
    ran = both.run(tmp_path, "python", "-m", "pytest", "-q", "--epochgate-effort", "0.1")
    assert ran.returncode == 0, ran.stdout
    assert "epochgate" in ran.stdout


@pytest.mark.programs
@pytest.mark.spark
def test_the_package_alone_runs_jobs_on_spark(alone: Environment, tmp_path: Path) -> None:
    ensure_java()
    (tmp_path / "job.py").write_text(PIPELINE)
    ran = alone.run(tmp_path, "python", "job.py", timeout_s=120)
    assert ran.stdout.splitlines()[-1:] == ["finished True"], ran.stderr
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "one.csv").write_text("id,amount\n1,2\n3,4\n")
    ingested = alone.run(tmp_path, "epochgate", "ingest", "landing", "table", timeout_s=120)
    assert ingested.returncode == 0, ingested.stderr
    status = alone.run(tmp_path, "epochgate", "status", "table")
    assert status.returncode == 0, status.stderr
    assert "2 committed, 2 in the target" in status.stdout
