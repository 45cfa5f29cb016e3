"""All closed systems that there are, by name: what is published, what checks the machines that run,
studies, broken variants, the zoo, and the small systems of the checker's tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module

from epochgate.fsm.closed import ClosedSystem
from epochgate.models.closed.catalogue import SYSTEMS
from epochgate.models.closed.concurrent import ConcurrentAttempts
from epochgate.models.studies.broken.catalogue import BROKEN
from epochgate.models.studies.catalogue import CASES, STUDIES
from tests.checker import crowds
from tests.models import (
    test_batch_job as batch,
    test_closed_job as job,
    test_concurrent_attempts as concurrent,
    test_designs as designs,
    test_recreated_job as recreated,
)
from tests.mutation.checking import Bounds
from tests.published.catalogue import BROKEN as PUBLISHED_BROKEN, MODELS
from tests.zoo.bugs import BUGS
from tests.zoo.plants import Plant

Make = Callable[[], ClosedSystem]
SMALL = (
    "epochgate.benchmarks.independent",
    *(
        f"tests.checker.{module}"
        for module in (
            "any_beginning",
            "arithmetic",
            "beginnings",
            "broken",
            "choices",
            "containers",
            "gymnasium",
            "lighting",
            "relay",
            "small_systems",
            "token_ring",
            "wandering",
        )
    ),
)
"""Modules with small systems."""
BOUNDLESS = ("any_beginning.AnyBeginning",)
"""Systems that are shown by induction alone."""
CROWDS = 6
"""Systems that are drawn for each claim of a crowd."""


def every() -> dict[str, Make]:
    """Return all of them; a name says where a system is from."""
    found: dict[str, Make] = {}
    for name, make in (*_protocol(), *_published(), *_variants(), *_zoo(), *_small()):
        assert name not in found, name
        found[name] = make
    return found


def _protocol() -> Iterator[tuple[str, Make]]:
    for folder, catalogue in (("closed", SYSTEMS), ("study", STUDIES), ("case", CASES)):
        for name in catalogue:
            yield f"{folder}/{name}", partial(_of, catalogue, name)
    for name, one in BROKEN.items():
        yield f"broken/{name}", one.system


def _published() -> Iterator[tuple[str, Make]]:
    for name, model in MODELS.items():
        yield f"published/{name}", model.system
    for one in PUBLISHED_BROKEN:
        yield f"published, broken/{one.name}", one.system


def _variants() -> Iterator[tuple[str, Make]]:
    """The systems that tests of the models search beside the catalogues."""
    listed: list[tuple[type[ClosedSystem], dict[str, int]]] = [
        (one, {}) if isinstance(one, type) else (type(one), _given(one))
        for one in (*designs.SIZES, *designs.HOLDING.values())
    ]
    listed += [(ConcurrentAttempts, given) for given, _, _ in concurrent.BOUNDS]
    listed += [(kind, given) for kind, given, _, _ in job.BROKEN]
    listed += [(batch.WithHasty, {}), (batch.WithGullible, {})]
    listed += [(recreated.WithMixing, {}), (recreated.WithHasty, {})]
    for kind, given in listed:
        yield f"variant/{_spelled(kind, given)}", partial(kind, **given)


def _of(catalogue: Mapping[str, type[ClosedSystem]], name: str) -> ClosedSystem:
    return catalogue[name]()


def _given(system: ClosedSystem) -> dict[str, int]:
    """The constants of a system that are not those of its class."""
    usual, derived = type(system).CONSTANTS, system.DERIVED
    return {n: v for n, v in system.constants.items() if n not in derived and usual[n] != v}


def _spelled(kind: type[ClosedSystem], constants: dict[str, int]) -> str:
    module = kind.__module__.rpartition(".")[2].removeprefix("test_")
    given = [f"{name}={value}" for name, value in constants.items()]
    return " ".join([f"{module}.{kind.__name__}", *given])


def _zoo() -> Iterator[tuple[str, Make]]:
    """The public bugs that are planted in a machine."""
    for name, bug in BUGS.items():
        plant, where = bug.plant, bug.where
        if isinstance(plant, Plant) and where is not None:
            yield f"zoo/{name}", partial(_planted, plant, where)


def _planted(plant: Plant, where: Bounds) -> ClosedSystem:
    return plant.in_system(where.system)(**dict(where.constants))


def _small() -> Iterator[tuple[str, Make]]:
    for path in SMALL:
        module, name = import_module(path), path.rpartition(".")[2]
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, ClosedSystem) and kind.STEPS:
                spelled = f"{name}.{kind.__name__}"
                if kind.__module__ == module.__name__ and spelled not in BOUNDLESS:
                    yield f"small/{spelled}", kind
    for claimed in crowds.CLAIMS:
        for seed in range(CROWDS):
            yield f"small/crowds.{claimed.__name__} {seed}", partial(_crowd, seed, claimed)


def _crowd(seed: int, claimed: type[crowds.Crowd]) -> ClosedSystem:
    return crowds.drawn(seed, claimed)()
