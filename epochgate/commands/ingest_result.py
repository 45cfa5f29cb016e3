"""The result of `epochgate ingest`, for a person and as JSON."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochgate.chaos.of_ingest import IngestChaos
    from epochgate.commands.progress import Progress
    from epochgate.spark.ingest.plan import IngestPlan
    from epochgate.spark.ingest.run import IngestResult

SKIPPED_SHOWN_MAX = 10


def as_json(
    result: IngestResult, plan: IngestPlan, progress: Progress, chaos: IngestChaos | None
) -> dict[str, Any]:
    """The result as `--json` prints it."""
    from epochgate.spark.ingest.plan import checkpoint_directory_of

    return {
        **result.to_json(),
        "source": plan.options.source_path,
        "target": plan.options.target_path,
        "checkpoint_directory": checkpoint_directory_of(plan.options),
        "elapsed_s": round(progress.elapsed_s, 3),
        "killed": [] if chaos is None else chaos.to_json(),
    }


def summarize(
    result: IngestResult, plan: IngestPlan, progress: Progress, chaos: IngestChaos | None
) -> None:
    """Print the result for a person."""
    from epochgate.spark.ingest.plan import checkpoint_directory_of

    elapsed_s = progress.elapsed_s
    in_files = f" in {result.files_committed} files" if result.files_committed else ""
    target, rows = plan.options.target_path, f"{result.rows_visible:,} rows"
    is_shared = plan.options.parsed_target.is_table  # others may have added some
    print(
        f"{result.state}: {result.rows_committed:,} rows committed{in_files} "
        f"in {elapsed_s:.1f} s ({result.rows_committed / max(elapsed_s, 1e-9):,.0f} rows/s); "
        + (f"{rows} with those of {target} at the start" if is_shared else f"{target} holds {rows}")
    )
    print(result.report.summary())
    if chaos is not None:
        print(chaos)
    _tell_left_out(result, plan.options.source_path)
    if result.last_checkpoint_id:
        print(
            f"the same command restores checkpoint {result.last_checkpoint_id} in "
            f"{checkpoint_directory_of(plan.options)}"
        )


def _tell_left_out(result: IngestResult, source: str) -> None:
    """Tell which rows and files this run has left out, and where a script finds them."""
    from epochgate.spark.files.finding import told

    if result.unread:
        print(
            f"not read: {told(result.unread)} (`epochgate unread {shlex.quote(source)}` lists them)"
        )
    if result.rows_rejected:
        print(
            f"rejected: {result.rows_rejected:,} rows by this run, kept in {result.rejected_path}"
        )
    for skipped in result.newly_skipped[:SKIPPED_SHOWN_MAX]:
        print(f"skipped: {skipped.path} from {skipped.position} on: {skipped.reason}")
    if len(result.newly_skipped) > SKIPPED_SHOWN_MAX:
        print(f"skipped: {len(result.newly_skipped) - SKIPPED_SHOWN_MAX} more")
    if result.skipped:
        print(
            f"left out, whole files or the rest of them: {len(result.newly_skipped)} by this run, "
            f"{len(result.skipped)} in all: {result.bad_files_path}"
        )
