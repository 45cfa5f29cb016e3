"""The models whose numbers of states are published: where, what, and how each is declared here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from epochgate.fsm.closed import ClosedSystem
from tests.published import (
    beginnings,
    broken,
    caches,
    channels,
    commits,
    contest,
    forks,
    lines,
    locks,
    ltsmin,
    meetings,
    mutexes,
    nets,
    probes,
    processes,
    puzzles,
    resources,
    rings,
    searches,
    strands,
    trees,
    votes,
    vouchers,
)
from tests.published.written import declared

TLA = (
    "https://github.com/tlaplus/Examples/blob/32a32c7b0b97562da2dd4b2e55b7f81cd6fea2b9/"
    "specifications/{}/manifest.json"
)
CONTEST = (
    "https://github.com/yanntm/pnmcc-models-2023/blob/99dc3b2ba820341c28d8e5b9cedbc51ed0f7ab8a/"
    "oracleSS.tar.gz"
)
STATERIGHT = (
    "https://github.com/stateright/stateright/blob/ab8c8be9341505e0f71edbe5dd88ed275bd976a4/{}"
)
LTSMIN = (
    "https://github.com/utwente-fmt/ltsmin/blob/07f9bf8aa8957cab4f8a47c1a943bf7fef968288/"
    "testsuite/{}/test1.exp"
)
QUICK_STATES_MAX = 1_000


@dataclass(frozen=True)
class Model:
    """A published model.

    `transitions` is None where none are published, or not in our sense. `symmetric` is how many
    states are published for the search that takes interchangeable parts for each other. All claims
    of the system are published as true.
    """

    name: str
    family: str
    source: str
    states: int
    transitions: int | None
    declared: str
    """The function or class, as `module.name(arguments)` of this package."""
    make: Callable[[], type[ClosedSystem]]
    constants: dict[str, int]
    symmetric: int | None = None

    def system(self) -> ClosedSystem:
        """The closed system."""
        return self.make()(**self.constants)

    @property
    def is_quick(self) -> bool:
        """True if it is counted in `make test` too."""
        return self.states <= QUICK_STATES_MAX and "rw_mutex" not in self.declared


def _net(
    instance: str,
    states: int,
    transitions: int,
    kind: Callable[..., nets.Net],
    *sizes: int,
    **options: bool,
) -> Model:
    given = [*map(str, sizes), *(f"{name}={value}" for name, value in options.items())]

    @cache
    def make() -> type[ClosedSystem]:
        return declared(instance, nets.source(kind(*sizes, **options)))

    return Model(
        name=instance,
        family="Model Checking Contest 2023",
        source=CONTEST,
        states=states,
        transitions=transitions,
        declared=f"contest.{kind.__name__}({', '.join(given)})",
        make=make,
        constants={},
    )


def _ltsmin(
    instance: str,
    place: str,
    states: int,
    transitions: int,
    kind: Callable[[], processes.Processes],
) -> Model:
    @cache
    def make() -> type[ClosedSystem]:
        return declared(instance, processes.source(kind()))

    return Model(
        name=instance,
        family="LTSmin",
        source=LTSMIN.format(place),
        states=states,
        transitions=transitions,
        declared=f"ltsmin.{kind.__name__}()",
        make=make,
        constants={},
    )


def _tla(
    instance: str,
    states: int,
    generated: int | None,
    system: type[ClosedSystem],
    initial: int = 1,
    **constants: int,
) -> Model:
    """`generated` counts what TLC generates: its initial states, and a state for each step."""
    folder = instance.split("/")[0]
    return Model(
        name=instance,
        family="TLA+ examples",
        source=TLA.format(folder),
        states=states,
        transitions=None if generated is None else generated - initial,
        declared=_class(system, constants),
        make=lambda: system,
        constants=constants,
    )


def _stateright(
    instance: str,
    place: str,
    states: int,
    system: type[ClosedSystem],
    *,
    symmetric: int | None = None,
    **constants: int,
) -> Model:
    return Model(
        name=instance,
        family="Stateright",
        source=STATERIGHT.format(place),
        states=states,
        transitions=None,
        declared=_class(system, constants),
        make=lambda: system,
        constants=constants,
        symmetric=symmetric,
    )


def _class(system: type[ClosedSystem], constants: dict[str, int]) -> str:
    module = system.__module__.rpartition(".")[2]
    given = ", ".join(f"{name}={value}" for name, value in constants.items())
    return f"{module}.{system.__name__}" + (f"({given})" if given else "")


def _contest() -> Iterator[Model]:
    c, net = contest, _net
    yield net("CircadianClock-PT-000001", 128, 624, c.circadian_clock, 1)
    yield net("CircadianClock-PT-000010", 644_204, 6_766_320, c.circadian_clock, 10)
    yield net("Dekker-PT-010", 6_144, 171_530, c.dekker, 10)
    yield net("Dekker-PT-015", 278_528, 16_834_575, c.dekker, 15)
    yield net("Eratosthenes-PT-010", 32, 120, c.eratosthenes, 10)
    yield net("Eratosthenes-PT-020", 2_048, 23_040, c.eratosthenes, 20)
    yield net("ERK-PT-000001", 13, 30, c.erk, 1)
    yield net("ERK-PT-000010", 47_047, 372_372, c.erk, 10)
    yield net("FMS-PT-00002", 3_444, 16_311, c.fms, 2)
    yield net("FMS-PT-00005", 2_895_018, 23_527_185, c.fms, 5)
    yield net("Kanban-PT-00005", 2_546_432, 24_460_016, c.kanban, 5)
    yield net("LamportFastMutEx-PT-2", 380, 716, c.lamport, 2)
    yield net("LamportFastMutEx-PT-3", 19_742, 58_272, c.lamport, 3)
    yield net("NeighborGrid-PT-d2n3m1c12", 24_310, 514_800, c.neighbour_grid, 3, is_torus=False)
    yield net("NeighborGrid-PT-d2n3m1t12", 24_310, 926_640, c.neighbour_grid, 3, is_torus=True)
    yield net("NQueens-PT-05", 462, 1_295, c.queens, 5)
    yield net("NQueens-PT-08", 118_969, 564_880, c.queens, 8)
    yield net("Peterson-PT-2", 20_754, 62_262, c.peterson, 2)
    yield net("Philosophers-PT-000005", 243, 945, c.philosophers, 5)
    yield net("Philosophers-PT-000010", 59_049, 459_270, c.philosophers, 10)
    yield net("Referendum-PT-0010", 59_050, 393_661, c.referendum, 10)
    yield net("RwMutex-PT-r0010w0010", 1_034, 10_260, c.rw_mutex, 10, 10)
    yield net("RwMutex-PT-r0010w0020", 1_044, 10_280, c.rw_mutex, 10, 20)
    yield net("RwMutex-PT-r0010w0050", 1_074, 10_340, c.rw_mutex, 10, 50)
    yield net("SharedMemory-PT-000005", 1_863, 10_395, c.shared_memory, 5)
    yield net("SharedMemory-PT-000010", 1_830_519, 19_486_170, c.shared_memory, 10)
    yield net("Sudoku-PT-AN01", 2, 1, c.sudoku, 1)
    yield net("Sudoku-PT-AN02", 35, 72, c.sudoku, 2)
    yield net("Sudoku-PT-AN03", 11_776, 56_619, c.sudoku, 3)
    yield net("Sudoku-PT-BN01", 2, 1, c.sudoku, 1, has_regions=True)
    yield net("SwimmingPool-PT-01", 89_621, 450_003, c.swimming_pool, 1)
    yield net("TokenRing-PT-005", 166, 365, c.token_ring, 5)
    yield net("TokenRing-PT-010", 58_905, 294_050, c.token_ring, 10)


def _examples() -> Iterator[Model]:
    tla = _tla
    yield tla("acp/ACP_SB_TLC", 54_944, 218_352, votes.Ballot, 8)
    yield tla("allocator/SimpleAllocator", 400, 1_633, resources.Allocator)
    yield tla("barriers/Barrier", 64, 194, locks.Barrier)
    yield tla("barriers/Barriers", 29_279, 104_515, mutexes.Barriers)
    yield tla("byihive/VoucherCancel", 4_199, 26_848, vouchers.Protocol)
    yield tla("byihive/VoucherIssue", 4_199, 26_848, vouchers.Protocol)
    yield tla("byihive/VoucherLifeCycle", 64, 193, puzzles.Vouchers)
    yield tla("byihive/VoucherRedeem", 4_199, 26_848, vouchers.Protocol)
    yield tla("byihive/VoucherTransfer", 4_197, 26_848, vouchers.Protocol, changes=0)
    yield tla("byzpaxos/Consensus", 4, 4, puzzles.Consensus)
    yield tla("Chameneos/Chameneos", 34_534, 104_697, meetings.Mall, 81)
    yield tla("chang_roberts/MCChangRoberts", 137, 227, meetings.Election, 8)
    yield tla("CigaretteSmokers/CigaretteSmokers", 6, 15, beginnings.Smokers, 3)
    yield tla("CoffeeCan/CoffeeCan100Beans", 5_150, 20_002, beginnings.CoffeeCan, 5_150)
    yield tla(
        "CoffeeCan/CoffeeCan1000Beans",
        501_500,
        2_000_002,
        beginnings.CoffeeCan,
        501_500,
        most=1_000,
    )
    yield tla("DiningPhilosophers/DiningPhilosophers", 67, 336, forks.Philosophers)
    yield tla("echo/MCEcho", 75, 116, votes.Echo)
    yield tla("ewd426/TokenRing", 46_656, 248_832, rings.TokenRing, 46_656)
    yield tla("ewd840/EWD840", 302, 2_001, probes.Probe, 192)
    yield tla("ewd840/EWD840_json", 1_566, 15_986, probes.Probe, 1_024, nodes=4)
    yield tla("ewd840/SyncTerminationDetection", 129, 3_722, rings.Synchronous, 129)
    yield tla("ewd998/AsyncTerminationDetection", 4_097, 53_271, rings.Asynchronous, 17)
    yield tla("GameOfLife/GameOfLife", 65_536, 131_072, beginnings.GameOfLife, 65_536)
    yield tla("glowingRaccoon/clean", 63, 99, strands.Clean)
    yield tla("glowingRaccoon/stages", 83, 93, strands.Stages)
    yield tla("lamport_mutex/MCLamportMutex", 724_274, 2_729_079, mutexes.Lamport)
    # TLC makes 625 lists of four numbers more, which a constraint then takes away.
    yield tla("LearnProofs/MCFindHighest", 742, 1_523, searches.FindHighest, 781)
    yield tla(
        "LeastCircularSubstring/MCLeastCircularSubstringSmall",
        8_554,
        8_681,
        searches.LeastRotation,
        127,
    )
    yield tla("locks_auxiliary_vars/Lock", 12, 21, locks.Lock)
    yield tla("locks_auxiliary_vars/LockHS", 28, 41, locks.LockAsPeterson)
    yield tla("locks_auxiliary_vars/Peterson", 42, 77, locks.Peterson)
    yield tla("LoopInvariance/MCBinarySearch", 27_953, 34_383, searches.BinarySearch, 6_430)
    yield tla("Majority/MCMajority", 2_733, 3_459, searches.Majority, 1_092)
    yield tla("Moving_Cat_Puzzle/CatEvenBoxes", 48, 128, beginnings.Boxes, 48, last=5)
    yield tla("Moving_Cat_Puzzle/CatOddBoxes", 30, 78, beginnings.Boxes, 30)
    yield tla("Paxos/MCConsensus", 4, 7, beginnings.ConsensusFromAnywhere, 4)
    yield tla("Paxos/MCPaxos", 25, 82, trees.Paxos)
    yield tla("PaxosHowToWinATuringAward/MCConsensus", 4, 4, puzzles.Consensus)
    yield tla("Prisoners/Prisoners", 214, 860, meetings.Prison, 4)
    yield tla("Prisoners_Single_Switch/Prisoner", 16, 49, puzzles.Prisoners)
    yield tla("Prisoners_Single_Switch/PrisonerLightUnknown", 62, 188, beginnings.DimPrisoners, 2)
    yield tla("Prisoners_Single_Switch/PrisonerSolo", 2, 3, puzzles.Solitary)
    yield tla("Prisoners_Single_Switch/PrisonerSoloLightUnknown", 4, 6, beginnings.DimSolitary, 2)
    yield tla("ReadersWriters/MC", 21_527, 59_674, resources.ReadersWriters)
    yield tla("SingleLaneBridge/MC", 3_605, 20_181, resources.Bridge)
    yield tla("SpanningTree/SpanTree", 1_236, 10_278, meetings.Spanning)
    yield tla("SpanningTree/SpanTreeTest4Nodes", 3_984, 21_784, trees.AnySpanning, 64)
    yield tla("TeachingConcurrency/Simple", 723, 1_842, locks.Neighbours)
    yield tla("TeachingConcurrency/SimpleRegular", 277_726, 1_454_776, locks.RegularNeighbours)
    # TLC takes a step of 2PCwithBTM once for each way in which its guard can be shown to hold.
    yield tla("transaction_commit/2PCwithBTM", 1_245, None, commits.Backed)
    yield tla("transaction_commit/TCommit", 34, 94, commits.Agreement)
    yield tla("transaction_commit/TwoPhase", 288, 1_146, commits.RefinedTwoPhase)
    yield tla("TwoPhase/MCTwoPhase", 4, 5, puzzles.Handshake)


def _book() -> Iterator[Model]:
    tla, book = _tla, "SpecifyingSystems"
    yield tla(f"{book}/AsynchronousInterface/AsynchInterface", 12, 30, channels.Interfaced, 6)
    yield tla(f"{book}/AsynchronousInterface/Channel", 12, 30, channels.Interfaced, 6)
    yield tla(f"{book}/CachingMemory/MCInternalMemory", 4_408, 21_400, channels.Memories, 8)
    yield tla(f"{book}/CachingMemory/MCWriteThroughCache", 5_196, 28_170, caches.WriteThrough, 2)
    yield tla(f"{book}/FIFO/MCInnerFIFO", 3_864, 9_660, channels.Queue, 36)
    yield tla(f"{book}/HourClock/HourClock", 12, 24, beginnings.HourClock, 12)
    yield tla(f"{book}/HourClock/HourClock2", 12, 24, beginnings.HourClock2, 12)
    yield tla(f"{book}/Liveness/LiveHourClock", 12, 24, beginnings.LiveHourClock, 12)
    yield tla(f"{book}/Liveness/MCLiveInternalMemory", 4_408, 21_400, channels.LiveMemories, 8)
    yield tla(f"{book}/TLC/ABCorrectness", 20, 36, lines.BareBits, 8)
    yield tla(f"{book}/TLC/MCAlternatingBit", 240, 1_392, lines.AlternatingBit, 8)


def _rust() -> Iterator[Model]:
    rust = _stateright
    yield rust("two-phase commit, 3 managers", "examples/2pc.rs", 288, commits.TwoPhase)
    yield rust("two-phase commit, 5", "examples/2pc.rs", 8_832, commits.TwoPhase, managers=5)
    yield rust("increment, 2 threads", "examples/increment.rs", 13, puzzles.Increment, symmetric=8)
    yield rust(
        "linear equation without a solution",
        "src/checker/bfs.rs",
        65_536,
        puzzles.Unsolvable,
    )
    yield rust("processes that pause", "src/checker/dfs.rs", 9, puzzles.Pausing, symmetric=6)


def _others() -> Iterator[Model]:
    yield _ltsmin("gear.1 (BEEM)", "check-DVE", 2_689, 3_567, ltsmin.gear)
    yield _ltsmin("abp (mCRL2)", "check-LPS", 74, 92, ltsmin.alternating_bit)
    yield _ltsmin("MutexSimple (ProB)", "check-ProB", 10, 23, ltsmin.mutex)


MODELS = {
    model.name: model for model in (*_contest(), *_examples(), *_book(), *_rust(), *_others())
}
"""By the names that the publishers give them."""


@dataclass(frozen=True)
class Broken:
    """A claim that is published as one that does not hold; `steps` are those of the shortest way to
    break it, if that is published.
    """

    name: str
    claim: str
    source: str
    system: type[ClosedSystem]
    steps: int | None = None

    @property
    def declared(self) -> str:
        """The class, as `module.name` of this package."""
        return _class(self.system, {})


BROKEN = (
    Broken(
        "increment, 2 threads",
        "the number is that of the threads that have written",
        STATERIGHT.format("examples/increment.rs"),
        puzzles.CheckedIncrement,
        4,
    ),
    Broken(
        "glowingRaccoon/clean",
        "the primers are used up",
        TLA.format("glowingRaccoon").replace("manifest.json", "clean.tla"),
        strands.UnfairClean,
    ),
    Broken(
        "ewd840/EWD840",
        "once there are no more messages, all nodes end",
        TLA.format("ewd840").replace("manifest.json", "EWD840.tla"),
        broken.SilentProbe,
    ),
    Broken(
        "DieHard/DieHard",
        "the big jug never holds four gallons",
        TLA.format("DieHard"),
        broken.DieHard,
    ),
    Broken(
        "MissionariesAndCannibals/MissionariesAndCannibals",
        "a person is left on the first bank",
        TLA.format("MissionariesAndCannibals"),
        broken.Crossing,
    ),
)
