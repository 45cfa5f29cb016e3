"""The chaos that `epochgate ingest --chaos TEXT` asks for.

Decides what the text means: a number of kills, or parts between commas, of which `log=` is the
last, since a path may have commas:

    kills=8,seed=3,stops,hangs=2.5,log=FILE   stopped workers among the kills, saves and commits
                                              that hang for up to so long, and a record of them
    kinds=worker+executor                     these, in this order
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from typing import Any, get_args

from epochgate.chaos.hanging import Hanging
from epochgate.chaos.striking import Chaos, Kind, Strike, has_executors, kill_plan
from epochgate.commands.progress import Progress
from epochgate.errors import UsageError
from epochgate.spark.ingest.plan import IngestPlan
from epochgate.spark.ingest.run import IngestHandle


@dataclasses.dataclass(frozen=True)
class Asked:
    """The parts of the text."""

    kills: int = 0
    seed: int = 0
    kinds: tuple[Kind, ...] = ()
    stops: bool = False
    hangs_s: float | None = None
    log: str | None = None


def asked(text: str) -> Asked:
    """Read the text. Raises UsageError.

    >>> asked("5")
    Asked(kills=5, seed=0, kinds=(), stops=False, hangs_s=None, log=None)
    >>> asked("kinds=worker+stop,seed=3,log=a,b")
    Asked(kills=0, seed=3, kinds=('worker', 'stop'), stops=False, hangs_s=None, log='a,b')
    """
    head, is_logged, log = text.partition("log=")
    given: dict[str, Any] = {"log": log} if is_logged else {}
    for part in filter(None, head.split(",")):
        name, _, value = ("kills", "", part) if part.isdecimal() else part.partition("=")
        try:
            given |= _part(name, value)
        except (KeyError, ValueError) as error:
            raise UsageError(
                f"--chaos {text}: {part!r} is none of kills=N, seed=N, stops, hangs=SECONDS, "
                f"kinds=KIND+KIND with {', '.join(get_args(Kind))}, and log=FILE at the end"
            ) from error
    return Asked(**given)


def _part(name: str, value: str) -> dict[str, Any]:
    if name in ("kills", "seed") and int(value) >= 0:
        return {name: int(value)}
    if name == "kinds" and set(value.split("+")) <= set(get_args(Kind)):
        return {name: tuple(value.split("+"))}
    if name == "stops" and not value:
        return {name: True}
    return {{"hangs": "hangs_s"}[name]: float(value)}


class IngestChaos:
    """The chaos of one job. Raises UsageError for a text that means nothing."""

    def __init__(self, text: str) -> None:
        self._asked = asked(text)
        self._hanging: Hanging | None = None
        self._wanted = 0
        self._strikes: list[Strike] = []

    def hold(self, plan: IngestPlan) -> None:
        """Take hold of saves and commits, if they are to hang."""
        if self._asked.hangs_s is not None:
            self._hanging = Hanging(plan)

    @contextlib.contextmanager
    def striking(self, handle: IngestHandle, progress: Progress) -> Iterator[None]:
        """Strike until the end of the block."""
        kinds = list(self._asked.kinds) or kill_plan(
            self._asked.kills,
            seed=self._asked.seed,
            has_executors=has_executors(handle.spark_context),
            stops=self._asked.stops,
            hangs=self._hanging is not None,
        )
        self._wanted = len(kinds)

        def note(strike: Strike) -> None:
            self._strikes.append(strike)
            progress.note(str(strike))
            if self._asked.log is not None:
                with open(self._asked.log, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"kind": strike.kind, "pid": strike.pid}) + "\n")

        with Chaos(
            handle,
            kinds,
            seed=self._asked.seed,
            hanging=self._hanging,
            hang_s_max=self._asked.hangs_s or 0.0,
            on_strike=note,
        ):
            yield

    def to_json(self) -> list[dict[str, Any]]:
        """Return each strike as plain values."""
        return [dataclasses.asdict(strike) for strike in self._strikes]

    def __str__(self) -> str:
        kinds = [strike.kind for strike in self._strikes]
        told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
        return f"killed on the way: {len(kinds)} of {self._wanted} wanted ({told or 'none'})"
