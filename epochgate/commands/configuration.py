"""A file of options: each flag of a command as a key of TOML, and the other way round.

Decides that what stands on the command line counts, where both say it. Keys are the names of the
flags without dashes before them, and of the arguments without a flag in lower case. Tables
`[[ingest]]` are several jobs of one command, with the keys above them where they say nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final

from epochgate.errors import UsageError

FLAG: Final = "--config"
PRINT: Final = "--print-config"
SEVERAL: Final = "ingest"
"""The name of the tables."""
ONE: Final = "--one-of-several"
"""The arguments of one job of several, as JSON: what a table and the command line come to."""
_LEFT_OUT: Final = ("help", "config", "print-config", "command", ONE[2:])
_OF_PROCESS: Final = (
    *("master", "log-level", "log-format", "quiet", "json", "exit-code-left-out", "chaos"),
    *("metrics-port", "metrics-host", "config", "print-config"),
)
"""The keys of the command, which no job of several has of its own."""


def add_configuration(parser: argparse.ArgumentParser) -> None:
    """Declare both flags."""
    parser.add_argument(
        FLAG,
        metavar="FILE",
        help="read options from this TOML file, each under the name of its flag: source, target, "
        "checkpoint-every = '5s', follow = true; what is given here as well counts instead",
    )
    parser.add_argument(
        PRINT, action="store_true", help="print all options as such a file, and do nothing else"
    )
    parser.add_argument(ONE, action="append", default=[], help=argparse.SUPPRESS)


def expanded(given: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """The arguments of a command, with those of the file that they name before them.

    Raises UsageError.
    """
    path = None
    named = [_named(one, parser) for one in given]
    for number, one in enumerate(given):
        if named[number] == FLAG:
            path = one.partition("=")[2] if "=" in one else "".join(given[number + 1 : number + 2])
    if not path:
        return list(given)
    values = _read(path)
    tables = values.pop(SEVERAL, [])
    own = _tokens_of(path, values, named, parser)
    if not tables:
        return [*own, *given]
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise UsageError(f"{FLAG} {path}: {SEVERAL} is no list of tables; write [[{SEVERAL}]]")
    several = []
    for number, table in enumerate(tables, 1):
        where = f"{path}, [[{SEVERAL}]] {number}"
        _require_of_one(where, table, values)
        whole = _tokens_of(where, {**values, **table}, named, parser)
        several.append(f"{ONE}={json.dumps([*whole, *given])}")
    return [*own, *given, *several]


def _require_of_one(path: str, table: dict[str, Any], values: dict[str, Any]) -> None:
    """Refuse what one job of several cannot have, and a job without source and target."""
    for key in table:
        if key.replace("_", "-") in _OF_PROCESS:
            raise UsageError(
                f"{FLAG} {path}: {key} is of the whole command; write it above the first "
                f"[[{SEVERAL}]]"
            )
    for key in ("source", "target"):
        if key not in table or key in values:
            raise UsageError(f"{FLAG} {path}: {key} is to be in each [[{SEVERAL}]], and only there")


def _tokens_of(
    path: str, values: dict[str, Any], named: Sequence[str], parser: argparse.ArgumentParser
) -> list[str]:
    """The arguments of the keys that the command line does not say. Raises UsageError."""
    flags = _flags(parser)
    found: list[str] = []
    for key, value in values.items():
        name = key.replace("_", "-")
        action = flags.get(name)
        if action is None:
            near = get_close_matches(name, flags, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(flags)}"
            raise UsageError(f"{FLAG} {path}: there is no option {key!r}; {meant}")
        flag = f"--{name}"
        if flag not in named:
            tokens = _tokens(path, flag, action, value)
            _parse(path, name, tokens, parser)
            found += tokens
    return found


def is_configuration(path: str) -> bool:
    """Return whether a path is that of a file of options."""
    return path.endswith(".toml") and os.path.isfile(path)


def jobs_in(path: str) -> dict[str, str]:
    """The names of the jobs in a file of options, and where to find their checkpoints. Raises
    UsageError.
    """
    values = _read(path)
    pairs, places = [], []
    for table in values.get(SEVERAL, [values]):
        one = {name.replace("_", "-"): value for name, value in {**values, **table}.items()}
        if "target" not in one:
            raise UsageError(f"{path}: there is no target in it")
        pairs.append((str(one.get("source")), str(one["target"])))
        places.append(str(one.get("checkpoint-dir", one["target"])))
    return dict(zip(names_of(pairs), places, strict=True))


def names_of(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """The names of jobs by their sources and targets: the target, which several may have.

    >>> names_of([("a", "x"), ("b", "y"), ("c", "y")])
    ['x', 'b into y', 'c into y']
    """
    targets = [target for _, target in pairs]
    return [
        target if targets.count(target) == 1 else f"{source} into {target}"
        for source, target in pairs
    ]


def _named(argument: str, parser: argparse.ArgumentParser) -> str:
    """The flag that an argument is, also where it is shortened to what begins no other."""
    name, flags = argument.partition("=")[0], parser._option_string_actions
    meant = [flag for flag in flags if name.startswith("--") and flag.startswith(name)]
    return meant[0] if name not in flags and len(meant) == 1 else name


def _parse(path: str, name: str, tokens: list[str], parser: argparse.ArgumentParser) -> None:
    """Refuse a value by the file and its key, instead of as an argument that was not given."""
    try:
        parser.parse_known_args(tokens)
    except argparse.ArgumentError as error:
        raise UsageError(f"{FLAG} {path}: {name}: {error.message}") from error


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{FLAG} {path}: {error}; give a file of TOML that can be read") from error


def _flags(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The flags by name. argparse tells them in no public way."""
    return {
        option.removeprefix("--"): action
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--") and option.removeprefix("--") not in _LEFT_OUT
    }


def _tokens(path: str, flag: str, action: argparse.Action, value: Any) -> list[str]:
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise UsageError(f"{FLAG} {path}: {flag[2:]} is {value!r}; write true or false")
        return [flag] if value else []
    if (isinstance(value, list) and isinstance(action.default, list)) or _appends(action):
        return [f"{flag}={one}" for one in (value if isinstance(value, list) else [value])]
    if isinstance(value, list):
        value = ",".join(map(str, value))
    if isinstance(value, bool | dict):
        raise UsageError(f"{FLAG} {path}: {flag[2:]} is {value!r}; write a text or a number")
    return [f"{flag}={value}"]


def _appends(action: argparse.Action) -> bool:
    return type(action).__name__ == "_AppendAction"


def as_toml(
    arguments: argparse.Namespace,
    several: Sequence[argparse.Namespace],
    parser: argparse.ArgumentParser,
) -> str:
    """All options that have a value, as the file that gives the same."""
    lines = list(_lines(arguments, parser))
    for one in several:
        lines += ["", f"[[{SEVERAL}]]", *_lines(one, parser, but=arguments)]
    return "".join(f"{line}\n" for line in lines)


def _lines(
    arguments: argparse.Namespace,
    parser: argparse.ArgumentParser,
    but: argparse.Namespace | None = None,
) -> Iterator[str]:
    """`but`: what counts where a line is left out."""
    for name, action in _flags(parser).items():
        value = getattr(arguments, action.dest, None)
        if but is not None and value == getattr(but, action.dest, None):
            continue
        if value is None or (action.help == argparse.SUPPRESS and value == action.default):
            continue
        # A text of JSON is one of TOML, and so are numbers, truths and lists.
        yield f"{name} = {json.dumps(value, ensure_ascii=False)}"
