"""The speed of the checker beside Spin, on the same model with the same states and transitions.

Spin and a C compiler are needed; Spin is installed with the system's package manager when it is
missing and that can be done. Runs are interleaved, so that what else the machine does meets all of
them alike. A run that counts other states than it should ends the benchmark.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epochgate.benchmarks.figures import Table, number
from epochgate.benchmarks.promela import ENCODINGS, promela
from epochgate.errors import NegativeResult, UsageError

MODELS = (
    ("S1", (2, 2, 2, 1, 1), 120_524, 561_792, 18),
    ("S2", (3, 1, 2, 2, 1), 1_876_258, 11_147_495, 22),
    ("S4", (2, 2, 2, 2, 1), 6_957_956, 36_624_708, 24),
)
"""Name; N, C, K, E and F; states; transitions; and the size of table, in bits, that suits Spin."""

RUNS = 3
TIMEOUT_S = 300.0
DEPTH = 4_000_000
"""Steps that Spin's search may go down; it keeps room for them."""
CFLAGS = ("-O3", "-march=native", "-w", "-DSAFETY", "-DMEMLIM=14000", "-DVECTORSZ=1024")
VARIANTS = {"packed": ("-DNOCOMP", "-DNOREDUCE"), "channels": ("-DNOREDUCE",)}
"""What each encoding is compiled with: the fastest that was found for it."""

SYSTEM = """
import json, sys
from importlib import import_module
module, system = sys.argv[1].split(":")
system = getattr(import_module(module), system)(**json.loads(sys.argv[2]))
options = json.loads(sys.argv[3])
"""
SHOWN = """
found = {**result.to_json(), "processor_seconds": measured_s}
json.dump({name: found[name] for name in ("states", "transitions", "search_seconds",
    "processor_seconds", "bytes_per_state")}, sys.stdout)
"""
CHECK = f"""{SYSTEM}
from epochgate.fsm.checker import check
result, measured_s = check(system, **options), None
{SHOWN}"""
REFERENCE = "epochgate.models.studies.reference:Reference"

OURS = {
    "one": {"workers": 1, "optimise_from": 0},
    "two": {"workers": 2, "optimise_from": 0},
    "default": {"workers": 1},
}
"""Options of our searches: in code that is optimised, as Spin's is, and as the command does it."""


class SpinMissing(UsageError):
    """There is no Spin, and it could not be installed."""


class CountsDiffer(NegativeResult):
    """Two checkers disagree on the same model."""


@dataclass
class Samples:
    """Seconds of one checker on one model."""

    search_s: list[float] = field(default_factory=list)
    total_s: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)
    state_bytes: float = 0.0

    @property
    def middle_s(self) -> float:
        """The median of the search time on the clock."""
        return statistics.median(self.search_s)


def install_spin() -> None:
    """Make sure that `spin` and a C compiler are there; raises SpinMissing."""
    if not shutil.which("spin") and shutil.which("apt-get") and os.geteuid() == 0:
        for command in (("apt-get", "update"), ("apt-get", "install", "--yes", "spin")):
            subprocess.run(command, check=False, capture_output=True, timeout=TIMEOUT_S)
    missing = [name for name in ("spin", "gcc") if not shutil.which(name)]
    if missing:
        raise SpinMissing(
            f"{' and '.join(missing)} not found on PATH; install the packages of these names "
            f"(on Debian and Ubuntu: apt-get install spin gcc) and measure again"
        )


class SpinModel:
    """A model in Promela, compiled by Spin and the C compiler; `bits` is the size of its table."""

    def __init__(self, folder: Path, text: str, flags: tuple[str, ...], bits: int) -> None:
        self._folder, self._bits = folder, bits
        folder.mkdir()
        (folder / "model.pml").write_text(text, encoding="utf-8")
        begun_s = time.perf_counter()
        self._run("spin", "-o2", "-a", "model.pml")
        self._run("gcc", *CFLAGS, *flags, "-o", "pan", "pan.c")
        self.compile_s = time.perf_counter() - begun_s

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise SpinMissing(
                f"{' '.join(command)} failed:\n{done.stdout[-500:]}{done.stderr[-500:]}"
            )
        return done.stdout

    def search(self, samples: Samples, expected: tuple[int, int] | None) -> tuple[int, int]:
        """Search once; return states and transitions. CountsDiffer if others are expected."""
        before_s, begun_s = used_by_children_s(), time.perf_counter()
        shown = self._run("./pan", "-n", f"-m{DEPTH}", f"-w{self._bits}")
        elapsed_s = time.perf_counter() - begun_s
        if "max search depth too small" in shown or not re.search(r"errors: 0\b", shown):
            raise CountsDiffer(f"Spin has not searched everything:\n{shown[-800:]}")
        stored = int(_first(r"(\d+) states, stored", shown))
        # Spin counts the initial state as a transition.
        counted = stored, int(_first(r"(\d+) transitions", shown)) - 1
        _compare("Spin", counted, expected)
        samples.search_s.append(elapsed_s)
        samples.processor_s.append(used_by_children_s() - before_s)
        samples.total_s.append(elapsed_s + self.compile_s)
        return counted


