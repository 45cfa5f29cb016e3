"""The trace of a driver as a scenario of the machines, to be read, shortened and kept.

    python -m tests.scenarios.of_trace TRACE [--events N]     its first N events

A trace has no values of users: where a trigger takes one, the scenario has the parameter's name.
The output is what the machines say now, for a person to review; what they refuse is said there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from shlex import quote
from typing import Any

from epochgate.fsm.traces.replaying import Event
from epochgate.models.job import Job
from epochgate.runtime.tracing.segments import Trace, chains, found, opened_trace
from tests.scenarios.machines_world import DEFAULTS
from tests.scenarios.test_scenarios import DASHES, replayed

EVENTS_MAX = 200


class NoScenario(Exception):
    """The text that is given cannot become a scenario."""


def scenario_of_trace(paths: list[str], events_max: int = EVENTS_MAX) -> str:
    """The scenario of the first trace at these paths; raises NoScenario, NoTraces, Refused."""
    trace = opened_trace(chains(found(paths))[0])
    head = trace.head
    if head["process"]["role"] != "driver" or head["system"] != "epochgate.models.job:Job":
        raise NoScenario(f"{trace.name} is not of a driver's job: {head['process']}")
    if head["first"] != 1:
        raise NoScenario(
            f"{trace.name} begins with event {head['first']}, and a scenario begins with the job: "
            "its first segment is gone; `epochgate validate TRACE --pytest FILE` takes any trace"
        )
    commands = islice((line for event in _events(trace) for line in _commands(event)), events_max)
    about = f"The first events of {head['job_id']}, as {trace.name.rpartition('/')[2]} has them."
    return scenario(about, head["constants"], commands)


def scenario(about: str, constants: dict[str, int], commands: Iterable[str]) -> str:
    """The text, with what comes of each command."""
    made = " ".join(f"{name}={value}" for name, value in constants.items())
    first, *rest = commands
    blocks = [f"machines {made}\n{first}\n{DASHES}", *(f"{each}\n{DASHES}" for each in rest)]
    return replayed("\n\n".join([about, *blocks]))


def _events(trace: Trace) -> Iterator[Event]:
    for segment in trace.segments:
        for line in trace.lines(segment):
            if line.values is not None and "end" not in line.values:
                yield Event.of(line.values)


def _commands(event: Event) -> Iterator[str]:
    """A line of a trace may stand for several events, in which a value grows."""
    for later in range(event.times):
        values = [v[0] + later if isinstance(v, list) else v for v in event.arguments]
        yield command(event.name, values)


def command(name: str, values: list[Any]) -> str:
    """The line that fires a trigger, such as `gateway[0][1].send`."""
    path, _, trigger = name.rpartition(".")
    machine, _, index = path.partition("[")
    parameters = Job.MACHINES[machine].trigger_parameters(trigger)
    words = [_word(f"{machine}.{trigger}", *each) for each in zip(parameters, values, strict=True)]
    place = f"[{index.rstrip(']').replace('][', ',')}]" if index else ""
    return " ".join([f"{machine}{place}.{trigger}", *words])


def _word(name: str, parameter: str, value: Any) -> str:
    if value is None:
        value = DEFAULTS[name] if parameter == "reason" else parameter
    return str(value).lower() if isinstance(value, bool) else quote(str(value))


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.of_trace")
    parser.add_argument("trace", nargs="+", metavar="TRACE")
    parser.add_argument("--events", type=int, default=EVENTS_MAX, metavar="N")
    arguments = parser.parse_args()
    sys.stdout.write(scenario_of_trace(arguments.trace, arguments.events))


if __name__ == "__main__":
    main()
