"""The parts of a pipeline: source, map and sink, with coordinators beside them.

Decides what fits together before anything runs, and puts the parts into a job's configuration and
program. Leaves running to `Pipeline`, and everything about the parts to themselves. What the tasks
need of the parts travels to them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from epochgate.errors import UsageError
from epochgate.runtime.api.commit_topology import CommitTopology
from epochgate.runtime.api.committer import Committer
from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.api.sink import Sink, SinkStart
from epochgate.runtime.api.sink_operator import SinkOperator
from epochgate.runtime.pipeline.coordinated_operator import CoordinatedOperator
from epochgate.runtime.pipeline.program import MAP, SINK, SOURCE, MapOperator, PipelineProgram
from epochgate.runtime.pipeline.record_sink import FunctionCommitter, RecordSink
from epochgate.runtime.pipeline.setting import RateLimit, Setting
from epochgate.runtime.pipeline.waiting import IN_FLIGHT, redistributed
from epochgate.runtime.shell.post_commits import AfterCommit
from epochgate.runtime.source import Source, SourceOperator, SourceProvider

OWN = (SOURCE, MAP, IN_FLIGHT, SINK)


class PipelineMisconfigured(UsageError):
    """The parts of a pipeline do not fit together."""


@dataclass(frozen=True)
class PreparedJob:
    """One start of a pipeline: what a job is made of."""

    configuration: JobConfiguration
    program: Callable[[int], PipelineProgram]
    committer: Committer
    after_commit: AfterCommit | None = None


@dataclass(frozen=True, kw_only=True)
class PipelineParts:
    """The parts, checked. Raises PipelineMisconfigured."""

    source: Source
    map: Callable[..., Any] | type[MapOperator] | None = None
    sink: Sink | Committer | Callable[[int, list[Any]], None]
    coordinators: Sequence[CoordinatorProvider] = ()
    after_commit: AfterCommit | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.source, Source):
            raise PipelineMisconfigured(
                f"source is {self.source!r}; give a Source, or make one of two functions with "
                "FunctionSource(look, read)"
            )
        if self.map is not None and not callable(self.map):
            raise PipelineMisconfigured(
                f"map is {self.map!r}; give a function of a batch, or a class derived from "
                "MapOperator"
            )
        if not (isinstance(self.sink, Sink | Committer) or callable(self.sink)):
            raise PipelineMisconfigured(
                f"sink is {self.sink!r}; give a Sink, a Committer, or a function of a checkpoint "
                "id and the records"
            )
        if isinstance(self.coordinators, CoordinatorProvider):
            raise PipelineMisconfigured(
                f"coordinators is a {type(self.coordinators).__name__}; give a list that holds it"
            )
        for provider in self.coordinators:
            self._check_coordinator(provider)
        self._check_map()
        if not isinstance(self.sink, Sink | Committer):
            told = "a checkpoint id and the records"
            _check_call(f"sink {_name(self.sink)}", self.sink, (None, None), {}, told)

    def _check_coordinator(self, provider: CoordinatorProvider) -> None:
        if not isinstance(provider, CoordinatorProvider):
            raise PipelineMisconfigured(
                f"coordinators holds {provider!r}; give a Setting, a RateLimit, or another "
                "CoordinatorProvider"
            )
        operator_id = provider.operator_id
        if isinstance(provider, CoordinatedOperator):
            if operator_id in OWN:
                raise PipelineMisconfigured(
                    f"the operator id {operator_id!r} is the pipeline's own; name it otherwise"
                )
        elif operator_id != MAP or not self._has_map_operator:
            raise PipelineMisconfigured(
                f"the coordinator {operator_id!r} has no operator in the tasks: derive its "
                "provider from CoordinatedOperator, which makes both; or give it the operator id "
                "'map' and a map that is derived from MapOperator"
            )

    def _check_map(self) -> None:
        names = [setting.name for setting in self._settings]
        if self.map is None:
            if names:
                raise PipelineMisconfigured(
                    f"the settings {names} need a map that takes them; give a map with arguments "
                    "of these names"
                )
            return
        function = self.map.map if self._has_map_operator else self.map  # type: ignore[union-attr]
        given = (None, None) if self._has_map_operator else (None,)
        told = f"a batch and the settings {names} by name" if names else "a batch"
        _check_call(f"map {_name(function)}", function, given, dict.fromkeys(names), told)

    @property
    def _has_map_operator(self) -> bool:
        return isinstance(self.map, type) and issubclass(self.map, MapOperator)

    @property
    def _settings(self) -> list[Setting]:
        found = [one for one in self.coordinators if isinstance(one, Setting)]
        return [one for one in found if not isinstance(one, RateLimit)]

    def prepared(self, start: SinkStart, parallelism: int = 4, **settings: Any) -> PreparedJob:
        """Return the parts of one start; `settings` are further fields of `JobConfiguration`.

        The committer holds the sink's target: close it if the job is not started. Raises
        JobMisconfigured, and the errors of the sink's `create_committer`.
        """
        sink = self._as_sink()
        beside = tuple(one for one in self.coordinators if isinstance(one, CoordinatedOperator))
        own = (SOURCE, SINK, *([MAP, IN_FLIGHT] if self._has_map_operator else []))
        ways = {IN_FLIGHT: redistributed, **settings.pop("redistribute", {})}
        committer = sink.create_committer(start)
        try:
            writers = sink.create_coordinator(SINK, committer)
            providers = [SourceProvider(SOURCE, self.source), *self.coordinators]
            configuration = JobConfiguration(
                start.job_id,
                parallelism,
                (*providers, *([] if writers is None else [writers])),
                start.run_id,
                task_operators=(*own, *(one.operator_id for one in beside)),
                redistribute=ways,
                topology=CommitTopology.of(sink, committer),
                **settings,
            )
        except BaseException:
            committer.close()
            raise
        program = _ProgramFactory(self.source, self.map, sink, beside)
        return PreparedJob(configuration, program, committer, self.after_commit)

    def _as_sink(self) -> Sink:
        if isinstance(self.sink, Sink):
            return self.sink
        if isinstance(self.sink, Committer):
            return RecordSink(self.sink)
        return RecordSink(FunctionCommitter(self.sink))


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", function))


def _check_call(
    shown: str, function: Any, given: tuple[None, ...], named: dict[str, None], told: str
) -> None:
    """Refuse a function that cannot be called so, before anything runs; one that tells no signature
    is believed.
    """
    try:
        signature = inspect.signature(function)
        signature.bind(*given, **named)
    except ValueError:
        return
    except TypeError as error:
        missing = "; is a Setting missing in coordinators?" if not named and "map" in shown else ""
        raise PipelineMisconfigured(
            f"the {shown}{signature} is called with {told}: {error}{missing}"
        ) from None


@dataclass(frozen=True)
class _ProgramFactory:
    source: Source
    map: Callable[..., Any] | type[MapOperator] | None
    sink: Sink
    beside: tuple[CoordinatedOperator, ...]

    def __call__(self, subtask: int) -> PipelineProgram:
        has_operator = isinstance(self.map, type) and issubclass(self.map, MapOperator)
        settings = [one for one in self.beside if isinstance(one, Setting)]
        return PipelineProgram(
            SourceOperator(self.source),
            self.map() if has_operator and self.map is not None else self.map,
            SinkOperator(self.sink),
            beside={one.operator_id: one.create_operator() for one in self.beside},
            settings={
                one.name: one.operator_id for one in settings if not isinstance(one, RateLimit)
            },
            rate_limits=[one.operator_id for one in settings if isinstance(one, RateLimit)],
        )
