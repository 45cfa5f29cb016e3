"""The states of a checkpoint for another number of subtasks than it was taken with.

Decides nothing of an operator's state: its author says how that is redistributed; the operators
between the commits in the tasks begin without one. The coordinators'
states do not change, and neither do the committables: those of the checkpoint are committed by the
start that restores it, whatever the parallelism. The stored checkpoint stays as it is. Runs on the
thread that makes the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from epochgate.runtime.api.configuration import JobConfiguration
from epochgate.runtime.api.rescaling import NotRescalable, SubtaskStates, keep_nothing
from epochgate.runtime.api.sink_operator import writer_state
from epochgate.runtime.api.state_versions import FIRST
from epochgate.runtime.store import CompletedCheckpoint


def rescaled(
    checkpoint: CompletedCheckpoint, configuration: JobConfiguration
) -> CompletedCheckpoint:
    """The checkpoint for the job's parallelism, the same if that has not changed.

    Raises NotRescalable for an operator whose state is not redistributed, or whose author makes
    state for a subtask that the job does not have, or leaves one out.
    """
    if checkpoint.parallelism == configuration.parallelism:
        return checkpoint
    states: dict[str, dict[int, bytes]] = {}
    for subtask, by_operator in sorted(checkpoint.subtasks.items()):
        for operator_id, state in by_operator.items():
            states.setdefault(operator_id, {})[subtask] = writer_state(state)
    subtasks: dict[int, dict[str, bytes]] = {s: {} for s in range(configuration.parallelism)}
    versions: dict[int, dict[str, int]] = {}
    for operator_id, old in states.items():
        version = _version_of(checkpoint, operator_id, old)
        given = SubtaskStates(old, version)
        for subtask, new in _redistributed(checkpoint, configuration, operator_id, given).items():
            if new is None:
                continue
            subtasks[subtask][operator_id] = new
            if version != FIRST:
                versions.setdefault(subtask, {})[operator_id] = version
    return replace(
        checkpoint,
        parallelism=configuration.parallelism,
        subtasks=subtasks,
        versions=versions,
    )


def _version_of(
    checkpoint: CompletedCheckpoint, operator_id: str, states: Mapping[int, bytes]
) -> int:
    found = {checkpoint.versions.get(subtask, {}).get(operator_id, FIRST) for subtask in states}
    if len(found) > 1:
        raise NotRescalable(
            f"checkpoint {checkpoint.checkpoint_id} holds states of operator {operator_id!r} in "
            f"versions {sorted(found)}, which cannot be redistributed together. Start once with "
            f"parallelism {checkpoint.parallelism}, until a checkpoint is completed"
        )
    return found.pop()


def _redistributed(
    checkpoint: CompletedCheckpoint,
    configuration: JobConfiguration,
    operator_id: str,
    states: Mapping[int, bytes],
) -> Mapping[int, bytes | None]:
    of_providers = {p.operator_id: p.redistribute for p in configuration.providers}
    ways = {**of_providers, **configuration.redistribute}
    try:
        new = ways.get(operator_id, keep_nothing)(states, configuration.parallelism)
    except NotRescalable as error:
        raise NotRescalable(
            f"checkpoint {checkpoint.checkpoint_id} was taken with parallelism "
            f"{checkpoint.parallelism}, and this start asks for {configuration.parallelism}, which "
            f"operator {operator_id!r} cannot resume with: {error}. Start with parallelism "
            f"{checkpoint.parallelism}; or say how its states are redistributed, with "
            f"JobConfiguration.redistribute[{operator_id!r}] or CoordinatorProvider.redistribute"
        ) from error
    if unknown := sorted(set(new).difference(range(configuration.parallelism))):
        raise NotRescalable(
            f"the states of operator {operator_id!r} were redistributed to subtasks {unknown}, and "
            f"the job has subtasks 0 to {configuration.parallelism - 1}"
        )
    if missing := sorted(set(range(configuration.parallelism)).difference(new)):
        raise NotRescalable(
            f"the states of operator {operator_id!r} were redistributed without subtasks "
            f"{missing}. Return for each of the subtasks 0 to {configuration.parallelism - 1} "
            "its state, or None if it is to begin without one"
        )
    return new
