"""`epochgate ingest`: files into Parquet or a table, each row exactly once, whatever is killed."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from epochgate.commands.configuration import as_toml, expanded
from epochgate.commands.ingest_flags import PAGES, declare as declare
from epochgate.commands.ingest_result import as_json, summarize
from epochgate.commands.reading import reading_from
from epochgate.errors import UsageError
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.chaos.of_ingest import IngestChaos
    from epochgate.commands.watching import Interrupts
    from epochgate.spark.ingest.options import IngestOptions
    from epochgate.spark.ingest.plan import IngestPlan
    from epochgate.spark.ingest.run import IngestHandle, IngestResult

LOGGER = logging.getLogger("epochgate.ingest")
NEEDED = ("pyspark", "pyarrow", "psutil", "pandas")

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
    arguments.source = arguments.source_named = arguments.source or arguments.source_named
    arguments.target = arguments.target_named = arguments.target or arguments.target_named
    if arguments.print_config:
        print(as_toml(arguments, _parser()), end="")
        return 0
    if not (arguments.source and arguments.target):
        raise UsageError("SOURCE and TARGET are needed, here or in the file of --config")
    with ExitStack() as stack:
        if arguments.log_format == "json":
            from epochgate.commands.watching import json_lines, logging_to

            handler = json_lines(is_quiet=arguments.quiet)
            stack.enter_context(logging_to(handler, arguments.log_level, usual=logging.INFO))
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    require_packages()
    options = options_from(arguments)
    chaos = None if arguments.chaos is None else _chaos(arguments.chaos)
    from epochgate.commands.progress import LogLines, Progress
    from epochgate.commands.watching import Interrupts, logging_to, say_on_stderr, watch
    from epochgate.spark.ingest.plan import plan_ingest, require_stores
    from epochgate.spark.ingest.run import start_plan
    from epochgate.spark.session import local_master, local_session

    master = local_master(arguments.master or f"local[{options.parallelism}]")
    with ExitStack() as stack:
        interrupts = stack.enter_context(Interrupts())
        require_stores(options)
        plan = plan_ingest(options)
        stack.callback(plan.release)
        if chaos is not None:
            chaos.hold(plan)
        _announce(plan, master, arguments)
        spark = stack.enter_context(local_session(master, log_level=arguments.log_level))
        log = LOGGER.info if arguments.log_format == "json" else None
        progress = Progress(is_followed=options.follow, is_quiet=arguments.quiet, log=log)
        if log is None:
            stack.enter_context(logging_to(LogLines(progress), arguments.log_level))
        handle = stack.enter_context(start_plan(spark, plan, listeners=[progress]))
        for page in PAGES:
            if (url := getattr(handle.job, f"{page}_url")) is not None:
                progress.note(f"{page}: {url}", is_needed=True)
        interrupts.begin()
        with contextlib.nullcontext() if chaos is None else chaos.striking(handle, progress):
            # A live display is for people alone.
            say = say_on_stderr if arguments.quiet or arguments.log_format == "json" else None
            watch(handle, progress, each=_obeying(handle, interrupts, arguments), say=say)
            result = handle.wait()
    if arguments.json:
        print(json.dumps(as_json(result, plan, progress, chaos), default=str))
    elif not arguments.quiet:
        summarize(result, plan, progress, chaos)
    if not result.is_success():
        _say(f"the job has {result.state}: {result.reason}", arguments, logging.ERROR)
    return exit_code(result, arguments.exit_code_left_out, is_interrupted=interrupts.count > 0)


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
        new_only=arguments.new_only,
        modified_after=arguments.modified_after,
        modified_before=arguments.modified_before,
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
        journal=arguments.journal,
        from_savepoint=arguments.from_savepoint,
        allow_dropped_state=tuple(arguments.allow_dropped_state),
    )


def _names(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(name.strip() for name in text.split(","))


def _announce(plan: IngestPlan, master: str, arguments: argparse.Namespace) -> None:
    for warning in plan.warnings:
        _say(warning, arguments, logging.WARNING)
    if arguments.quiet:
        return
    whence = "starting" if plan.resumes_from is None else f"from checkpoint {plan.resumes_from}"
    _say(
        f"{whence}: {plan.files_found} files known in {plan.options.source_path}, "
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


def _obeying(handle: IngestHandle, interrupts: Interrupts, arguments: argparse.Namespace) -> Any:
    obeyed = 0

    def obey() -> None:
        nonlocal obeyed
        if interrupts.count > obeyed:
            obeyed = interrupts.count
            if obeyed == 1:
                _say("stopping after a last checkpoint; Ctrl-C again leaves at once", arguments)
                handle.stop()
            else:
                handle.cancel("it was interrupted twice")

    return obey
