"""The settings of a job, and what it does with them."""

from __future__ import annotations

import dataclasses

import pytest

from epochgate.models import Job
from epochgate.runtime import JobConfiguration


def test_a_job_takes_one_checkpoint_at_a_time_and_has_no_option_for_more() -> None:
    names = {field.name for field in dataclasses.fields(JobConfiguration)}
    assert [name for name in names if "overlap" in name] == []
    assert not {"overlap", "lane"} & {*Job.CONSTANTS, *Job.INDEX_SETS}


def test_an_option_that_there_is_not_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="overlapping_checkpoints_max"):
        JobConfiguration("job", 1, overlapping_checkpoints_max=2)  # type: ignore[call-arg]
