"""The job's answer to a snapshot or a checkpoint that no store can hold."""

from __future__ import annotations

from typing import Any

import pytest

from epochgate.runtime.shell.checkpoints import CheckpointAborted
from epochgate.runtime.store import CheckpointNotStorable
from tests.runtime.scripted import Script
from tests.runtime.test_job import checkpointed, up


@pytest.mark.parametrize("state", ["text", bytearray(b"state"), 7], ids=repr)
def test_a_snapshot_that_is_no_bytes_fails_its_checkpoint_with_type_and_coordinator(
    state: Any,
) -> None:
    script = Script(is_completing=False)
    job = up(script)
    wanted = job.master.request_checkpoint()
    job.flow()
    script.coordinator.results[1].set_result(state)
    job.settle(wanted.done)
    told = f"coordinator 'op' has no snapshot: .* with a {type(state).__name__}, expected bytes"
    with pytest.raises(CheckpointAborted, match=told):
        wanted.result(timeout=0)
    assert script.told("op.notify_checkpoint_aborted") == [(1,)]
    script.is_completing = True
    assert checkpointed(job) == 2


def test_a_checkpoint_that_cannot_be_stored_is_aborted_since_nothing_was_written() -> None:
    script = Script()
    job = up(script)
    job.store.fail_next_save(CheckpointNotStorable("properties is not a dict from str"))
    with pytest.raises(CheckpointAborted, match="could not be stored: properties is not"):
        checkpointed(job)
    assert script.told("op.notify_checkpoint_aborted") == [(1,)]
    assert checkpointed(job) == 2
