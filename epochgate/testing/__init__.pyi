"""The names of `epochgate.testing`, and where they are defined."""

from epochgate.fsm.testing import assert_fails as assert_fails, assert_passes as assert_passes
from epochgate.runtime.testing.certification import (
    SinkCase as SinkCase,
    SinkNotCertified as SinkNotCertified,
    certify_sink as certify_sink,
)
from epochgate.runtime.testing.faulty_filesystem import FaultyFileSystem as FaultyFileSystem
from epochgate.runtime.testing.faulty_transport import FaultyTransport as FaultyTransport
from epochgate.runtime.testing.fuzzing.job import FuzzedJob as FuzzedJob
from epochgate.runtime.testing.in_process import InProcessTransport as InProcessTransport
from epochgate.runtime.testing.playing.stage import play as play
from epochgate.runtime.testing.scripted import (
    Script as Script,
    ScriptedCoordinator as ScriptedCoordinator,
    ScriptedOperator as ScriptedOperator,
    ScriptedProgram as ScriptedProgram,
    ScriptedProvider as ScriptedProvider,
)
from epochgate.runtime.testing.simulation import SimulatedJob as SimulatedJob, Stuck as Stuck
