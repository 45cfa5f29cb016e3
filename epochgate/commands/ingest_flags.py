"""The flags of `epochgate ingest`, but those on how files are read."""

from __future__ import annotations

import argparse

from epochgate.commands.configuration import add_configuration
from epochgate.commands.network import add_network
from epochgate.commands.reading import add_reading

LEFT_OUT = 3
PAGES = {"metrics": "metrics for Prometheus at /metrics", "ui": "the pages of `epochgate ui`"}


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add(
        "source",
        nargs="?",
        metavar="SOURCE",
        help="a directory, a file, a pattern in quotes, or a URL",
    )
    add(
        "target",
        nargs="?",
        metavar="TARGET",
        help="the directory, URL or table to write; see below",
    )
    add("--source", dest="source_named", help=argparse.SUPPRESS)
    add("--target", dest="target_named", help=argparse.SUPPRESS)
    add_configuration(parser)
    add("--parallelism", type=int, default=4, metavar="N", help="subtasks (default: 4)")
    add(
        "--checkpoint-every",
        default="2s",
        metavar="TIME",
        help="such as 500ms, 2s or 1m; rows become visible this often (default: 2s)",
    )
    add(
        "--checkpoint-dir",
        metavar="DIR",
        help="where checkpoints are kept (default: in a hidden directory beside TARGET; a database "
        "or catalog has no such place)",
    )
    add(
        "--from-savepoint",
        metavar="PATH",
        help="start a new --checkpoint-dir from a savepoint of this SOURCE and TARGET, made by "
        "`epochgate savepoint`",
    )
    add(
        "--allow-dropped-state",
        action="append",
        default=[],
        metavar="ID",
        help="drop the state of this operator, which the job no longer has; may be repeated",
    )
    add(
        "--master",
        metavar="MASTER",
        help="Spark's master, such as local[4], local-cluster[2,2,1024] or spark://host:7077 "
        "(default: local with as many cores as subtasks)",
    )
    add(
        "--transform",
        metavar="MODULE:FUNCTION",
        help="function that is applied to each batch of rows",
    )
    add(
        "--transform-takes",
        choices=("arrow", "table", "pandas", "polars"),
        help="type of the batch: a pyarrow.RecordBatch, a pyarrow.Table, or a DataFrame "
        "(default: by the annotation of its first parameter, else a RecordBatch)",
    )
    add("--follow", action="store_true", help="look for new files until Ctrl-C")
    _add_how_it_runs(parser)
    _add_what_is_written(parser)
    _add_which_files(parser)
    _add_what_may_fail(parser)
    _add_what_is_said(parser)


def _add_how_it_runs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_network(parser)
    add("--rows-per-second", type=float, metavar="N", help="read no faster than this")
    add_reading(parser)


def _add_what_is_written(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--partition-by",
        metavar="A,B,...",
        help="partition files, or a new Delta or Iceberg table, by the values of these columns; "
        "Iceberg also by bucket(16,id), truncate(10,name), year(at), month(at), day(at), hour(at)",
    )
    add(
        "--file-size",
        default="256MiB",
        metavar="SIZE",
        help="end a file of the target at this size, such as 64MB; each checkpoint also ends its "
        "files (default: 256MiB)",
    )
    add(
        "--commit-in",
        choices=("driver", "tasks"),
        default="driver",
        help="where files and rows of a checkpoint are looked at and moved: on the driver, or "
        "in the tasks, in parallel, before the driver makes them visible (default: driver)",
    )
    add(
        "--merge-on",
        metavar="A,B,...",
        help="replace rows of the target that have the same values in these columns, and add the "
        "others; into Delta, Iceberg and PostgreSQL",
    )
    add(
        "--merge-order",
        metavar="A,B,...",
        help="of rows with the same key, the greatest by these columns counts, also beside the "
        "one in the target (default: the one of the newest checkpoint)",
    )
    add(
        "--merge-delete",
        default="",
        metavar="CONDITION",
        help="rows that delete the one of their key, such as \"op = 'D'\"",
    )


