"""One ingestion over many driver processes: each is `epochgate ingest`, which kills its own workers
and executors, lets its saves and commits hang, and is killed itself (-9) after a while.

Decides nothing about the ingestion; the options are the round's.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epochgate.commands.validate import told_verdict
from epochgate.errors import NegativeResult
from epochgate.runtime.tracing.validation import validated

MASTER = "local-cluster[2,2,1024]"
SLOTS = 4
CHAOS_PER_RUN = 60
RUN_S_MAX = 600.0
COMPLETE = (0, 3)
"""The exit codes of an ingestion that has taken everything; 3: it has rejected rows."""
POLL_S = 1.0
"""Between two looks at a driver, and between two acts in its landing zone."""
LOG_LINES_SHOWN = 15
HANG_S_MAX = 3.0
LIMIT, LIMIT_S, BEYOND_LIMIT_S = "is the limit", 1.5, 20.0
"""Of saves and commits, where the job is to end by it: what its reason says, and how long they then
hang at most."""
FAILED, REFUSED = 1, 2
"""The exit codes of an ingestion that has failed, and of one that does not start."""
WAY_ON = re.compile(r"`epochgate (commits give-up [^`]+)`")


class SoakFailed(NegativeResult):
    """A row was lost or duplicated, a job failed, or the kills did not come about."""


class NotTaken(SoakFailed):
    """The job does not take its target, and names what may be given up: the command for it, what
    the job said.
    """

    @property
    def way_on(self) -> list[str]:
        """The arguments of `epochgate`."""
        return shlex.split(str(self.args[0]))

    def __str__(self) -> str:
        return f"the job does not take its target; it said:\n{self.args[1]}"


@dataclass
class Tally:
    """The deeds so far."""

    rounds: int = 0
    rows: int = 0
    traces: int = 0
    events: int = 0
    """Of the machines of drivers and tasks, in traces that were accepted."""
    kills: Counter[str] = field(default_factory=Counter)
    hangs: int = 0
    """Of saves and commits, for a while."""
    ends_by_limit: int = 0
    set_back: int = 0
    """Targets, and with them `rows_given_up`."""
    rows_given_up: int = 0

    def __str__(self) -> str:
        names = {"worker": "workers", "executor": "executors", "stop": "workers stopped"}
        parts = [f"{self.kills[kind]} {name}" for kind, name in names.items()]
        return (
            f"{self.kills.total()} kills ({', '.join(parts)}, {self.kills['driver']} drivers), "
            f"{self.hangs} hanging stores, {self.ends_by_limit} of them until the job's end, "
            f"{self.set_back} targets set back by {self.rows_given_up:,} rows"
        )


class Drivers:
    """The driver processes of one ingestion of `source` into `target`, one at a time.

    place: where their logs are kept.
    """

    def __init__(
        self,
        source: str,
        target: str,
        place: Path,
        chance: random.Random,
        tally: Tally,
    ) -> None:
        self._source, self._target, self._place = source, target, place
        self._chance, self._tally = chance, tally
        self._log, self._kills = place / "log.txt", place / "kills.jsonl"
        self._kills.touch()
        self._traces = place / "traces"
        # What a killed driver leaves behind goes with the round's folder.
        (place / "tmp").mkdir(exist_ok=True)

    def live(self, strikes: int, options: Sequence[str], meanwhile: Callable[[], None]) -> bool:
        """Run a driver until it has killed this many of its processes, with `meanwhile` again and
        again, and kill it then.

        False if it has ended before. NotTaken if that was since it does not take its target, and
        SoakFailed if it was with another error, or if it does not get on: it strikes only between
        two checkpoints.
        """
        process = self._started([*options, *self._chaos()])
        end_s = time.monotonic() + RUN_S_MAX
        wanted = self._struck() + strikes
        try:
            while process.poll() is None and self._struck() < wanted:
                if time.monotonic() > end_s:
                    raise SoakFailed(
                        f"the job did not get on for {RUN_S_MAX:g} s; it said:\n"
                        f"{self._end_of_log()}"
                    )
                meanwhile()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
        finally:
            was_killed = process.poll() is None
            process.kill()
            code = process.wait()
        if was_killed:
            self._tally.kills["driver"] += 1
        elif code not in COMPLETE:
            said = self._end_of_log()
            if code in (FAILED, REFUSED) and (way_on := WAY_ON.search(said)):
                raise NotTaken(way_on[1], said)
            raise SoakFailed(f"the job ended with exit code {code}; it said:\n{said}")
        return was_killed

    def hang(self, options: Sequence[str], meanwhile: Callable[[], None]) -> None:
        """Run a driver whose store hangs until the job ends by its limits. SoakFailed if it ends
        otherwise, or not at all.
        """
        limits = ["--store-timeout", f"{LIMIT_S}s", "--commit-timeout", f"{LIMIT_S}s"]
        process = self._started([*options, *limits, *self._chaos(BEYOND_LIMIT_S)])
        end_s = time.monotonic() + RUN_S_MAX
        try:
            while process.poll() is None and time.monotonic() < end_s:
                meanwhile()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
        finally:
            code = process.poll()
            process.kill()
            process.wait()
        said = self._end_of_log()
        if code != FAILED or LIMIT not in said:
            raise SoakFailed(
                f"a job whose store hangs ended with exit code {code}, and not by --store-timeout "
                f"or --commit-timeout; it said:\n{said}"
            )
        self._tally.ends_by_limit += 1

    def give_up(self, way_on: Sequence[str]) -> None:
        """Do what a driver has named, which gives up what is lost. SoakFailed if it is refused."""
        command = [sys.executable, "-m", "epochgate", *way_on]
        with self._log.open("a") as output:
            print("$", *command, file=output, flush=True)
            code = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
            ).returncode
        if code:
            raise SoakFailed(f"give-up ended with exit code {code}; it said:\n{self._end_of_log()}")

    def finish(self, options: Sequence[str], *, is_disturbed: bool) -> None:
        """Run a last driver to its own end, and count the kills of all. SoakFailed if it fails."""
        process = self._started([*options, *(self._chaos() if is_disturbed else [])])
        try:
            code = process.wait(RUN_S_MAX)
        except subprocess.TimeoutExpired:
            raise SoakFailed(
                f"the job did not end in {RUN_S_MAX:g} s; it said:\n{self._end_of_log()}"
            ) from None
        finally:
            process.kill()
            process.wait()
        if code not in COMPLETE:
            raise SoakFailed(f"the job ended with exit code {code}; it said:\n{self._end_of_log()}")

    def count_kills(self) -> None:
        """Add to the tally what the drivers killed themselves."""
        lines = self._kills.read_text().splitlines()
        kinds = Counter(json.loads(line)["kind"] for line in lines)
        self._tally.hangs += kinds.pop("hang", 0)
        self._tally.kills.update(kinds)

    def check_traces(self) -> None:
        """Let the machines check what the drivers and their tasks did. SoakFailed if one is
        refused, or if there are none.
        """
        validation = validated([self._traces])
        refused = [one for one in validation.verdicts if not one.is_accepted()]
        if refused:
            told = "\n".join(line for one in refused for line in told_verdict(one))
            raise SoakFailed(f"the machines refuse {len(refused)} traces:\n{told}")
        self._tally.traces += len(validation.verdicts)
        self._tally.events += validation.events

    def _struck(self) -> int:
        return self._kills.read_bytes().count(b"\n")

    def _chaos(self, hang_s_max: float = HANG_S_MAX) -> list[str]:
        seed = self._chance.randrange(1 << 30)
        parts = f"kills={CHAOS_PER_RUN},seed={seed},stops,hangs={hang_s_max},log={self._kills}"
        return ["--chaos", parts]

    def _started(self, options: Sequence[str]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "epochgate", "ingest"]
        command += [self._source, self._target, "--master", MASTER]
        command += ["--checkpoint-every", "300ms", "--heartbeat-timeout", "3s"]
        command += ["--restart", "rate:1000,1m,100ms", "--journal", str(self._traces)]
        command += options
        with self._log.open("a") as output:
            print("$", *command, file=output, flush=True)
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(self._place / "tmp")},
            )

    def _end_of_log(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])
