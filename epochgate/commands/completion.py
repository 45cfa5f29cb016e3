"""`epochgate completion`: a script by which a shell completes commands, options and paths."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from epochgate.errors import UsageError
from epochgate.exit_codes import codes_of

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
PATHS = ("DIR", "FILE", "PATH", "SOURCE", "TARGET")
"""What stands for a path in the help of a command, and in the plural or with others after it."""

HELP = "print a script by which a shell completes this command"
DESCRIPTION = """\
Print the script by which a shell completes the commands, options and choices of
epochgate as they are installed, and paths. Make it again after an upgrade."""

EPILOG = f"""\
examples:
  eval "$(epochgate completion bash)"        for this shell
  epochgate completion bash > ~/.local/share/bash-completion/completions/epochgate
  epochgate completion zsh > ~/.zfunc/_epochgate    with `fpath+=~/.zfunc` before compinit

{codes_of("completion")}"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("shell", choices=SHELLS, help="the shell that is to read it")


def run(arguments: argparse.Namespace) -> int:
    """Print the script. Raises UsageError for a shell that shtab does not know."""
    import shtab

    from epochgate import cli

    if arguments.shell not in shtab.SUPPORTED_SHELLS:
        raise UsageError(
            f"shtab {shtab.__version__} writes no script for {arguments.shell}, only for "
            f"{', '.join(shtab.SUPPORTED_SHELLS)}; upgrade it: `pip install -U shtab`"
        )
    top = cli.parser()
    for action in _actions(top):
        # shtab reads the attribute, and argparse does not.
        if _is_path(action):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(top, arguments.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
        else:
            yield action


def _is_path(action: argparse.Action) -> bool:
    shown = action.metavar
    return action.choices is None and isinstance(shown, str) and shown in PATHS
