"""The start of a sink on the checkpoints of its job: what its target has to hold, and may lack.

Decides nothing: the ledger says what is committed, a person what is given up, and
`SinkStart.require_held` compares both with the target. On the thread that starts the job.
"""

from __future__ import annotations

from epochgate.runtime.api.sink import SinkStart
from epochgate.runtime.store import CheckpointStore, CompletedCheckpoint
from epochgate.runtime.store.checkpoint import committed_of, in_doubt, missing_of


def sink_start(
    store: CheckpointStore, restored: CompletedCheckpoint | None, run_id: str
) -> SinkStart:
    """Return the start of a run that goes on from `restored`, the newest checkpoint in `store`."""
    if restored is None:
        return SinkStart(store.job_id, run_id, epoch=store.epoch, checkpoints=store.path)
    return SinkStart(
        store.job_id,
        run_id,
        restored.checkpoint_id,
        may_withdraw=(store.last_id or 0) > restored.checkpoint_id,
        epoch=store.epoch,
        committed=committed_of(restored),
        given_up=tuple((after, upto) for after, upto, _ in missing_of(restored)),
        checkpoints=store.path,
        in_doubt=frozenset(in_doubt(restored)),
    )
