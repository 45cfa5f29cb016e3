"""Counterexamples as a pytest file: each is a test that plays the schedule step by step.

A system that is made of the runtime's machines is played on the production runtime, with its own
variants of them; any other on its machines as they stand. The test fails while the claim breaks and
passes once it does not, so the file can be kept. It holds nothing but the schedule and what each
step did when it was found, for people; the system is imported from where it was declared.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from epochgate.errors import UsageError
from epochgate.fsm.checker.result import Counterexample, Result, TraceStep
from epochgate.fsm.closed import ClosedSystem
from epochgate.fsm.naming import unnamed
from epochgate.reports.places import relative
from epochgate.runtime.testing.playing import playable

LINE_MAX = 100
NAME_MAX = 80
Found = tuple[str, type[ClosedSystem], Result, Counterexample]

HEAD = '''\
"""{title}

Each test plays the steps that lead to a broken claim. It fails while the claim breaks, and passes
once the machines are mended: a step that is not possible any more is left out. A comment says what
the step did when this was found; only the steps count.
"""

from __future__ import annotations
'''


class SystemNotImportable(UsageError):
    """A test cannot name the class of the system that it is about."""


def pytest_module(
    results: Mapping[str, Result], systems: Mapping[str, type[ClosedSystem]], folder: Path
) -> str:
    """The text of a pytest file that will lie in `folder`: a test for each counterexample.

    Empty when there is none. Raises SystemNotImportable.
    """
    found: list[Found] = [
        (name, systems[name], result, result.counterexample)
        for name, result in results.items()
        if result.counterexample is not None
    ]
    if not found:
        return ""
    names = ", ".join(f"`epochgate check {_quoted(name)}`" for name, *_ in found)
    title = textwrap.fill(f"What {names} found, as tests.", 97, break_on_hyphens=False)
    aliases = dict(_aliases(found))
    parts = [HEAD.format(title=title), *_imports(found, aliases, folder)]
    parts += [_test(*each, aliases[each[1]]) for each in found]
    return "\n".join(parts)


def _aliases(found: list[Found]) -> Iterator[tuple[type[ClosedSystem], str]]:
    """A name for each class: its own, unless another class of that name came before."""
    taken: dict[str, type[ClosedSystem]] = {}
    for name, system, *_ in found:
        if "<read from" in system.__qualname__:
            raise SystemNotImportable(
                f"{name} was read from a machine of another library, and no test can import its "
                f"system; call `from_transitions(...).check()` in a test, or `fuzz`, which drives "
                f"real objects"
            )
        if "<" in system.__qualname__ or system.__module__ == "__main__":
            raise SystemNotImportable(
                f"{system.__module__}.{system.__qualname__} is declared where no test can import "
                f"it from; move it to the top level of a module"
            )
        alias = system.__name__
        while taken.setdefault(alias, system) is not system:
            alias += "_"
        yield system, alias


def _imports(
    found: list[Found], aliases: Mapping[type[ClosedSystem], str], folder: Path
) -> Iterator[str]:
    roots = dict.fromkeys(root for system in aliases if (root := _root(system, folder)))
    if roots:
        yield "import sys"
        yield "from pathlib import Path"
        yield ""
        for root in roots:
            yield f'sys.path.insert(0, str(Path(__file__).parent.joinpath("{root}").resolve()))'
        yield ""
    if any(playable(system) for _, system, *_ in found):
        yield "from epochgate.fsm.checker import schedule"
    if not all(playable(system) for _, system, *_ in found):
        yield "from epochgate.testing import play"
    for system, alias in aliases.items():
        own = system.__name__ if alias == system.__name__ else f"{system.__name__} as {alias}"
        yield f"from {system.__module__} import {own}"


def _root(system: type[ClosedSystem], folder: Path) -> str:
    """The folder to import the system's module from, as seen from `folder` if both lie in one;
    empty if it is installed.
    """
    module = sys.modules[system.__module__]
    file = Path(module.__file__ or "").resolve()
    depth = system.__module__.count(".") + (file.name == "__init__.py")
    installed = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
    is_ours = system.__module__.partition(".")[0] == "epochgate"
    if is_ours or installed & set(file.parents):
        return ""
    root, here = file.parents[depth], folder.resolve()
    is_near = len(set(root.parents) & {here, *here.parents}) > 1 or root in here.parents
    return Path(os.path.relpath(root, here)).as_posix() if is_near else root.as_posix()


def _test(
    name: str, system: type[ClosedSystem], result: Result, found: Counterexample, alias: str
) -> str:
    why = playable(system)
    how = (
        f"Played on the machines themselves: {why}." if why else "Played on the production runtime."
    )
    constants = ", ".join(f"{n}={value}" for n, value in result.constants.items())
    where = f"{relative(found.file, Path.cwd())}:{found.line}"
    lines = [
        "",
        "",
        f"def test_{_slug(f'{alias} {_claim(result, found)}')}() -> None:",
        f'    """{_quoted(found.message)}',
        "",
        *_wrapped(_quoted(f"Declared at {where}. {how}"), "    "),
        '    """',
        *_made(f"    system = {alias}({constants})"),
        f"    {'schedule.play' if why else 'play'}(",
        "        system,",
        *(_step(step, "        ") for step in found.steps),
    ]
    if found.cycle is not None:
        repeats = "can stay so" if found.cycle == len(found.steps) else "can repeat"
        lines += [
            f"        cycle={found.cycle},  # after these, it {repeats} for ever",
            f'        promise="{found.property}",',
        ]
    if found.begins:
        lines += ["        begins={", *_begins(found), "        },"]
    return "\n".join([*lines, "    )", ""])


