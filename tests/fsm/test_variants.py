"""A variant of a system has the methods of its base, parsed once, but for those that lead elsewhere
in it.
"""

from __future__ import annotations

import pytest

from epochgate.fsm import machines
from epochgate.fsm.subset import Interaction, check_system
from epochgate.models import Attempt, Job, JobLifecycle


class SameJob(Job):
    """A variant whose names all lead where they led."""


class OtherLifecycle(JobLifecycle):
    """In the place of the job's own."""


class OtherJob(Job):
    """A variant in which one name leads to another machine."""

    lifecycle: OtherLifecycle = machines(OtherLifecycle)


def test_a_variant_parses_only_what_is_another_method_in_it() -> None:
    names = [name for machine, name in Job.SUBSET._trees if machine is Attempt]

    def parsed_again(variant: type[Job]) -> set[str]:
        return {
            name
            for name in names
            if variant.SUBSET.tree(Attempt, name) is not Job.SUBSET.tree(Attempt, name)
        }

    assert parsed_again(SameJob) == set()
    assert "report_failed" in parsed_again(OtherJob)
    assert "send_restore" not in parsed_again(OtherJob)
    fired = set(check_system(OtherJob).interactions())
    assert Interaction(Attempt, "report_failed", OtherLifecycle, "attempt_failed") in fired
    assert not [one for one in fired if one.target is JobLifecycle]


def test_a_function_that_was_replaced_is_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def send_restore(self: Attempt) -> None:
        self.system.lifecycle.attempt_running()

    monkeypatch.setattr(Attempt, "send_restore", send_restore)
    fired = set(check_system(SameJob).interactions())
    assert Interaction(Attempt, "send_restore", JobLifecycle, "attempt_running") in fired
