"""The cost of checking a small model, or one of many rows, from the command to its answer.

Both sides must count the same states of each model. Processes are measured whole: `epochgate check
module:Class`, and `spin`, the C compiler and the compiled search. Runs are interleaved.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from epochgate.benchmarks.checker import TIMEOUT_S, CountsDiffer, install_spin, used_by_children_s
from epochgate.benchmarks.figures import Table
from epochgate.benchmarks.generated_models import HEAD, MODELS
from epochgate.exit_codes import ExitCode

RUNS = 3
CFLAGS = ("-O1", "-w", "-DSAFETY", "-DNOREDUCE")
COUNTED = (ExitCode.PASS, ExitCode.VACUOUS, ExitCode.UNTAKEN)
"""Exit codes of a process that has explored all states."""


@dataclass
class Samples:
    """Seconds of whole processes, and what they counted."""

    clock_s: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)
    states: int = 0

    def shown(self) -> tuple[str, str]:
        """The medians: on the clock, and of processor time."""
        return (
            f"{statistics.median(self.clock_s):.2f}",
            f"{statistics.median(self.processor_s):.2f}",
        )


def _run(samples: Samples, folder: Path, *commands: tuple[str, ...], counted: str) -> None:
    """Run some commands one after the other, and keep their time; the last tells the states."""
    before, begun_s = used_by_children_s(), time.perf_counter()
    for command in commands:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        found = re.search(counted, done.stdout)
        if done.returncode not in COUNTED or (command is commands[-1] and found is None):
            raise CountsDiffer(
                f"{' '.join(command)} has counted no states:\n"
                f"{done.stdout[-800:]}{done.stderr[-800:]}"
            )
    samples.clock_s.append(time.perf_counter() - begun_s)
    samples.processor_s.append(used_by_children_s() - before)
    assert found is not None, "the last command was looked at above"
    samples.states = int(found[1].replace(",", ""))


def measure(runs: int = RUNS, note: Callable[[str], None] = lambda text: None) -> Table:
    """Measure all models in turn, `runs` times each, after one run that is not counted.

    Raises CountsDiffer if the two sides count other states, SpinMissing without Spin.
    """
    install_spin()
    rows = []
    for number, (name, made) in enumerate(MODELS.items()):
        ours, spin, kept = Samples(), Samples(), Samples()
        text, promela = made()
        module = f"model_{number}"
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            (folder / f"{module}.py").write_text(HEAD + text, encoding="utf-8")
            (folder / "model.pml").write_text(promela, encoding="utf-8")
            check = (sys.executable, "-m", "epochgate", "check", f"{module}:Model")
            for run in range(runs + 1):
                note(f"{name}: run {run} of {runs}")
                into = (Samples(), Samples(), Samples()) if run == 0 else (ours, kept, spin)
                cold = ("env", "EPOCHGATE_CACHE=", *check)
                _run(into[0], folder, cold, counted=r"([\d,]+) states,")
                _run(into[1], folder, check, counted=r"([\d,]+) states,")
                _run(
                    into[2],
                    folder,
                    ("spin", "-o2", "-a", "model.pml"),
                    ("gcc", *CFLAGS, "-o", "pan", "pan.c"),
                    ("./pan", "-n", "-m100000"),
                    counted=r"(\d+) states, stored",
                )
        if not ours.states == kept.states == spin.states:
            raise CountsDiffer(f"{name}: Spin counts {spin.states} states instead of {ours.states}")
        rows.append((name, f"{ours.states:,}", *ours.shown(), *kept.shown(), *spin.shown()))
    return Table(
        question="checker-start",
        title="From the command to the answer, beside Spin (seconds)",
        header=(
            "model",
            "states",
            "first check",
            "processor",
            "again",
            "processor",
            "Spin",
            "processor",
        ),
        rows=tuple(rows),
        notes=(
            f"Medians of {runs} interleaved runs of whole processes, each on the clock and of "
            "processor time: `epochgate check module:Class` without the code that earlier checks "
            "have kept, and with it; and `spin -a`, `gcc -O1` and the search that they make. `-O1` "
            "answers soonest: more takes longer than it saves here."
        ),
    )
