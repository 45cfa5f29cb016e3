"""The fitting of a restored checkpoint to the operators of this start.

Decides nothing: what may be left behind is named by the configuration, and how states are
redistributed is said by their authors. What the tasks' operators are is known here for pipelines
and ingestions; of other programs each task looks for itself. Runs on the thread that makes the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from epochgate.errors import UsageError
from epochgate.runtime.api.commit_topology import CommitTopology
from epochgate.runtime.api.configuration import JobConfiguration, JobMisconfigured
from epochgate.runtime.api.dropped_state import StateWithoutOperator
from epochgate.runtime.api.state_versions import FIRST, StateTooNew
from epochgate.runtime.shell.rescaling import rescaled
from epochgate.runtime.store import CompletedCheckpoint
from epochgate.runtime.store.places import BEFORE, BEHIND, TASKS, places_of, states_of


class StepMissing(UsageError):
    """A restored checkpoint has committables in a step of the commit that the sink lacks: the
    checkpoint, an earlier one of its ledger, the step.
    """

    def __str__(self) -> str:
        checkpoint, earlier, step = self.args
        return (
            f"checkpoint {checkpoint} holds committables of checkpoint {earlier} on their way "
            f"through {step}, which the sink does not have. Start with the sink that the "
            "checkpoint was taken with until its commits are done, and then with the other one"
        )


class StageMismatch(UsageError):
    """A checkpoint holds states of other operators between the commits: its number, how many, how
    many the sink has.
    """

    def __str__(self) -> str:
        checkpoint, stored, own = self.args
        return (
            f"checkpoint {checkpoint} holds states of {stored} operators with parallelism 1 "
            f"between its commits, and the sink has {own}: start with the operators that it was "
            "taken with"
        )


def fitted(checkpoint: CompletedCheckpoint, configuration: JobConfiguration) -> CompletedCheckpoint:
    """The checkpoint for this start: without what may be dropped, for its parallelism.

    Raises StateWithoutOperator, StateTooNew, NotRescalable, StepMissing, StageMismatch, and
    JobMisconfigured where state is to be dropped of an operator that the job has.
    """
    _insist_on_steps(checkpoint, configuration.topology)
    kept = _without(checkpoint, configuration)
    _insist_on_operators(kept, configuration)
    _insist_on_versions(kept, configuration)
    return rescaled(kept, configuration)


def _without(
    checkpoint: CompletedCheckpoint, configuration: JobConfiguration
) -> CompletedCheckpoint:
    dropped = set(configuration.allow_dropped_state)
    if there := sorted(dropped & {*configuration.operator_ids, *configuration.task_operators}):
        raise JobMisconfigured(
            f"allow_dropped_state names {there}, and the job has operators of these ids, which "
            "begin from their states. Name operators that the job does not have any more"
        )
    if not dropped:
        return checkpoint
    return replace(
        checkpoint,
        coordinators=_kept(checkpoint.coordinators, dropped),
        coordinator_versions=_kept(checkpoint.coordinator_versions, dropped),
        versions={
            subtask: _kept(versions, dropped) for subtask, versions in checkpoint.versions.items()
        },
        subtasks={
            subtask: _kept(states, dropped) for subtask, states in checkpoint.subtasks.items()
        },
    )


def _kept(by_operator: Mapping[str, Any], dropped: set[str]) -> dict[str, Any]:
    return {name: value for name, value in by_operator.items() if name not in dropped}


def _insist_on_operators(checkpoint: CompletedCheckpoint, configuration: JobConfiguration) -> None:
    coordinators, operators = configuration.operator_ids, configuration.task_operators
    left = {
        name: len(state)
        for name, state in checkpoint.coordinators.items()
        if state and name not in coordinators
    }
    if operators:
        for states in checkpoint.subtasks.values():
            for name, state in states.items():
                if state and name not in operators:
                    left[name] = left.get(name, 0) + len(state)
    if left:
        what = f"checkpoint {checkpoint.checkpoint_id} of job {checkpoint.job_id!r}"
        raise StateWithoutOperator(what, left, {*coordinators, *operators})


def _insist_on_steps(checkpoint: CompletedCheckpoint, topology: CommitTopology) -> None:
    for side in (BEFORE, BEHIND):
        if states := states_of(checkpoint, side):
            own = len(topology.on_driver(is_before=side == BEFORE))
            if len(states) != own:
                raise StageMismatch(checkpoint.checkpoint_id, len(states), own)
    for earlier, place in places_of(checkpoint).items():
        if place.at == TASKS and not topology.in_tasks:
            raise StepMissing(checkpoint.checkpoint_id, earlier, "the committers in the tasks")


def _insist_on_versions(checkpoint: CompletedCheckpoint, configuration: JobConfiguration) -> None:
    """Refuse at once what a coordinator would refuse at its reset."""
    for provider in configuration.providers:
        version = checkpoint.coordinator_versions.get(provider.operator_id, FIRST)
        if version > provider.state_version:
            what = (
                f"the state of coordinator {provider.operator_id!r} in checkpoint "
                f"{checkpoint.checkpoint_id}"
            )
            raise StateTooNew(what, version, provider.state_version)
