"""A trace as a pytest file: the state of the machines, and the events that followed.

The test takes the events again, on the machines as they are then. For a trace that the machines
refuse it fails until their rows allow what happened; for one that they accept it passes as long as
they do. Of a long trace the last `LINES_MAX` lines are kept, and the state before them.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections import deque
from collections.abc import Iterator, Sequence
from pprint import pformat
from typing import Any, Final

from epochgate.fsm import System
from epochgate.fsm.traces.replaying import Event, Refusal, Replay
from epochgate.fsm.traces.states import State, written_state
from epochgate.runtime.tracing.segments import Refused, Trace, chains, found, opened_trace
from epochgate.runtime.tracing.validation import system_of

LINES_MAX: Final = 200
LINE_MAX: Final = 96
KEYS: Final = ("n", "t", "times", "do", "with", "out")

MODULE = '''\
"""The last events of {name}, taken again by the machines.

{verdict}
"""

from __future__ import annotations

from {module} import {system}
from epochgate.runtime.tracing.regression import retaken

CONSTANTS = {constants}
STATE = {state}
# fmt: off
EVENTS = (
{events})
# fmt: on


def test_the_machines_allow_what_{test}_did() -> None:
    retaken({system}(**CONSTANTS), STATE, EVENTS)
'''


def retaken(system: System, state: State, events: Sequence[str]) -> None:
    """Put `system` into this state and let it take these events, each a line of a trace.

    Raises Refusal where its rows do not allow one, or give it other effects.
    """
    replay = Replay(system)
    first = json.loads(events[0])["n"] if events else 1
    replay.begin(first - 1, state)
    for event in events:
        replay.take(Event.of(json.loads(event)))


def pytest_module(paths: Sequence[str], lines_max: int = LINES_MAX) -> str:
    """The text of a pytest file for one trace, the first that is found at these paths.

    Raises NoTraces, and Refused for a trace that cannot be read as far as its first event.
    """
    trace = opened_trace(chains(found(paths))[0])
    head = trace.head
    front, behind = Replay(system_of(trace)), Replay(system_of(trace))
    for replay in (front, behind):
        replay.begin(head["first"] - 1, head["state"])
    kept: deque[dict[str, Any]] = deque()
    verdict = "The machines accepted them."
    try:
        for values in _events(trace):
            kept.append(values)
            front.take(Event.of(values))
            if len(kept) > lines_max:
                behind.take(Event.of(kept.popleft()))
    except Refused as refused:
        verdict = f"What follows cannot be read: {refused.refusal}."
    except Refusal as refusal:
        verdict = f"The machines refused the last one: {refusal}."
    module, _, name = head["system"].partition(":")
    return MODULE.format(
        name=os.path.basename(trace.name),
        verdict=textwrap.fill(verdict, LINE_MAX),
        module=module,
        system=name,
        constants=pformat(head["constants"], width=LINE_MAX),
        state=pformat(written_state(behind.system), width=LINE_MAX, sort_dicts=False),
        events="".join(f"    {json.dumps(values)!r},\n" for values in kept),
        test=re.sub(r"\W+", "_", os.path.basename(trace.name)),
    )


def _events(trace: Trace) -> Iterator[dict[str, Any]]:
    """The values of the lines of events."""
    for segment in trace.segments:
        for line in trace.lines(segment):
            if line.values is not None and "end" not in line.values:
                yield {name: line.values[name] for name in KEYS if name in line.values}
