"""`epochgate ingest`: files into Parquet or a table, each row exactly once, whatever is killed."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import logging
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from epochgate.commands.configuration import as_toml, expanded
from epochgate.commands.ingest_flags import PAGES, declare as declare
from epochgate.commands.ingest_jobs import IngestJob, jobs_of, worst
from epochgate.commands.ingest_result import as_json, summarize
from epochgate.commands.reading import reading_from
from epochgate.errors import EpochgateError, UsageError
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.chaos.of_ingest import IngestChaos
    from epochgate.commands.watching import Interrupts
    from epochgate.runtime.observing.metrics_page import JobsPage
    from epochgate.spark.ingest.options import IngestOptions
    from epochgate.spark.ingest.run import IngestHandle, IngestResult

LOGGER = logging.getLogger("epochgate.ingest")
NEEDED = ("pyspark", "pyarrow", "psutil", "numpy")

HELP = "read files and write Parquet or tables, each row exactly once"
DESCRIPTION = """\
Read the files of SOURCE (Parquet, ORC, Avro, CSV, JSON) in a Spark job and write
their rows to TARGET, each row exactly once, whatever is killed on the way. TARGET
is a directory for Parquet files, or a table of a kind named below. Rows become
visible in it checkpoint by checkpoint, all of a checkpoint at once. The same
command, started again, continues where the last run ended, and takes new files."""

EPILOG = f"""\
examples:
  epochgate ingest incoming table            all files below incoming, on this machine
  epochgate ingest 'logs/*.csv.gz' table --columns time,level --parallelism 2
  epochgate ingest incoming table --follow   go on with new files until Ctrl-C
  epochgate ingest s3://bucket/in s3://bucket/out   from and into an object store
  epochgate ingest incoming table --transform my_rules:clean
                                             clean(batch) of my_rules.py: from a
                                             pyarrow.RecordBatch to one, or None;
                                             of pandas: clean(frame: pd.DataFrame)
  epochgate ingest incoming table --master spark://host:7077
  epochgate ingest incoming table --chaos 5  kill five of its own processes on the way

targets (docs/tables.md):
  PATH        a directory of Parquet files; made if missing; or a URL, s3://...
  delta:PATH  a Delta Lake table in a directory; made if missing (epochgate[delta])
  iceberg:CATALOG.NAMESPACE.TABLE
              an Iceberg table of a catalog that pyiceberg's configuration describes,
              with --checkpoint-dir; made if missing (epochgate[iceberg])
  postgres:DSN#TABLE
              a table of PostgreSQL that is there, with --checkpoint-dir; DSN as for
              psql, such as postgresql://host/database (epochgate[postgres])

Ctrl-C takes a last checkpoint and leaves; a second Ctrl-C leaves at once. Nothing
is lost either way. Source and target must be the same on all machines.
{codes_of("ingest")}"""


def expand(given: Sequence[str]) -> list[str]:
    """The arguments with those of a file that they name. Raises UsageError."""
    return expanded(given, _parser())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    declare(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Ingest; 0 when it finished or was stopped, 3 when it has left something out then, 1 when it
    failed, 130 when it was canceled.
    """
    several = [_named(_parser().parse_args(json.loads(one))) for one in arguments.one_of_several]
    _named(arguments)
    if several and (arguments.source or arguments.target):
        raise UsageError(
            "SOURCE and TARGET are given, and the file of --config has several jobs, each with its "
            "own; leave them out"
        )
    if arguments.print_config:
        print(as_toml(arguments, several, _parser()), end="")
        return 0
    if not several and not (arguments.source and arguments.target):
        raise UsageError("SOURCE and TARGET are needed, here or in the file of --config")
    with ExitStack() as stack:
        if arguments.log_format == "json":
            from epochgate.commands.watching import json_lines, logging_to

            handler = json_lines(is_quiet=arguments.quiet)
            stack.enter_context(logging_to(handler, arguments.log_level, usual=logging.INFO))
        try:
            return _run(arguments, several or [arguments])
        except EpochgateError as error:
            if arguments.json:
                print(json.dumps({"state": "refused", "reason": str(error)}))
            raise


def _named(arguments: argparse.Namespace) -> argparse.Namespace:
    arguments.source = arguments.source_named = arguments.source or arguments.source_named
    arguments.target = arguments.target_named = arguments.target or arguments.target_named
    return arguments


