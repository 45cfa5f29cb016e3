"""The jobs of one `epochgate ingest`: one, or several side by side in one Spark application.

Decides what they share, and what one of them may change for the others: nothing. Each has a source,
a target, checkpoints and commits of its own, so that one which is refused or fails leaves the
others as they are, and goes on by itself at the next start. A command of one job ends by the error
that refuses it.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from epochgate.commands.configuration import names_of
from epochgate.commands.ingest_result import as_json
from epochgate.errors import EpochgateError, UsageError

if TYPE_CHECKING:
    from epochgate.commands.progress import Progress
    from epochgate.runtime.observing.metrics_page import JobsPage
    from epochgate.spark.ingest.options import IngestOptions
    from epochgate.spark.ingest.plan import IngestPlan
    from epochgate.spark.ingest.run import IngestHandle, IngestResult

OWN = ("port", "ui_port", "journal", "from_savepoint")
"""Options that two jobs cannot have the same value of."""


@dataclass
class IngestJob:
    """One of them; `name`: its target as it was given, with its source where several have the
    target, empty where it is the only one.
    """

    options: IngestOptions
    name: str
    make_progress: Callable[[IngestOptions, str], Progress]
    plan: IngestPlan | None = None
    handle: IngestHandle | None = None
    result: IngestResult | None = None
    refusal: str | None = None

    @cached_property
    def progress(self) -> Progress:
        """Its lines; their times count from the first use."""
        return self.make_progress(self.options, self.name)

    @contextlib.contextmanager
    def refused(self) -> Iterator[None]:
        """Let the others go on if the block refuses this one."""
        try:
            yield
        except EpochgateError as error:
            if not self.name:
                raise
            self.refusal = str(error)

    def make_plan(self, stack: ExitStack) -> None:
        """Check everything that needs no Spark. Raises what `plan_ingest` raises."""
        from epochgate.spark.ingest.plan import plan_ingest, require_stores

        require_stores(self.options)
        self.plan = plan_ingest(self.options)
        stack.callback(self.plan.release)

    def start(self, spark: Any, stack: ExitStack, page: JobsPage | None) -> None:
        """Start it; `page` shows the metrics of all. Raises what `start_plan` raises."""
        from epochgate.spark.ingest.run import start_plan

        assert self.plan is not None
        listeners = [self.progress, *([] if page is None else [page.add()])]
        self.handle = stack.enter_context(start_plan(spark, self.plan, listeners=listeners))

    def outcome(self) -> dict[str, Any]:
        """The result as `--json` prints it, of one that was refused the reason."""
        if self.result is None or self.plan is None:
            options = self.options
            told = {"source": options.source_path, "target": options.target_path}
            return {"state": "refused", "reason": self.refusal, **told}
        return as_json(self.result, self.plan, self.progress, None)

    def exit_code(self, of_result: Callable[[IngestResult], int]) -> int:
        """The code of its end; 2 if it was refused."""
        return 2 if self.result is None else of_result(self.result)


def jobs_of(
    several: Sequence[argparse.Namespace],
    options_of: Callable[[argparse.Namespace], IngestOptions],
    progress_of: Callable[[IngestOptions, str], Progress],
) -> list[IngestJob]:
    """The jobs of these arguments. Raises UsageError, of several with the target."""
    jobs: list[IngestJob] = []
    names = names_of([(one.source, one.target) for one in several])
    for one, name in zip(several, names if len(several) > 1 else [""], strict=True):
        try:
            options = options_of(one)
            if name:  # there is one page for all
                options = replace(options, metrics_port=None, metrics_host=None)
                _require_apart(options, jobs)
        except UsageError as error:
            raise UsageError(f"{name}: {error}" if name else str(error)) from error
        jobs.append(IngestJob(options, name, progress_of))
    return jobs


def _require_apart(options: IngestOptions, others: Sequence[IngestJob]) -> None:
    from epochgate.spark.ingest.plan import checkpoint_directory_of

    for other in others:
        if options.target_path == other.options.target_path:
            _require_table(options, other)
        if checkpoint_directory_of(options) == checkpoint_directory_of(other.options):
            raise UsageError(
                f"the checkpoints are where those of {other.name} are; give each job a "
                "checkpoint-dir of its own"
            )
        for one, reader in ((options, other.options), (other.options, options)):
            if one.committed_files is not None and _is_read_by(one.source_path, reader.source_path):
                raise UsageError(
                    f"{one.source_path} is read by the job of {other.name}, too, and files go once "
                    "one of both has committed them (--after-commit, after-commit); leave that out"
                )
        for name in OWN:
            if (value := getattr(options, name)) and value == getattr(other.options, name):
                flag = name.replace("_", "-")
                raise UsageError(f"{flag} {value} is that of {other.name}, too; give each its own")


def _require_table(options: IngestOptions, other: IngestJob) -> None:
    if options.job_id == other.options.job_id:
        raise UsageError("two jobs read this source into this target: each row would come twice")
    if not options.parsed_target.is_table:
        raise UsageError(
            "two jobs have this target, and a directory of files belongs to one job: give it a "
            "pattern that matches the files of both; or, where their formats differ, give both a "
            "Delta, Iceberg or PostgreSQL table, and each a checkpoint-dir of its own"
        )


def _is_read_by(source: str, other: str) -> bool:
    """Return whether one source is the other, or within it; of two patterns that is not known.

    >>> _is_read_by("/in/*.csv", "/in"), _is_read_by("/in", "/in/a"), _is_read_by("/in", "/into")
    (True, True, False)
    """
    one, two = f"{source}/", f"{other}/"
    return one.startswith(two) or two.startswith(one)


def worst(codes: Sequence[int]) -> int:
    """The code of several jobs: failed, refused, interrupted, left something out, or well.

    >>> worst([0, 3]), worst([3, 2, 0]), worst([130, 1, 2])
    (3, 2, 1)
    """
    first = [code for code in (1, 2, 130) if code in codes]
    return first[0] if first else max(codes)