def used_by_children_s() -> float:
    """Processor time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise SpinMissing(f"Spin's answer is not understood; it has no {pattern!r}:\n{text[-800:]}")
    return found[1]


def _compare(who: str, found: tuple[int, int], wanted: tuple[int, int] | None) -> None:
    if wanted is not None and found != wanted:
        raise CountsDiffer(f"{who} counts {found} states and transitions instead of {wanted}")


def search(
    system: str,
    constants: Mapping[str, int],
    options: Mapping[str, Any],
    samples: Samples,
    expected: tuple[int, int] | None,
    program: str = CHECK,
    timeout_s: float = TIMEOUT_S,
) -> tuple[int, int]:
    """Check in a process of its own, without compiled code from earlier runs.

    As `SpinModel.search`; `system` is `module:Class`.
    """
    begun_s = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program, system, json.dumps(constants), json.dumps(options)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=True,
        env={**os.environ, "EPOCHGATE_CACHE": ""},
    )
    found = json.loads(done.stdout)
    counted = found["states"], found["transitions"]
    _compare("epochgate", counted, expected)
    samples.search_s.append(found["search_seconds"])
    samples.processor_s.append(found["processor_seconds"] or 0.0)
    samples.total_s.append(time.perf_counter() - begun_s)
    samples.state_bytes = found["bytes_per_state"]
    return counted


def measure(runs: int = RUNS, note: Callable[[str], None] = lambda text: None) -> Table:
    """Measure all models in turn, `runs` times each."""
    install_spin()
    rows = []
    for name, bounds, states, transitions, bits in MODELS:
        constants, expected = dict(zip("NCKEF", bounds, strict=True)), (states, transitions)
        samples = {who: Samples() for who in (*ENCODINGS, *OURS)}
        with tempfile.TemporaryDirectory() as folder:
            spins = {
                encoding: SpinModel(
                    Path(folder) / encoding, promela(constants, encoding), VARIANTS[encoding], bits
                )
                for encoding in ENCODINGS
            }
            for run in range(runs):
                note(f"{name}: run {run + 1} of {runs}")
                for encoding, spin in spins.items():
                    spin.search(samples[encoding], expected)
                for who, options in OURS.items():
                    search(REFERENCE, constants, options, samples[who], expected)
        rows.append(_row(name, bounds, samples))
    return Table(
        question="checker",
        title="Searching every state, beside Spin (seconds)",
        header=(
            "model",
            "Spin, channels",
            "Spin, packed",
            "one worker",
            "two workers",
            "times Spin's best",
            "Spin in all",
            "ours in all",
            "bytes a state",
        ),
        rows=tuple(rows),
        notes=(
            f"Medians of {runs} interleaved runs; the same states and transitions in all of them. "
            "Search time, on one core but for the column of two workers. Spin's two encodings are "
            "written for this model: the language's own channels, and integers packed by hand. "
            "Search times are of optimised code. `In all` is everything with compilation, for ours "
            "with the start of Python and without code kept from earlier runs, as `epochgate "
            "check` does it: it begins in code that was compiled quickly, and has optimised code "
            "made beside a search that grows large. Bytes a state are ours."
        ),
    )


def _row(name: str, bounds: tuple[int, ...], samples: dict[str, Samples]) -> tuple[str, ...]:
    best = min(ENCODINGS, key=lambda encoding: samples[encoding].middle_s)
    ours = samples["one"]
    return (
        f"{name} {bounds}",
        f"{samples['channels'].middle_s:.3f}",
        f"{samples['packed'].middle_s:.3f}",
        f"{ours.middle_s:.3f}",
        f"{samples['two'].middle_s:.3f}",
        f"{samples[best].middle_s / ours.middle_s:.1f}",
        f"{statistics.median(samples[best].total_s):.2f}",
        f"{statistics.median(samples['default'].total_s):.2f}",
        number(ours.state_bytes),
    )
