"""Faults on a lab whose jobs run: begun, measured, healed and judged.

Decides how long is waited for what; what is right, the judge decides. A file of rows arrives in the
source each second while a driver runs, so that there is always something to commit.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pyarrow.parquet as pq

from epochgate.runtime.tracing.validation import validated
from tests.nemesis.faults import Fault, Heal
from tests.nemesis.history import History, Reader
from tests.nemesis.host import PATIENCE, Host, wait_until
from tests.nemesis.jobs_program import INGEST, PARALLELISM, TABLE, UPDATES
from tests.nemesis.judge import NotExactlyOnce, judge, table_problems
from tests.nemesis.lab import DRIVER, Lab
from tests.nemesis.schedule import Bout

RECOVERED_S_MAX = 60.0 * PATIENCE
"""Until both jobs commit beside a fault, or after its healing where they cannot before."""
DRIVER_STARTS_S = 60.0
WELL_S_MAX = 90.0
ARRIVED_S_MAX = 30.0 * PATIENCE
ARRIVAL_EVERY_S = 1.0
ROWS_PER_FILE = 2_000
LOOK_S = 0.5


class Feeder:
    """Puts files of rows into the source while `is_wanted`, in a thread of its own, until it is
    closed.
    """

    def __init__(self, source: Path, is_wanted: Callable[[], bool]) -> None:
        self._source, self._is_wanted, self._next_id = source, is_wanted, 0
        self._is_over, self._is_paused = Event(), Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        self._is_paused.set()
        try:
            yield
        finally:
            self._is_paused.clear()

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(ARRIVAL_EVERY_S):
            if not self._is_paused.is_set() and self._is_wanted():
                self._put()

    def _put(self) -> None:
        ids = range(self._next_id, self._next_id + ROWS_PER_FILE)
        rows = pa.table({"id": ids, "value": [number * 7919 % 100_003 for number in ids]})
        name = f"{self._next_id:09}"
        temporary = self._source.parent / f"arriving-{name}"
        pq.write_table(rows, temporary)
        temporary.rename(self._source / f"{name}.parquet")
        self._next_id += ROWS_PER_FILE


@dataclass(frozen=True)
class Recovery:
    """Seconds from the beginning of a fault until the first commit of a checkpoint that began after
    it, in each job, and until all subtasks had heard an update that was sent after it.
    """

    fault: Fault
    ingest_s: float
    updates_s: float
    heard_s: float


@dataclass(frozen=True)
class Begun:
    """A fault that is active."""

    fault: Fault
    host: Host
    t: float
    undo: Heal


class Campaign:
    """Both jobs under faults, on one lab."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.recoveries: list[Recovery] = []
        self.faults = 0
        self.failures: list[str] = []
        """Texts of the failures of jobs that were expected."""
        self._feeder = Feeder(lab.folder / "source", lambda: lab.status() is not None)
        self._reader = Reader(lab.folder / "history", lab.on_disk("pages"))

    def close(self) -> None:
        self._feeder.close()

    @property
    def history(self) -> History:
        return self._reader.read()

    def make_well(self) -> None:
        """See that both jobs run and complete checkpoints; a driver that is gone is started."""
        try:
            wait_until(self._is_told, DRIVER_STARTS_S, "the driver's start", self.lab.told)
        except AssertionError:
            self.lab.kill_driver()  # the next test begins with another
            raise
        if self.lab.is_over():
            self.lab.kill_driver()
            self.lab.start_driver()
        self.lab.wait_until_well(WELL_S_MAX)

    def _is_told(self) -> bool:
        """Return whether a driver tells how its jobs are, or there is none."""
        return self.lab.status() is not None or not self.lab.driver.processes(DRIVER)

    def strike(self, fault: Fault) -> Recovery:
        """Begin a fault, measure the recovery, and heal it when its time is over."""
        begun = self.begin(fault)
        try:
            if fault.hold_s is None:
                self._recovered(begun)
            else:
                # So long it lasts, whatever the jobs do.
                time.sleep(max(0.0, begun.t + fault.hold_s - time.monotonic()))
        finally:
            self.heal(begun)
        recovery = self._recovered(begun)
        self.recoveries.append(recovery)
        return recovery

    def mix(self, bout: Bout) -> None:
        """Begin and heal the faults of a bout when they are due."""
        began = time.monotonic()
        active: list[tuple[float, Begun]] = []

        def heal_until(t: float) -> None:
            for end, begun in sorted(active, key=lambda one: one[0]):
                if end <= t:
                    time.sleep(max(0.0, end - time.monotonic()))  # its time is not over before
                    active.remove((end, begun))
                    self.heal(begun)

        try:
            for strike in bout:
                heal_until(began + strike.at_s)
                time.sleep(max(0.0, began + strike.at_s - time.monotonic()))  # it is due then
                active.append((began + strike.end_s, self.begin(strike.fault)))
        finally:
            heal_until(began + max(strike.end_s for strike in bout))

    def begin(self, fault: Fault) -> Begun:
        host = self.lab.driver if fault.place == "driver" else self.lab.busiest()
        self.lab.record("fault", name=fault.name, host=host.name)
        self.faults += 1
        undo = fault.begin(self.lab, host)
        # What was sent until now may have been heard before the fault was there.
        return Begun(fault, host, time.monotonic(), undo)

    def heal(self, begun: Begun) -> None:
        begun.undo()
        self.lab.record("healed", name=begun.fault.name, host=begun.host.name)

    def _recovered(self, begun: Begun) -> Recovery:
        since, until = begun.t, time.monotonic() + RECOVERED_S_MAX
        while True:
            history = self.history
            ingest, updates = (history.first_commit(job, since) for job in (INGEST, UPDATES))
            heard = history.first_confirmed(PARALLELISM[UPDATES], since)
            if ingest is not None and updates is not None and heard is not None:
                return Recovery(begun.fault, ingest - since, updates - since, heard - since)
            if time.monotonic() > until:
                raise NotExactlyOnce(
                    f"{begun.fault.what}: not recovered after {time.monotonic() - since:.1f} s; "
                    f"first commits {ingest} and {updates}, first update heard {heard}\n"
                    f"{self.lab.told()}"
                )
            time.sleep(LOOK_S)  # the lines have the times; this decides how often they are read

    def judge(self) -> None:
        """Let everything arrive that was fed, and judge all that was written down so far. Raises
        NotExactlyOnce.
        """
        source, table = self.lab.folder / "source", self.lab.on_disk(TABLE)
        given_up = self.lab.folder / "set-back"
        with self._feeder.paused():
            problems = _until_none(lambda: table_problems(source, table, given_up), ARRIVED_S_MAX)
        if problems:
            raise NotExactlyOnce("\n".join(problems))
        judge(self.history, stuck_after_s=RECOVERED_S_MAX, failures=self.failures)

    def finish(self) -> tuple[int, int]:
        """Stop both jobs, judge, and let the machines check what drivers and tasks did; how many
        traces and events of theirs there were.
        """
        self._feeder.close()
        self.judge()  # by now all has arrived that there is: a stop leaves unread files alone
        self.lab.record("stopping")
        self.lab.stop()
        self.judge()
        validation = validated([self.lab.folder / "traces"])
        refused = [str(one) for one in validation.verdicts if not one.is_accepted()]
        if refused:
            raise NotExactlyOnce(f"the machines refuse {len(refused)} traces:\n{refused[0]}")
        return len(validation.verdicts), validation.events


def _until_none(look: Callable[[], list[str]], patience_s: float) -> list[str]:
    """Return what `look` finds until it finds nothing; what it finds last when patience is over."""
    until = time.monotonic() + patience_s
    while (found := look()) and time.monotonic() < until:
        time.sleep(LOOK_S)
    return found