def _add_which_files(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--on-changed-file",
        choices=("fail", "skip", "new"),
        help="if the content of a file has changed since it was taken: end the job, or skip the "
        "new content and record that, or take all of it as a new file (default: as "
        "--on-bad-file); a file with unchanged content is not taken again",
    )
    add(
        "--settle-s",
        type=float,
        metavar="SECONDS",
        help="take a file after it has been unmodified for this time, or ten times as long if "
        "its last line has no line end (default: 5 with --follow, else 0)",
    )
    add(
        "--notify",
        metavar="QUEUE",
        help="with --follow, hear of new files between two listings: sqs:QUEUE_URL, a queue of "
        "S3's events (epochgate[sqs]); inotify, for a local directory (epochgate[watch]); names, "
        "for objects whose names grow",
    )
    add(
        "--list-every",
        metavar="TIME",
        help="with --follow, from one listing of all files to the next (default: 1s, and 5m with "
        "--notify)",
    )
    add(
        "--new-only",
        action="store_true",
        help="pass over the files that are there when the job starts for the first time",
    )
    add(
        "--modified-after",
        metavar="TIME",
        help="take files that were modified after this time, such as 2026-11-29T12:00:00Z; UTC "
        "without a zone",
    )
    add("--modified-before", metavar="TIME", help="take those that were modified before it")
    add(
        "--after-commit",
        metavar="delete|move:DIR",
        help="delete files of SOURCE whose rows are committed, or move them into a directory, or "
        "a URL of the same bucket (default: they stay)",
    )
    add(
        "--after-commit-age",
        default="0s",
        metavar="TIME",
        help="how long after that, such as 7d (default: 0s)",
    )
    add(
        "--forget-after",
        default="30d",
        metavar="TIME",
        help="forget a file that has been absent from SOURCE for this time; if it comes back "
        "later, it is taken again (default: 30d)",
    )


def _add_what_may_fail(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--restart",
        metavar="STRATEGY",
        help="how failures are retried: none, fixed:ATTEMPTS,DELAY, "
        "exponential[:INITIAL[,MAX[,MULTIPLIER[,RESET_AFTER[,JITTER]]]]] or "
        "rate:FAILURES,INTERVAL,DELAY (default: rate:20,1m,200ms)",
    )
    add(
        "--heartbeat-timeout",
        default="10s",
        metavar="TIME",
        help="replace a worker that is silent for this time (default: 10s)",
    )
    add(
        "--store-timeout",
        default="10m",
        metavar="TIME",
        help="fail the job if a checkpoint is not stored within this time; the next start goes on "
        "(default: 10m)",
    )
    add(
        "--commit-timeout",
        default="1h",
        metavar="TIME",
        help="fail the job if a commit has not ended within this time; the next start commits "
        "again (default: 1h)",
    )
    add(
        "--chaos",
        metavar="KILLS",
        help="kill (-9) this many of the job's own workers and executors while it runs "
        "(needs epochgate-proving)",
    )


def _add_what_is_said(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--exit-code-left-out",
        type=int,
        choices=range(256),
        default=LEFT_OUT,
        metavar="N",
        help="the exit code of a run that finished and has left out rows or files, as it was asked "
        f"to (default: {LEFT_OUT}); 0 where a scheduler takes any other for a failure",
    )
    add(
        "--log-level",
        choices=("error", "warn", "info"),
        default="error",
        help="what Spark and epochgate log on stderr beside the progress (default: error)",
    )
    add(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="json: instead of the progress, each event of the job and each message as one JSON "
        "object on stderr (default: text)",
    )
    for page, shown in PAGES.items():
        add(
            f"--{page}-port",
            type=int,
            metavar="PORT",
            help=f"serve {shown} while the job runs; 0 for a free port, which is printed",
        )
        add(
            f"--{page}-host",
            metavar="ADDRESS",
            help="serve them, without a password, on this address of the driver's machine, 0.0.0.0 "
            "for all of its own (default: 127.0.0.1)",
        )
    add(
        "--otlp",
        metavar="URL",
        help="send the metrics to a collector of OpenTelemetry, such as http://localhost:4318, too",
    )
    add(
        "--journal",
        metavar="DIR",
        help="record the transitions of driver and tasks there, for `epochgate validate`",
    )
    add("--quiet", action="store_true", help="print only warnings and errors")
    add(
        "--json",
        action="store_true",
        help="print the result as one JSON object on stdout; everything else goes to stderr",
    )
