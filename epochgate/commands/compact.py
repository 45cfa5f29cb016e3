"""`epochgate compact`: the small files of a target become few, also while its job runs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from epochgate.commands.status import aligned
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.spark.compaction import CompactionResult

PARTITIONS_SHOWN = 20

HELP = "merge the small files of a target, also while its job runs"
DESCRIPTION = """\
Merge the small files of TARGET, which `epochgate ingest` has written, into larger
ones, also while the job runs and while others read. The merged files replace the
others in one step: whatever is killed, each row is visible once. The command may
be repeated."""

EPILOG = f"""\
examples:
  epochgate compact table                  merge what is smaller than 96 MB
  epochgate compact table --dry-run        say what would be merged
  epochgate compact table --keep-checkpoints 0
                                           the newest checkpoints too, once the job
                                           has ended

docs/compacting.md describes what a reader sees meanwhile.
{codes_of("compact")}"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add("target", metavar="TARGET", help="the TARGET of `epochgate ingest`")
    add(
        "--file-size",
        default="128MB",
        metavar="SIZE",
        help="size of merged files; files below three quarters of it are merged (default: 128MB)",
    )
    add(
        "--min-files",
        type=int,
        default=2,
        metavar="N",
        help="skip partitions with fewer small files (default: 2)",
    )
    add(
        "--keep-checkpoints",
        type=int,
        default=3,
        metavar="N",
        help="skip the N newest checkpoints, so that the job can restore them (default: 3, as "
        "many as it retains)",
    )
    add(
        "--keep-for",
        metavar="TIME",
        help="in an object store: how long replaced objects are kept for reads that began "
        "earlier, such as 2h or 7d; a later compaction removes them (default: 1d)",
    )
    add(
        "--commit-timeout",
        default="1h",
        metavar="TIME",
        help="limit of each step except merging, such as 10m (default: 1h)",
    )
    add("--dry-run", action="store_true", help="print what would be merged, and change nothing")
    add("--json", action="store_true", help="print one JSON object instead of text")


def run(arguments: argparse.Namespace) -> int:
    """Compact, and say what has changed."""
    from epochgate.runtime.durations import parse_duration_s
    from epochgate.runtime.sizes import parse_size_bytes
    from epochgate.spark.compaction import compact

    result = compact(
        arguments.target,
        file_bytes=parse_size_bytes(arguments.file_size),
        min_files=arguments.min_files,
        keep_checkpoints=arguments.keep_checkpoints,
        keep_for_s=None if arguments.keep_for is None else parse_duration_s(arguments.keep_for),
        is_dry_run=arguments.dry_run,
        commit_timeout_s=parse_duration_s(arguments.commit_timeout),
    )
    print(json.dumps(result.to_json()) if arguments.json else "\n".join(told(result)))
    return 0


def told(result: CompactionResult) -> Iterator[str]:
    """The text, line by line."""
    from epochgate.runtime.api.reports import size

    if not result.partitions:
        yield (
            f"{result.target}: nothing to merge; {result.files_before:,} files, "
            f"{size(result.bytes_before)}"
        )
    else:
        would = "would become about" if result.is_dry_run else "became"
        yield (
            f"{result.target}: {result.files_before:,} files {would} {result.files_after:,}; "
            f"{result.rows:,} rows in these partitions:"
        )
        about = "~" if result.is_dry_run else ""
        shown = sorted(result.partitions, key=lambda one: one.files_after - one.files_before)
        yield from aligned(
            [
                ("partition", "files", "", "bytes", ""),
                *(
                    (
                        one.partition or "(all)",
                        f"{one.files_before:,}",
                        f"-> {about}{one.files_after:,}",
                        size(one.bytes_before),
                        f"-> {about}{size(one.bytes_after)}",
                    )
                    for one in shown[:PARTITIONS_SHOWN]
                ),
            ]
        )
        if len(shown) > PARTITIONS_SHOWN:
            yield f"and {len(shown) - PARTITIONS_SHOWN:,} partitions more (--json has all)"
    if result.kept_checkpoints:
        kept = (
            "checkpoint stays as it is"
            if result.kept_checkpoints == 1
            else f"{result.kept_checkpoints} checkpoints stay as they are"
        )
        yield f"the newest {kept} (--keep-checkpoints)"
    if result.retired:
        yield f"{result.retired:,} replaced objects stay for those who read (--keep-for)"
