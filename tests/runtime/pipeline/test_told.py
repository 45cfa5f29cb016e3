"""An error of a user's value or function says its type and place."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.pipeline import FunctionSource, Pipeline, RateLimit, Setting, SettingRefused
from epochgate.runtime.testing.simulation import SimulatedJob


def down(checkpoint_id: int, records: list[Any]) -> None:
    raise OSError("sink is down")


def test_an_error_of_a_sinks_function_is_told_with_its_type_and_line() -> None:
    job = SimulatedJob.of(Pipeline(source=FunctionSource([0], lambda first: [first]), sink=down))
    job.settle(until=lambda: job.is_over)
    assert job.result.state == "failed"
    assert "OSError: sink is down" in str(job.result.reason)
    assert f'File "{__file__}", line' in str(job.result.reason)
    assert "in down" in str(job.result.reason)


@pytest.mark.parametrize("value", ["x", None, True, [900]])
def test_a_setting_refuses_a_value_of_another_type_as_a_control_does(value: Any) -> None:
    limit = Setting("limit", 900)
    with pytest.raises(SettingRefused, match=r"limit = 900, a number, and .* is .*Give a number"):
        limit.check(value)


@pytest.mark.parametrize(("initial", "value"), [(900, 0.5), (None, "noon"), (["a"], []), ("a", "")])
def test_a_setting_takes_values_of_its_type_and_none_takes_any(initial: Any, value: Any) -> None:
    Setting("limit", initial).check(value)


def test_a_rate_may_be_none() -> None:
    RateLimit(500).check(None)