def _run(arguments: argparse.Namespace, each: Sequence[argparse.Namespace]) -> int:
    require_packages()
    from epochgate.commands.progress import Progress
    from epochgate.commands.watching import Interrupts
    from epochgate.spark.session import local_master

    log = LOGGER.info if arguments.log_format == "json" else None

    def progress_of(options: IngestOptions, name: str) -> Progress:
        quiet = arguments.quiet
        return Progress(is_followed=options.follow, is_quiet=quiet, log=log, name=name)

    jobs = jobs_of(each, options_from, progress_of)
    chaos = None if arguments.chaos is None else _chaos(arguments.chaos)
    if chaos is not None and len(jobs) > 1:
        raise UsageError("--chaos is for one job, and there are several; leave it out")
    slots = sum(job.options.parallelism for job in jobs)
    master = local_master(arguments.master or f"local[{slots}]")
    with ExitStack() as stack:
        interrupts = stack.enter_context(Interrupts())
        for job in jobs:
            with job.refused():
                job.make_plan(stack)
            _announce(job, master, arguments)
        if chaos is not None and jobs[0].plan is not None:
            chaos.hold(jobs[0].plan)
        planned = [job for job in jobs if job.plan is not None]
        if planned:
            _work(planned, master, arguments, chaos, interrupts, stack)
    return _told(jobs, arguments, chaos, is_interrupted=interrupts.count > 0)


def _work(
    jobs: Sequence[IngestJob],
    master: str,
    arguments: argparse.Namespace,
    chaos: IngestChaos | None,
    interrupts: Interrupts,
    stack: ExitStack,
) -> None:
    """Run them to their ends; one that is not started has been refused."""
    from epochgate.commands.progress import LogLines
    from epochgate.commands.watching import logging_to, say_on_stderr, watch, watch_all
    from epochgate.spark.job import require_slots
    from epochgate.spark.session import local_session

    spark = stack.enter_context(local_session(master, log_level=arguments.log_level))
    if arguments.log_format != "json":
        stack.enter_context(logging_to(LogLines(jobs[0].progress), arguments.log_level))
    page = None
    if any(job.name for job in jobs):
        require_slots(spark.sparkContext, sum(job.options.parallelism for job in jobs))
        page = _page_of_all(arguments, stack)
    for job in jobs:
        with job.refused():
            job.start(spark, stack, page)
        _announce_pages(job, arguments)
    started = [(job.handle, job.progress) for job in jobs if job.handle is not None]
    interrupts.begin()
    obey = _obeying([handle for handle, _ in started], interrupts, arguments)
    striking = contextlib.nullcontext() if chaos is None else chaos.striking(*started[0])
    with striking:
        # A live display is for people alone, and for one job.
        if len(jobs) > 1:
            watch_all(started, each=obey, say=say_on_stderr)
        else:
            say = say_on_stderr if arguments.quiet or arguments.log_format == "json" else None
            watch(*started[0], each=obey, say=say)
        for job in jobs:
            job.result = None if job.handle is None else job.handle.wait()


def _page_of_all(arguments: argparse.Namespace, stack: ExitStack) -> JobsPage | None:
    from epochgate.runtime.observing.listening import wanted
    from epochgate.runtime.observing.metrics_page import JobsPage

    address = wanted("metrics", arguments.metrics_port, arguments.metrics_host)
    if address is None:
        return None
    page = JobsPage(*address)
    stack.callback(page.close)
    _say(f"metrics: {page.url}", arguments)
    return page


def _announce_pages(job: IngestJob, arguments: argparse.Namespace) -> None:
    if job.handle is None:
        _say(f"{job.name}: refused: {job.refusal}", arguments, logging.ERROR)
        return
    for page in PAGES:
        if (url := getattr(job.handle.job, f"{page}_url")) is not None:
            job.progress.note(f"{page}: {url}", is_needed=True)


def _told(
    jobs: Sequence[IngestJob],
    arguments: argparse.Namespace,
    chaos: IngestChaos | None,
    *,
    is_interrupted: bool,
) -> int:
    """Tell what they came to, and return the exit code."""

    def code_of(result: IngestResult) -> int:
        return exit_code(result, arguments.exit_code_left_out, is_interrupted=is_interrupted)

    code = worst([job.exit_code(code_of) for job in jobs])
    if arguments.json and len(jobs) > 1:
        print(json.dumps({"jobs": [job.outcome() for job in jobs]}, default=str))
    for job in jobs:
        if job.result is None or job.plan is None:
            continue
        if arguments.json and len(jobs) == 1:
            outcome = as_json(job.result, job.plan, job.progress, chaos)
            print(json.dumps(outcome, default=str))
        elif not (arguments.json or arguments.quiet):
            if job.name:
                print(f"{job.name}:")
            summarize(job.result, job.plan, job.progress, chaos)
        if not job.result.is_success():
            whose = job.name or "the job"
            told = f"{whose} has {job.result.state}: {job.result.reason}"
            _say(told, arguments, logging.ERROR)
    return code


