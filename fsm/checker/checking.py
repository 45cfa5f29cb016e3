"""Checks a closed system: explores every state, and gives the verdict on each claim."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from epochgate.errors import UsageError
from epochgate.fsm.checker.budget import Budget, Progress
from epochgate.fsm.checker.compiler.ir import Program
from epochgate.fsm.checker.compiler.lowering import Lowering
from epochgate.fsm.checker.demands import summary
from epochgate.fsm.checker.engines import choice
from epochgate.fsm.checker.engines.initial import initial_states
from epochgate.fsm.checker.engines.search import Finding, Level, Search, Stopped, size, states_of
from epochgate.fsm.checker.memory_limit import usable_bytes
from epochgate.fsm.checker.outcome import Found, Lasso, Outcome, StoppedEarly
from epochgate.fsm.checker.reduction.tables import add_reduction, channels_of
from epochgate.fsm.checker.refinement import Refinements, Unimplemented
from epochgate.fsm.checker.result import Result
from epochgate.fsm.checker.resuming import SavedSearch
from epochgate.fsm.checker.symmetry import symmetric_set, verify
from epochgate.fsm.claims import WITHOUT_END
from epochgate.fsm.closed import ClosedSystem, Property

OPTIMISE_FROM = 1 << 18
"""States, for which a search in quickly compiled code takes about a second."""
OPTIMISE_FROM_REDUCED = 1 << 15
"""The same under partial-order reduction, which takes more time for each state."""
WITHOUT_ORDER = ("always", "sometimes", "each_step", "terminal")
"""The kinds of claims for which the order of independent steps does not matter."""
PROPERTIES_MAX = 62
"""What held is kept as bits of one word."""
MakeSearch = Callable[[choice.Setting], Search]

EDGE_BYTES, VERTEX_BYTES = 24, 140
"""What the graph of a search and its judgement take for each transition and each state."""
PAIR_BYTES = 64
"""With symmetry, what they take for each transition and each interchangeable instance besides."""


class CannotCheck(UsageError):
    """A system or a combination of options that no check is defined for."""


@dataclass(frozen=True)
class Options:
    """The options of a search; see `check`."""

    engine: str
    workers: int
    symmetry: bool | str
    partial_order: bool
    order: str
    max_states: int | None
    max_memory: int | None
    max_seconds: float | None
    max_depth: int | None
    resume: Path | None
    spill: Path | None
    progress: Progress | None
    optimise_from: int
    make_search: MakeSearch


def check(
    system: ClosedSystem | type[ClosedSystem],
    *,
    engine: str | None = None,
    workers: int = 1,
    symmetry: bool | str = False,
    partial_order: bool = False,
    order: str = "breadth",
    max_states: int | None = None,
    max_memory: int | None = None,
    max_seconds: float | None = None,
    max_depth: int | None = None,
    resume: Path | str | None = None,
    spill: Path | str | None = None,
    progress: Progress | None = None,
    optimise_from: int | None = None,
    make_search: MakeSearch | None = None,
) -> Result:
    """Explore a closed system, and return what was found.

    `engine` is llvm, python or interpreted, the fastest that is installed if None; `workers`
    are threads, for llvm. `symmetry` treats the instances of an index set, named or found, as
    interchangeable. `partial_order` takes steps that do not depend on each other in some orders
    only, see `checker.reduction`. `order` is breadth, with shortest counterexamples, or depth.
    `max_memory` is in bytes, by default most of what is free. `resume` names a file to which the
    search is written level by level, and from which it goes on if it is there. `spill` names a
    directory in which the states are kept instead of in memory, and from which a search that is
    there goes on. `progress` is called about twice a second. `optimise_from` is for llvm: from this
    many states on (by default 262,144, about a second) optimised machine code is made beside the
    search, which goes over to it; 0 makes it before the search. `make_search` makes a search that
    is of no engine here.

    Raises DeclarationError for what cannot be compiled, EngineUnavailable, CannotCheck for options
    that exclude each other, NotSymmetric, and CannotResume.
    """
    made = system if isinstance(system, ClosedSystem) else system()
    chosen = choice.chosen(engine)
    threshold = OPTIMISE_FROM_REDUCED if partial_order else OPTIMISE_FROM
    options = Options(
        engine=chosen,
        workers=workers,
        symmetry=symmetry,
        partial_order=partial_order,
        order=order,
        max_states=max_states,
        max_memory=max_memory,
        max_seconds=max_seconds,
        max_depth=max_depth,
        resume=None if resume is None else Path(resume),
        spill=None if spill is None else Path(spill),
        progress=progress,
        optimise_from=threshold if optimise_from is None else optimise_from,
        make_search=make_search or _maker(chosen, spill),
    )
    properties = made.claims()
    _check_options(properties, options)
    return _Check(made, properties, options).run()


def _maker(engine: str, spill: Path | str | None) -> MakeSearch:
    if spill is None or engine != "llvm":
        return partial(choice.search, engine)
    from epochgate.fsm.checker.engines.spilling import spilled

    return partial(spilled, Path(spill))


def _check_options(properties: tuple[Property, ...], options: Options) -> None:
    if options.order not in ("breadth", "depth"):
        raise CannotCheck(f"order is breadth or depth, not {options.order!r}")
    if options.workers < 1:
        raise CannotCheck(f"{options.workers} workers: there is at least one")
    if options.optimise_from < 0:
        raise CannotCheck(f"optimise_from is a number of states, not {options.optimise_from}")
    needing_levels = (options.resume, options.spill, options.max_depth)
    if options.order == "depth" and (options.workers > 1 or needing_levels != (None, None, None)):
        raise CannotCheck(
            "a depth-first search has no levels: it cannot be resumed, spilled, shared by workers, "
            "or bounded by depth; leave these out, or search breadth-first"
        )
    for is_given, check_it in (
        (options.spill is not None, _check_spill),
        (options.partial_order, _check_partial_order),
        (options.symmetry, _check_symmetry),
    ):
        if is_given:
            check_it(properties, options)
    claims = [p.claim for p in properties if p.kind in WITHOUT_END]
    if claims and options.workers > 1:
        raise CannotCheck(f"{claims[0]!r} is about runs without end; check it with one worker")
    if claims and options.engine != "llvm" and find_spec("numpy") is None:
        raise CannotCheck(f"{claims[0]!r} is about runs without end, which needs numpy; install it")
    if len(properties) > PROPERTIES_MAX:
        raise CannotCheck(f"a system has at most {PROPERTIES_MAX} properties")


def _check_spill(properties: tuple[Property, ...], options: Options) -> None:
    """Refuse what needs all states in memory, or another search."""
    if told := [p.claim for p in properties if p.kind in (*WITHOUT_END, "implements")]:
        raise CannotCheck(
            f"{told[0]!r} is about whole runs, for which all states have to be in memory: search "
            f"without spilling, or leave the claim out"
        )
    if options.engine != "llvm":
        raise CannotCheck(f"only the engine llvm spills states to disk, not {options.engine!r}")
    if options.resume is not None:
        raise CannotCheck(
            "a search that spills to disk goes on from its directory; name no file to resume from"
        )


def _check_symmetry(properties: tuple[Property, ...], _options: Options) -> None:
    """Refuse claims that tell interchangeable instances apart."""
    if mapped := [p.claim for p in properties if p.kind == "implements"]:
        raise CannotCheck(
            f"symmetry cannot be used for a system with {mapped[0]!r}: what an instance stands for "
            f"may depend on which it is; check it without symmetry"
        )
    if told := [p for p in properties if p.each and "[" in p.name]:
        raise CannotCheck(
            f"{told[0].claim!r} is about one {told[0].each}, and symmetry exchanges these; claim "
            f"it of `all(...)` of them, or check without symmetry"
        )


def _check_partial_order(properties: tuple[Property, ...], options: Options) -> None:
    """Refuse what a partial-order reduction may change."""
    if options.symmetry:
        raise CannotCheck(
            "a partial-order reduction cannot be used together with symmetry: that no step is put "
            "off for ever is known of the states as they are, not of those that stand for others; "
            "take one of them"
        )
    for found in properties:
        if found.kind not in WITHOUT_ORDER:
            raise CannotCheck(
                f"a partial-order reduction cannot be used for a system with {found.claim!r}, "
                f"which is about whole runs: some of them are left out; check it without"
            )


class _Check:
    """One check under way."""

    def __init__(
        self, system: ClosedSystem, properties: tuple[Property, ...], options: Options
    ) -> None:
        begun_s = time.perf_counter()
        self.system, self.properties, self.options = system, properties, options
        self.symmetric = symmetric_set(system, options.symmetry)
        lowering = Lowering(system, self.symmetric)
        self.program: Program = lowering.program()
        self.layout = lowering.layout
        if self.symmetric is not None:
            verify(self.program, self.symmetric)
        if options.partial_order:
            add_reduction(self.program, channels_of(self.layout), properties)
        self.initial = initial_states(self.program, type(system).__name__)
        self.final = next((p.name for p in properties if p.kind == "terminal"), None)
        self.search: Search = options.make_search(
            choice.Setting(
                system,
                self.program,
                self.layout,
                self.final,
                options.workers,
                options.max_memory,
                options.optimise_from,
            ),
        )
        self.compile_seconds = time.perf_counter() - begun_s
        self.max_memory = usable_bytes() if options.max_memory is None else options.max_memory
        self.depth = 0
        self.restored: list[Level] = []
        self.rests: dict[str, str] = {}
        self.refinements = Refinements(system, self.layout, self.program)

    @property
    def demanded(self) -> int:
        """A bit for each method that must hold in every state."""
        bits = {name: 1 << bit for bit, name in enumerate(self.program.properties)}
        return sum(bits[p.name] for p in self.properties if p.kind == "always")

    @property
    def has_promises(self) -> bool:
        return any(p.kind in WITHOUT_END for p in self.properties)

    def run(self) -> Result:
        try:
            return self._run()
        finally:
            self.search.close()

    def _run(self) -> Result:
        begun_s = time.perf_counter()
        options = self.options
        saved = None
        if options.resume is not None:
            name = type(self.system).__name__
            saved = SavedSearch(options.resume, self.program, name, self.properties)
        found: Found = None
        try:
            found = self._explore(saved)
        except Stopped as stopped:
            found = StoppedEarly(str(stopped))
        finally:
            if saved is not None:
                saved.close()
        search_seconds = time.perf_counter() - begun_s
        outcome = Outcome(
            self.system,
            self.program,
            self.layout,
            self.search,
            self.properties,
            found,
            self.rests,
            self.refinements,
        )
        return Result(
            system=type(self.system).__name__,
            constants=self._constants(),
            engine=options.engine,
            workers=options.workers,
            verdict=outcome.verdict,
            states=self.search.states,
            transitions=self.search.transitions,
            depth=self.depth if options.order == "breadth" else 0,
            terminal_states=self.search.terminal_states,
            compile_seconds=self.compile_seconds,
            search_seconds=search_seconds,
            bytes_per_state=self.search.memory_bytes / max(1, self.search.states),
            properties=outcome.properties,
            coverage=outcome.coverage,
            counterexample=outcome.counterexample,
            stopped=found.reason if isinstance(found, StoppedEarly) else "",
            symmetry=self.symmetric or "",
            partial_order=options.partial_order,
            left_out=self.search.left_out,
            disk_bytes=self.search.disk_bytes,
            order=options.order,
            fairness=summary(self.system) if self.has_promises else [],
            notes=[
                *self.system.NOTES,
                *([saved.failure] if saved is not None and saved.failure else []),
                *(
                    f"nothing reads {field}: remove it, or say in UNREAD why it stays"
                    for field in self.system.unread()
                ),
            ],
        )

    def _constants(self) -> dict[str, int]:
        derived = self.system.DERIVED
        return {n: value for n, value in self.system.constants.items() if n not in derived}

    def _explore(self, saved: SavedSearch | None) -> Found:
        options, search = self.options, self.search
        level, is_new = self._first_level(saved)
        budget = Budget(
            search,
            max_states=options.max_states,
            max_memory=self.max_memory,
            max_seconds=options.max_seconds,
            progress=options.progress,
        )
        found = self._examined(level, budget, is_first=True) if is_new else self._restored_wrong()
        if found:
            return found
        if options.order == "depth":
            return self._descend(budget)
        while True:
            if is_new and saved is not None:
                saved.add(search, level)
            is_new = True
            if options.max_depth is not None and self.depth >= options.max_depth:
                return StoppedEarly(f"the budget of {options.max_depth} steps in depth is used up")
            budget.level(size(level))
            following = search.expand(level, budget.pause)
            if isinstance(following, Finding):
                return following
            if not following:
                return self._check_liveness()
            level = following
            self.depth += 1
            if found := self._examined(level, budget):
                return found

    def _examined(
        self, level: Iterable[Sequence[int]], budget: Budget, *, is_first: bool = False
    ) -> Finding | Unimplemented | None:
        """Return what is wrong in the states of a level, or with the steps out of them."""
        if found := self.search.examine(level, self.demanded, budget.pause):
            return found
        return self._unimplemented(level, is_first=is_first)

    def _restored_wrong(self) -> Unimplemented | None:
        """Return what the specifications do not have among the levels of a saved search, whose file
        does not say how states were mapped.
        """
        wrong = (self._unimplemented(e, is_first=n == 0) for n, e in enumerate(self.restored))
        return next(filter(None, wrong), None)

    def _unimplemented(
        self, level: Iterable[Sequence[int]], *, is_first: bool
    ) -> Unimplemented | None:
        if not self.refinements.all:
            return None
        read = self.search.words
        wrong = None
        if is_first:
            wrong = self.refinements.begin((n, read(n)) for n in states_of(level))
        return wrong or self.refinements.follow((n, read(n)) for n in states_of(level))

    def _first_level(self, saved: SavedSearch | None) -> tuple[Level, bool]:
        """The level to begin with, the last one of a saved search; and whether it is new."""
        last: Level = []
        if saved is not None:
            for number, (level, about) in enumerate(saved.levels(self.search)):
                last, self.depth = level, number
                if self.refinements.all:
                    self.restored.append(level)
                counted = (about["transitions"], about["terminal"], about["held"])
                self.search.recount(*counted, about["left_out"])
        if last:
            return last, False
        first = self.search.begin(self.initial)
        self.depth = self.search.begun_at
        return first, True

    def _descend(self, budget: Budget) -> Found:
        found: Found = self.search.descend(budget.pause)
        if found is None:
            states: Iterable[Sequence[int]] = self.search.everything()
            found = self._examined([*states] if self.refinements.all else states, budget)
        return found or self._check_liveness()

    def _check_liveness(self) -> Lasso | None:
        promises = [p for p in self.properties if p.kind in WITHOUT_END]
        if not promises:
            return None
        search = self.search
        blocks = self.program.blocks[0] if self.symmetric else 0
        needed = search.transitions * (EDGE_BYTES + blocks * PAIR_BYTES)
        needed += search.states * VERTEX_BYTES * (1 + blocks)
        if needed > self.max_memory - search.memory_bytes:
            raise Stopped(
                f"{promises[0].claim!r} is about runs without end, whose graph of "
                f"{search.transitions:,} transitions needs about {needed >> 20} MiB beside the "
                f"{search.memory_bytes >> 20} MiB of the states, of {self.max_memory >> 20} MiB: "
                f"set a larger --max-memory, or smaller constants"
            )
        from epochgate.fsm.checker.liveness import judged

        judgement = judged(self.search, self.system, self.program, promises, self.symmetric)
        self.rests = judgement.rests
        return judgement.lasso
