"""The proving kit: a distribution of its own, with what checks, tests, draws and measures.

Decides which modules and commands are the kit's, and what a person is told who asks for one where
the kit is not installed. Nothing that runs imports a module of the kit; this is the one place that
names them, and pyproject.toml leaves the same files out of the distribution `epochgate`.
"""

from __future__ import annotations

import importlib.metadata
from typing import Final

from epochgate.errors import UsageError

DISTRIBUTION: Final = "epochgate-proving"

COMMANDS: Final = frozenset(
    {"bench", "certify-sink", "check", "demo", "draw", "explore", "fuzz", "validate"}
)

_BELOW_EPOCHGATE: Final = """
    benchmarks diagrams exploring reports testing
    commands.bench commands.certify_sink commands.check commands.check_options
    commands.check_progress commands.check_searches commands.demo commands.draw
    commands.draw_taken commands.explore commands.fuzz commands.validate
    fsm.bounded fsm.checker fsm.choosing fsm.claims fsm.closed fsm.declared fsm.derived
    fsm.existing fsm.mypy_plugin fsm.shared fsm.subset.reading fsm.tally fsm.testing
    fsm.traces.replaying
    models.closed models.studies
    runtime.testing runtime.tracing.conversation runtime.tracing.regression
    runtime.tracing.segments runtime.tracing.stepping runtime.tracing.validation
    spark.checking spark.ingest.flights spark.ingest.verification spark.validation
"""
MODULES: Final = frozenset(f"epochgate.{name}" for name in _BELOW_EPOCHGATE.split())
"""Each with the modules below it."""

TEMPLATES: Final = frozenset(
    {"explore.html", "keys.js", "results.html", "spacetime.html", "steps.js", "trace.html"}
)
"""What the kit puts beside the templates of `epochgate.pages`."""


class ProvingKitMissing(UsageError, ModuleNotFoundError):
    """A part of the kit was asked for, and is not there: what was asked for."""

    def __str__(self) -> str:
        from epochgate import __version__

        both = f"epochgate=={__version__} {DISTRIBUTION}=={__version__}"
        if (elsewhere := _installed()) is not None:
            return (
                f"{self.args[0]} is part of {DISTRIBUTION}, of which version {elsewhere} is "
                f"installed, but not beside epochgate {__version__}: "
                f"`pip install --force-reinstall {both}`"
            )
        return (
            f"{self.args[0]} is part of {DISTRIBUTION}, which is not installed: "
            f"`pip install {DISTRIBUTION}=={__version__}`"
        )


class Finder:
    """Is asked for a module last, when no file of it was found."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise ProvingKitMissing for a module of the kit."""
        if name in MODULES:
            raise ProvingKitMissing(name)


def _installed() -> str | None:
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return None