def exit_code(result: IngestResult, left_out: int, *, is_interrupted: bool) -> int:
    """The exit code of a run; `left_out`: of one that finished and has left out rows or files."""
    if result.is_success():
        return 0 if result.is_complete() else left_out
    return 130 if result.state == "canceled" and is_interrupted else 1


def require_packages() -> None:
    """Raise UsageError if what the job needs is not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"this needs Spark and {', '.join(missing)} is not installed: "
            "`pip install epochgate[spark]`"
        )


def options_from(arguments: argparse.Namespace) -> IngestOptions:
    """The options that the command line asks for."""
    from epochgate.runtime.durations import parse_duration_s
    from epochgate.runtime.sizes import parse_size_bytes
    from epochgate.spark.ingest.options import RESTART, IngestOptions
    from epochgate.spark.ingest.transform_function import load_transform

    return IngestOptions(
        source=arguments.source,
        target=arguments.target,
        parallelism=arguments.parallelism,
        checkpoint_every_s=parse_duration_s(arguments.checkpoint_every),
        checkpoint_directory=arguments.checkpoint_dir,
        transform=None if arguments.transform is None else load_transform(arguments.transform),
        transform_takes=arguments.transform_takes,
        follow=arguments.follow,
        partition_by=_names(arguments.partition_by),
        **reading_from(arguments),
        file_bytes=parse_size_bytes(arguments.file_size),
        commit_in=arguments.commit_in,
        merge_on=_names(arguments.merge_on),
        merge_order=_names(arguments.merge_order),
        merge_delete=arguments.merge_delete,
        on_changed_file=arguments.on_changed_file,
        settle_s=arguments.settle_s,
        notify=arguments.notify,
        list_every_s=None
        if arguments.list_every is None
        else parse_duration_s(arguments.list_every),
        new_only=arguments.new_only,
        modified_after=arguments.modified_after,
        modified_before=arguments.modified_before,
        committed_files=arguments.after_commit,
        committed_files_age_s=parse_duration_s(arguments.after_commit_age),
        forget_after_s=parse_duration_s(arguments.forget_after),
        restart=arguments.restart or RESTART,
        rows_per_second=arguments.rows_per_second,
        heartbeat_timeout_s=parse_duration_s(arguments.heartbeat_timeout),
        store_timeout_s=parse_duration_s(arguments.store_timeout),
        commit_timeout_s=parse_duration_s(arguments.commit_timeout),
        port=arguments.port,
        wire=arguments.wire,
        metrics_port=arguments.metrics_port,
        metrics_host=arguments.metrics_host,
        ui_port=arguments.ui_port,
        ui_host=arguments.ui_host,
        otlp=arguments.otlp,
        journal=arguments.journal,
        from_savepoint=arguments.from_savepoint,
        allow_dropped_state=tuple(arguments.allow_dropped_state),
    )


def _names(text: str | None) -> tuple[str, ...]:
    """Names between commas; a comma between parentheses is part of a name, as in bucket(16,id)."""
    if text is None:
        return ()
    return tuple(name.strip() for name in re.split(r",(?![^()]*\))", text))


def _announce(job: IngestJob, master: str, arguments: argparse.Namespace) -> None:
    name, plan = f"{job.name}: " if job.name else "", job.plan
    if plan is None:
        _say(f"{name}refused: {job.refusal}", arguments, logging.ERROR)
        return
    for warning in plan.warnings:
        _say(f"{name}{warning}", arguments, logging.WARNING)
    if arguments.quiet:
        return
    whence = "starting" if plan.resumes_from is None else f"from checkpoint {plan.resumes_from}"
    _say(
        f"{name}{whence}: {plan.files_found} files known in {plan.options.source_path}, "
        f"{plan.options.parallelism} subtasks on {master}",
        arguments,
    )


def _say(line: str, arguments: argparse.Namespace, level: int = logging.INFO) -> None:
    if arguments.log_format == "json":
        LOGGER.log(level, line)
        return
    prefix = {logging.WARNING: "warning: ", logging.ERROR: "epochgate ingest: "}.get(level, "")
    print(f"{prefix}{line}", file=sys.stderr, flush=True)


def _chaos(text: str) -> IngestChaos:
    made: IngestChaos = importlib.import_module("epochgate.chaos.of_ingest").IngestChaos(text)
    return made


def _obeying(
    handles: Sequence[IngestHandle], interrupts: Interrupts, arguments: argparse.Namespace
) -> Callable[[], None]:
    obeyed = 0

    def obey() -> None:
        nonlocal obeyed
        if interrupts.count > obeyed:
            obeyed = interrupts.count
            if obeyed == 1:
                _say("stopping after a last checkpoint; Ctrl-C again leaves at once", arguments)
            for handle in handles:
                if obeyed > 1:
                    handle.cancel("it was interrupted twice")
                elif not handle.is_over:
                    handle.stop()

    return obey
