"""`epochgate validate`: whether the machines allow what a job's traces say that they did."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from epochgate.errors import UsageError
from epochgate.exit_codes import codes_of

if TYPE_CHECKING:
    from epochgate.runtime.tracing.validation import Validation, Verdict

HELP = "check traces of jobs against the state machines"
DESCRIPTION = """\
Replay traces on the state machines of this epochgate, the same rows that run
jobs, and check that each transition was possible and had the recorded effects.
Then compare the traces of one run with each other: each message that one side
received must have been sent by the other side. For a trace that is refused, print
its first wrong line with the event, the state of the machine, its rows and the
guards that failed."""

EPILOG = f"""\
examples:
  epochgate ingest in out --journal traces     writes traces of driver and tasks
  epochgate validate traces                    checks all of them
  epochgate validate traces --json             one JSON object, for programs
  epochgate validate traces --master local[4]  on Spark, for many

A killed process leaves a trace without its last line, or with a torn one. Such a trace is
accepted with a remark; --whole refuses it.
{codes_of("validate")}"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add(
        "paths",
        nargs="+",
        metavar="TRACE",
        help="files, or directories with all that is below them",
    )
    add("--json", action="store_true", help="print one JSON object instead of text")
    add("--quiet", action="store_true", help="print refused traces only")
    add(
        "--master",
        metavar="MASTER",
        help="check on Spark, such as local[4] or spark://host:7077; the traces of a run are "
        "then not compared with each other",
    )
    add(
        "--pytest",
        type=Path,
        metavar="FILE",
        help="write the last events of the first refused trace, or else of the first trace, as a "
        "test that replays them",
    )
    add("--whole", action="store_true", help="refuse a trace without its last line")


def run(arguments: argparse.Namespace) -> int:
    """Check them; 1 when one is refused."""
    with ExitStack() as stack:
        check = _check(arguments, stack)
        began_s = time.perf_counter()
        validation = check(arguments.paths, is_whole=arguments.whole)
        elapsed_s = time.perf_counter() - began_s
    if arguments.json:
        print(json.dumps({**validation.to_json(), "elapsed_s": round(elapsed_s, 3)}))
    else:
        print("\n".join(told(validation, elapsed_s, is_quiet=arguments.quiet)))
    if arguments.pytest is not None:
        _write_test(validation, arguments.pytest)
    return 0 if validation.is_accepted() else 1


def _write_test(validation: Validation, path: Path) -> None:
    from epochgate.runtime.tracing.regression import pytest_module

    verdicts = sorted(validation.verdicts, key=lambda verdict: verdict.is_accepted())
    try:
        path.write_text(pytest_module(verdicts[0].files), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path} (--pytest): {error.strerror}") from error


def _check(arguments: argparse.Namespace, stack: ExitStack) -> Callable[..., Validation]:
    """Return what checks: this process, or Spark, whose session ends with the stack."""
    from epochgate.runtime.tracing.validation import validated

    if arguments.master is None:
        return validated
    from epochgate.commands.ingest import require_packages

    require_packages()
    from epochgate.spark.session import local_master, local_session
    from epochgate.spark.validation import validated_on_spark

    spark = stack.enter_context(local_session(local_master(arguments.master)))
    return partial(validated_on_spark, spark)


def told(validation: Validation, elapsed_s: float, *, is_quiet: bool = False) -> Iterator[str]:
    """The text, line by line."""
    shown = [one for one in validation.verdicts if not (is_quiet and one.is_accepted())]
    for verdict in shown:
        yield from told_verdict(verdict)
    refused = sum(not verdict.is_accepted() for verdict in validation.verdicts)
    count = len(validation.verdicts)
    joined = ""
    if validation.joined:
        tasks = "1 task" if validation.joined == 1 else f"{validation.joined} tasks"
        joined = f"; {validation.messages:,} messages between driver and {tasks} agree"
    rate = validation.events / max(elapsed_s, 1e-9)
    yield (
        f"{'FAIL' if refused else 'PASS'}: {count - refused} of {count} traces accepted, "
        f"{validation.events:,} events in {elapsed_s:.1f} s ({rate:,.0f}/s){joined}"
    )


def told_verdict(verdict: Verdict) -> Iterator[str]:
    """The verdict on one trace."""
    count = len(verdict.files)
    segments = "" if count == 1 else f" in {count} segments"
    who = f"{verdict.role} of {verdict.job_id}, " if verdict.role else ""
    if verdict.is_accepted():
        note = f"; {verdict.note}" if verdict.note else ""
        yield f"{verdict.name}: {who}{verdict.events:,} events{segments}{note}"
        return
    refusal = verdict.refusal
    assert refusal is not None, "it is not accepted"
    event = "" if refusal.number is None else f" event {refusal.number}:"
    yield f"{verdict.path}:{verdict.line}:{event} {refusal.text} [{refusal.kind}]"
    for detail in refusal.details:
        yield f"    {detail}"
    yield f"    {who}{verdict.events:,} events before were accepted"