def _begins(found: Counterexample) -> Iterator[str]:
    """The values that fields begin with, where the check chose them: one line each."""
    for place, value in found.begins.items():
        shown = f'"{value}"' if isinstance(value, str) else repr(unnamed(value))
        yield f'            "{place}": {shown},'


def _claim(result: Result, found: Counterexample) -> str:
    """The broken claim, without the instance that said so."""
    claim = next((p.claim for p in result.properties if p.name == found.property), found.message)
    who, _, what = claim.partition(": ")
    return what if who in found.initial else claim


def _step(step: TraceStep, margin: str) -> str:
    """One line: the step, and as much of what it did as fits."""
    because = _on_one_line(step.because)
    line = f'{margin}"{step.label}",  # {step.number}. {because}'
    for place, (_, after) in step.changed.items():
        if place.endswith(".state"):
            told = f"; {place.removesuffix('.state')} {after}"
            if len(line) + len(told) > LINE_MAX:
                return f"{line}; ..." if len(line) + 5 <= LINE_MAX else line
            line += told
    return line


def _made(line: str) -> list[str]:
    """A call, with its arguments on lines of their own if it is too long."""
    call, _, arguments = line.removesuffix(")").partition("(")
    if len(line) <= LINE_MAX:
        return [line]
    return [f"{call}(", *_wrapped(f"{arguments},", "        "), "    )"]


def _wrapped(text: str, margin: str) -> list[str]:
    return textwrap.wrap(
        text,
        LINE_MAX,
        initial_indent=margin,
        subsequent_indent=margin,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _slug(text: str) -> str:
    """Words of a claim as a part of a function's name.

    >>> _slug("NoValve I2, what's sent after it")
    'no_valve_i2_what_s_sent_after_it'
    """
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    words = re.sub(r"[^a-z0-9]+", " ", spaced.lower())
    return textwrap.shorten(words, NAME_MAX, placeholder="").replace(" ", "_")


def _quoted(text: str) -> str:
    """Text for a docstring."""
    return _on_one_line(text).replace("\\", "\\\\").replace('"', "'")


def _on_one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
