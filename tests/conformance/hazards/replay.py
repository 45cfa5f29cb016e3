"""Replays a hazard: a schedule of commands, what Flink's holder prints, and what ours prints.

    python -m tests.conformance.hazards.replay FILE                  both, one beside the other
    python -m tests.conformance.hazards.replay FILE --cluster        a whole Flink led into it
    python -m tests.conformance.hazards.replay FILE -- COMMAND ...   any program, asked as ours

A file is prose and blocks. A block is command lines, a line `----`, and the expected output, up to
the next empty line. A command with `Flink:` or `epochgate:` before it is for that side alone, and
so is output below `---- Flink` or `---- epochgate`. Of a line that begins with EXC or GLOBAL, only
what stands before its first colon counts. A block that begins with `cluster` names a program of the
oracle; its output holds lines that have to come in that order, among others, and then lines of
Flink's log, which may come anywhere.

Decides what counts as the same output, nothing of the protocol. Runs each side as a child process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochgate.errors import EpochgateError, UsageError
from tests.conformance.oracle.cluster import cluster_lines
from tests.conformance.oracle.oracle import command as oracle_command

FLINK, OURS = "Flink", "epochgate"
SIDES = (FLINK, OURS)
DASHES = "----"
CLUSTER, LOG = "cluster ", "log "
SHELL = (sys.executable, "-m", "tests.conformance.shell")
REPLAY_TIMEOUT_S = 60


class HazardUnreadable(UsageError):
    """A hazard file, or what a program answered to it, does not have the form it must have."""


@dataclass(frozen=True)
class Block:
    """Commands of one side and the lines that have to come out of them."""

    commands: tuple[str, ...]
    expected: tuple[str, ...]


def blocks(text: str, side: str) -> list[Block]:
    """One side's blocks, without those for a cluster."""
    found = (_block(lines, side) for lines in _paragraphs(text))
    return [block for block in found if not block.commands[:1] or not _is_cluster(block)]


def cluster_block(text: str) -> Block | None:
    """The block for a whole Flink, if there is one; its one command is the program's name."""
    for lines in _paragraphs(text):
        if (block := _block(lines, FLINK)).commands and _is_cluster(block):
            return Block((block.commands[0].removeprefix(CLUSTER),), block.expected)
    return None


def _is_cluster(block: Block) -> bool:
    return block.commands[0].startswith(CLUSTER)


def _paragraphs(text: str) -> Iterator[list[str]]:
    for paragraph in text.strip("\n").split("\n\n"):
        lines = paragraph.split("\n")
        if any(line.startswith(DASHES) for line in lines):
            yield lines


def _block(lines: Sequence[str], side: str) -> Block:
    commands: list[str] = []
    outputs: dict[str, list[str]] = {}
    output: list[str] | None = None
    for line in lines:
        if line.startswith(DASHES):
            output = outputs.setdefault(line.removeprefix(DASHES).strip(), [])
        elif output is not None:
            output.append(line)
        else:
            commands.append(line)
    if unknown := outputs.keys() - {"", *SIDES}:
        raise HazardUnreadable(
            f"{sorted(unknown)} is no side: after {DASHES} stands one of {SIDES}"
        )
    mine = []
    for command in commands:
        prefix, colon, rest = command.partition(": ")
        if not colon:
            mine.append(command)
        elif prefix == side:
            mine.append(rest)
    return Block(tuple(mine), tuple(outputs.get(side, outputs.get("", []))))


def same(line: str) -> str:
    """Return what of a line of output counts."""
    return line.partition(":")[0] if line.startswith(("EXC", "GLOBAL")) else line


def answers(program: Sequence[str], commands: Sequence[str]) -> list[list[str]]:
    """Each command's lines of output from a program that speaks the protocol.

    Raises HazardUnreadable if it does not answer each command, with what it said instead.
    """
    done = subprocess.run(
        program,
        input="".join(f"{command}\n" for command in commands),
        capture_output=True,
        text=True,
        timeout=REPLAY_TIMEOUT_S,
        check=False,
    )
    found: list[list[str]] = [[]]
    for line in done.stdout.splitlines():
        if line == ".":
            found.append([])
        else:
            found[-1].append(line)
    rest = found.pop()
    if len(found) != len(commands) or rest:
        raise HazardUnreadable(
            f"{program[0]} answered {len(found)} of {len(commands)} commands, each of which wants "
            f"its lines and then a line '.'; it ended with code {done.returncode}:\n"
            f"{done.stderr[-2000:]}"
        )
    return found


def replayed(programs: Sequence[str], hazards: Sequence[str], side: str) -> list[list[Block]]:
    """For each text, one side's blocks as they really come, by one run of the program."""
    wanted = [blocks(text, side) for text in hazards]
    commands = [c for blocks_ in wanted for block in blocks_ for c in block.commands]
    coming = iter(answers(programs, commands))
    return [
        [
            Block(
                block.commands, tuple(same(line) for _ in block.commands for line in next(coming))
            )
            for block in blocks_
        ]
        for blocks_ in wanted
    ]


def missing_of(expected: Sequence[str], printed: Sequence[str]) -> list[str]:
    """The first expected line that is not printed behind those before it, with all after it.

    Lines of a log are missing if they are printed nowhere.
    """
    remaining = [line for line in expected if not line.startswith(LOG)]
    for line in printed:
        if remaining and line == remaining[0]:
            remaining.pop(0)
    logged = [line for line in expected if line.startswith(LOG)]
    return [*remaining, *(line for line in logged if line not in printed)]


def conversation(program: Sequence[str], text: str, side: str) -> list[str]:
    """Commands, and indented below each what the program answers."""
    commands = [command for block in blocks(text, side) for command in block.commands]
    lines: list[str] = []
    for command, answer in zip(commands, answers(program, commands), strict=True):
        lines += [command, *(f"    {line}" for line in answer)]
    return lines


def main(arguments: Sequence[str]) -> int:
    """Print a hazard's conversation, as the module's docstring says; the exit code.

    Raises UsageError and FlinkUnavailable for what is missing or unreadable.
    """
    mine, program = list(arguments), []
    if "--" in mine:
        at = mine.index("--")
        mine, program = mine[:at], mine[at + 1 :]
    parser = argparse.ArgumentParser(
        prog="replay", description="Replay a hazard of Flink's holder."
    )
    parser.add_argument("file", type=Path, help="a file beside this program")
    parser.add_argument("--cluster", action="store_true", help="lead a whole Flink into it")
    chosen = parser.parse_args(mine)
    text = chosen.file.read_text(encoding="utf-8")
    if not chosen.cluster and not blocks(text, OURS):
        raise HazardUnreadable(
            f"{chosen.file.name} has no commands for the holder, which takes no part in it: "
            f"--cluster leads a whole Flink into it"
        )
    if chosen.cluster:
        block = cluster_block(text)
        if block is None:
            raise HazardUnreadable(f"{chosen.file.name} has no block that begins with {CLUSTER!r}")
        shown = {"a whole Flink 2.3.0": cluster_lines(block.commands[0])}
    elif program:
        shown = {program[0]: conversation(program, text, OURS)}
    else:
        shown = {
            "Flink 2.3.0": conversation(oracle_command(), text, FLINK),
            OURS: conversation(SHELL, text, OURS),
        }
    for title, lines in shown.items():
        sys.stdout.write("\n".join([title, "-" * len(title), *lines, ""]) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except EpochgateError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(problem.exit_code)
