"""The options of `epochgate check`, and which of them go together."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from epochgate.errors import UsageError

PARTIAL_ORDER = (
    "do not take independent steps in all orders; verdicts and rows taken stay, counterexamples "
    "need not be the shortest; refused for claims about whole runs"
)
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def declare_constants(parser: argparse.ArgumentParser) -> None:
    """Declare `--set`, for a command that is given a system."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=constant,
        metavar="NAME=NUMBER",
        help="give a constant of the system another value (repeat for several)",
    )


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add = parser.add_argument
    add(
        "systems",
        nargs="*",
        metavar="SYSTEM",
        help="a name that --list shows, or module:Class; all of epochgate's when none is given",
    )
    declare_constants(parser)
    add(
        "--engine",
        metavar="NAME",
        help="llvm, python or interpreted (default: the fastest that is installed)",
    )
    add("--workers", type=int, default=1, metavar="N", help="threads, for llvm (default: 1)")
    add(
        "--optimise-from",
        type=int,
        metavar="STATES",
        help="have optimised machine code made beside a search that reaches this many states "
        "(default: 262144); 0 makes it first",
    )
    add(
        "--symmetry",
        nargs="?",
        const=True,
        default=False,
        metavar="INDEX",
        help="treat the instances of an index set as interchangeable; refused where they are not",
    )
    add("--partial-order", action="store_true", help=PARTIAL_ORDER)
    add("--depth-first", action="store_true", help="go deep first; counterexamples are not short")
    add("--max-states", type=int, metavar="N", help="stop after about N states")
    add("--max-depth", type=int, metavar="N", help="look at most N steps far")
    add("--max-memory", type=memory, metavar="SIZE", help="for instance 800M or 4G")
    add("--max-seconds", type=float, metavar="S", help="stop after S seconds of search or walks")
    declare_places(parser)
    declare_inductive(parser)
    add(
        "--simulate",
        type=int,
        metavar="STEPS",
        help="take this many random steps instead, in walks",
    )
    add("--seed", type=int, default=1, metavar="N", help="of --simulate (default: 1)")
    declare_files(parser)
    add(
        "--list",
        action="store_true",
        help="list the systems, or the constants of those that are named, and stop",
    )


def declare_places(parser: argparse.ArgumentParser) -> None:
    """Declare where a search may be kept."""
    add = parser.add_argument
    add(
        "--resume",
        type=Path,
        metavar="FILE",
        help="write the search to a file, and go on from it; with --master, a directory that all "
        "hosts see",
    )
    add(
        "--spill",
        type=Path,
        metavar="DIR",
        help="keep the states in files there instead of in memory, and go on from them",
    )
    add(
        "--master",
        metavar="MASTER",
        help="search in the tasks of a Spark job: spark://host:7077, yarn, or local[2]",
    )


def declare_inductive(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of inductive checks."""
    add = parser.add_argument
    add(
        "--inductive",
        type=names,
        metavar="CLAIM",
        help="instead, show from every typed state, reachable or not, that each step preserves "
        "this `always`, or method; several are separated by commas, `all` is every `always`",
    )
    add(
        "--with",
        type=names,
        default=[],
        dest="lemmas",
        metavar="CLAIM,CLAIM",
        help="of --inductive: claims that it may rest on; they are shown with it",
    )
    add(
        "--depth",
        type=int,
        metavar="K",
        help="of --inductive: assume the claims in K states in a row (default: 1)",
    )
    add(
        "--without-faults",
        action="store_true",
        help="of --inductive: a step that fails is a counterexample too, unless it is over a bound",
    )


def declare_files(parser: argparse.ArgumentParser) -> None:
    """Declare the files that may be written."""
    add = parser.add_argument
    add("--json", type=Path, metavar="FILE", help="write the results as JSON; - is stdout")
    add("--junit", type=Path, metavar="FILE", help="write JUnit XML, a test for each claim")
    add("--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0, at the lines of the claims")
    add("--html", type=Path, metavar="FILE", help="write a page to step through a counterexample")
    add(
        "--mermaid",
        type=Path,
        metavar="FILE",
        help="write a sequence diagram; in Markdown, one for each system, to FILE.md",
    )
    add(
        "--pytest",
        type=Path,
        metavar="FILE",
        help="write a counterexample as a test: on the runtime, or on machines of your own",
    )


def constant(text: str) -> tuple[str, int]:
    """NAME=NUMBER; ArgumentTypeError for anything else."""
    name, _, number = text.partition("=")
    if not name.isidentifier() or not re.fullmatch(r"\d+", number):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER, such as N=3")
    return name, int(number)


def names(text: str) -> list[str]:
    """NAME,NAME; ArgumentTypeError for anything else."""
    found = text.split(",")
    if not all(name.isidentifier() for name in found):
        raise argparse.ArgumentTypeError(f"{text!r} names no claims, such as is_once,is_served")
    return found


def memory(text: str) -> int:
    """A number of bytes with an optional unit; ArgumentTypeError for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)i?B?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no size, such as 800M or 4G")
    return int(float(found[1]) * UNITS[found[2]])


def expect_of_one_kind(arguments: argparse.Namespace) -> None:
    """Refuse options of a search with --inductive or --simulate, and theirs without."""
    of_search = {
        "--symmetry": arguments.symmetry is not False,
        "--partial-order": arguments.partial_order,
        "--depth-first": arguments.depth_first,
        "--max-states": arguments.max_states is not None,
        "--max-depth": arguments.max_depth is not None,
        "--max-memory": arguments.max_memory is not None,
        "--optimise-from": arguments.optimise_from is not None,
        "--resume": arguments.resume is not None,
        "--spill": arguments.spill is not None,
        "--master": arguments.master is not None,
    }
    of_walks = {"--simulate": arguments.simulate is not None}
    of_proof = {
        "--with": bool(arguments.lemmas),
        "--depth": arguments.depth is not None,
        "--without-faults": arguments.without_faults,
    }
    if arguments.inductive is not None:
        of_engines = {
            "--engine": arguments.engine is not None,
            "--workers": arguments.workers != 1,
            "--pytest": arguments.pytest is not None,
        }
        told, refused = "--inductive", {**of_search, **of_walks, **of_engines}
    elif arguments.simulate is not None:
        told, refused = "--simulate", {**of_search, **of_proof}
    else:
        told, refused = "a search", of_proof
    if wrong := [name for name, is_given in refused.items() if is_given]:
        raise UsageError(f"{told} takes no {' and no '.join(wrong)}; leave it out")
