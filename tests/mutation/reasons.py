"""Why some mutants are not found: by neither side, by the checker, or by the runtime.

Some are equivalent: nobody could tell them from the right machine. Others show that a side has a
blind spot, and the reason says which. Rows that no closed system takes have their reasons in
`epochgate.models.untaken`.
"""

from __future__ import annotations


def because(reason: str, *names: str) -> dict[str, str]:
    """The same reason for several mutants."""
    return dict.fromkeys(names, reason)


NO_OVERLAP = "a job has one checkpoint under way, so a gateway is never marked for two"
SAFE = "it costs a checkpoint or an attempt that was not to blame, and the job comes back from it"
TOLERANCE = "how many failures are tolerated is counted by a test of its own, and claimed nowhere"
NOT_LATE = (
    "the closed job lets it come at any moment; the runtime has one queue, on which it is never "
    "late for its machine"
)
SHELL_ASKS = "the shell asks the machine's `speaks` before that, to know whose reason it notes"
NOTICES = "a notice decides nothing in the model, and the fuzzer's coordinators ignore it"
NO_SLOW_START = "the fuzzer's coordinators start at once and never fail to"
MORE_RETRIES = "the fuzzer seldom lets a commit fail as often as is needed for that"

SEEN_BY_NEITHER: dict[str, str] = {
    **because(
        "equivalent: the back-off is not over in the step in which it begins",
        "lifecycle: fail_globally from running, stopping: without settle_down",
    ),
}
UNSEEN_BY_THE_CHECKER: dict[str, str] = {}
UNSEEN_BY_THE_RUNTIME: dict[str, str] = {}
