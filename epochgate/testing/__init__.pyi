"""The names of `epochgate.testing`, and where they are defined."""

from epochgate.fsm.checker.asserting import (
    assert_fails as assert_fails,
    assert_passes as assert_passes,
)
from epochgate.runtime.testing.certification import (
    SinkCase as SinkCase,
    SinkNotCertified as SinkNotCertified,
    certify_sink as certify_sink,
)
from epochgate.runtime.testing.faulty_filesystem import FaultyFileSystem as FaultyFileSystem
from epochgate.runtime.testing.faulty_transport import (
    Fault as Fault,
    FaultyTransport as FaultyTransport,
)
from epochgate.runtime.testing.in_process import InProcessTransport as InProcessTransport
from epochgate.runtime.testing.playing.stage import play as play
from epochgate.runtime.testing.scripted import (
    Script as Script,
    ScriptedCoordinator as ScriptedCoordinator,
    ScriptedOperator as ScriptedOperator,
    ScriptedProgram as ScriptedProgram,
    ScriptedProvider as ScriptedProvider,
)
from epochgate.runtime.testing.simulation import (
    JobHasFailed as JobHasFailed,
    SimulatedJob as SimulatedJob,
    Stuck as Stuck,
)
from epochgate.runtime.testing.worlds.claims import ClaimBroken as ClaimBroken
from epochgate.runtime.testing.worlds.escapes import EscapedSimulation as EscapedSimulation
from epochgate.runtime.testing.worlds.faults import UnknownFault as UnknownFault
from epochgate.runtime.testing.worlds.job import (
    NoSuchSubtask as NoSuchSubtask,
    WorldJob as WorldJob,
)
from epochgate.runtime.testing.worlds.motion import WorldMisused as WorldMisused
from epochgate.runtime.testing.worlds.report import (
    SimulationFailed as SimulationFailed,
    Vacuous as Vacuous,
)
from epochgate.runtime.testing.worlds.rig import NotSimulated as NotSimulated
from epochgate.runtime.testing.worlds.schedule import TokenMalformed as TokenMalformed
from epochgate.runtime.testing.worlds.searching import (
    NotRepeatable as NotRepeatable,
    NotReplayed as NotReplayed,
)
from epochgate.runtime.testing.worlds.simulate import (
    ExploredInPart as ExploredInPart,
    explore as explore,
    replay as replay,
    simulate as simulate,
)
from epochgate.runtime.testing.worlds.suites import agree as agree, read_once as read_once
from epochgate.runtime.testing.worlds.world import World as World
