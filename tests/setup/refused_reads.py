"""Reads of machines through handles. Each is refused by the type check: mypy reports an ignored
error that is none. `test_planted_reads.py` sees that each raises AttributeError too.
"""

from __future__ import annotations

from epochgate.fsm import Handles
from epochgate.models.job import Job


def by_a_state(job: Handles[Job]) -> bool:
    return bool(job.checkpoint.state)  # type: ignore[misc]


def by_a_field(job: Handles[Job]) -> bool:
    return bool(job.checkpoint.number)  # type: ignore[misc]


def by_a_guard(job: Handles[Job]) -> bool:
    return bool(job.attempt[1].is_running())  # type: ignore[misc]


def by_a_guard_in_a_loop(job: Handles[Job]) -> bool:
    return any(attempt.is_running() for attempt in job.attempt)  # type: ignore[misc]


def by_a_field_in_a_dict(job: Handles[Job]) -> bool:
    return any(gateway.sent for gateway in job.gateway.values())  # type: ignore[misc]


def by_a_list(job: Handles[Job]) -> bool:
    checkpoint = [job.checkpoint][0]
    return bool(checkpoint.state)  # type: ignore[misc]


def by_a_tuple(job: Handles[Job]) -> bool:
    checkpoint, _ = job.checkpoint, 1
    return bool(checkpoint.state)  # type: ignore[misc]


def by_the_values_of_a_machine(job: Handles[Job]) -> bool:
    return bool(job.checkpoint.values()["state"])  # type: ignore[misc]


def by_the_accepted_triggers(job: Handles[Job]) -> bool:
    return bool(job.checkpoint.accepted("none"))  # type: ignore[misc]


def by_the_system_of_a_machine(job: Handles[Job]) -> bool:
    return bool(job.checkpoint.system)  # type: ignore[misc]


def by_an_instance(job: Handles[Job]) -> bool:
    return bool(job.instance("attempt", (0,)))  # type: ignore[misc]


def by_the_values_of_the_system(job: Handles[Job]) -> bool:
    return bool(job.values()["checkpoint"]["state"])  # type: ignore[misc]


def by_an_effect_that_waits(job: Handles[Job]) -> bool:
    return bool(job.emitted)  # type: ignore[misc]
