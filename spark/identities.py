"""The identity of an attempt: Spark's task attempt id, and how many attempts its process has had.

Spark's ids only grow, and so do the identities within one: whichever process Spark has started last
is newer than all before it, however often those begin again. In decimal, so that a person sees
both: 7002 is the second attempt in the process of Spark's task attempt 6.
"""

from __future__ import annotations

from typing import Final

from epochgate.errors import InvariantBroken

ATTEMPTS_PER_PROCESS_MAX: Final = 100
"""Then Spark starts another process, and what attempts have leaked is gone with the old one."""
_PLACES: Final = 1000
_IDENTITY_MAX: Final = 2**63 - 1
"""What the wire and traces carry."""


def identity_of(task_attempt_id: int, number: int) -> int:
    """Return the identity of the attempt with this number, from 1, in the process of a task.

    >>> identity_of(6, 2)
    7002
    """
    # 0 stands for "no process" on the driver, and Spark counts from 0.
    identity = (task_attempt_id + 1) * _PLACES + number
    if task_attempt_id < 0 or not 0 < number < _PLACES or identity > _IDENTITY_MAX:
        raise InvariantBroken(
            f"attempt {number} of Spark's task attempt {task_attempt_id} has no identity: a "
            f"process has fewer than {_PLACES} attempts, and identities are at most {_IDENTITY_MAX}"
        )
    return identity


def task_attempt_of(identity: int) -> int:
    """Return Spark's task attempt id of the process with this identity.

    >>> task_attempt_of(7002)
    6
    """
    return identity // _PLACES - 1
