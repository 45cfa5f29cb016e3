"""`epochgate checkpoints`: which checkpoints a job has, what they hold, whether they are whole."""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochgate.commands.status import aligned
from epochgate.console import say
from epochgate.errors import UsageError
from epochgate.exit_codes import codes_of
from epochgate.runtime.durations import clock

if TYPE_CHECKING:
    from epochgate.runtime.store.checkpoint import CompletedCheckpoint
    from epochgate.runtime.store.inspection import StoredCheckpoint

ACTIONS = ("list", "show", "verify", "export")
WHOLE, DAMAGED, GONE, UNREADABLE = "whole", "damaged", "gone", "unreadable"

HELP = "list, show, verify or export a job's checkpoints"
DESCRIPTION = """\
List the checkpoints of a job, show the contents of one, or verify that all of
them can be read. The command only reads; a running job is not affected."""

EPILOG = f"""\
examples:
  epochgate checkpoints list table            of `epochgate ingest incoming table`
  epochgate checkpoints show table 12         states by operator, committables by subtask
  epochgate checkpoints verify s3://jobs/orders/checkpoints
  epochgate checkpoints export table -o checkpoint.json
                                              all of the newest, states in base64

{codes_of("checkpoints")}"""


class NoCheckpoint(UsageError):
    """A checkpoint was asked for that is not there."""


class OutputRefused(UsageError):
    """The file of --output cannot be written."""


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help=", ".join(ACTIONS))
    parser.add_argument(
        "place",
        metavar="DIR",
        help="a target of `epochgate ingest`, the working directory beside it, a directory of "
        "checkpoints, a savepoint, or the URL of any of them in an object store",
    )
    parser.add_argument(
        "id", type=int, nargs="?", metavar="ID", help="of one checkpoint (default: the newest)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="of export (default: standard output)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Do it; 1 when a checkpoint is damaged or cannot be read."""
    stored = stored_at(_looked_into(arguments.place))
    if arguments.action in ("show", "export"):
        chosen = _chosen(stored, arguments.place, arguments.id)
        checkpoint = chosen.load()
        if arguments.action == "export":
            _write(json.dumps(exported(checkpoint)), arguments.output)
        elif arguments.json:
            print(json.dumps({**summary(checkpoint), **_parts_of(chosen)}))
        else:
            say([*told(checkpoint), *_told_parts(chosen)])
        return 0
    if arguments.id is not None:
        stored = [_chosen(stored, arguments.place, arguments.id)]
    found = [looked_at(one) for one in stored]
    if arguments.json:
        print(json.dumps(found))
    else:
        say(listed(found, is_verified=arguments.action == "verify"))
    return int(any(one["state"] in (DAMAGED, UNREADABLE) for one in found))


def checkpoints_of(place: str) -> str:
    """The directory or URL of the checkpoints that belong to `place`; see `checkpoints_in`."""
    from epochgate.runtime.observing.status import checkpoints_in

    return checkpoints_in(place)


def stored_at(where: str) -> list[StoredCheckpoint]:
    """The checkpoints in a directory or at a URL, oldest first. Raises NoCheckpoint."""
    from epochgate.runtime.store.inspection import stored_checkpoints

    stored = stored_checkpoints(where)
    if not stored:
        raise NoCheckpoint(
            f"{where} holds no checkpoint: its job has completed none so far, or keeps them "
            "elsewhere (--checkpoint-dir); then name that place"
        )
    return stored


def _looked_into(place: str) -> str:
    from epochgate.runtime.store.inspection import SAVEPOINT_NAME

    is_savepoint = os.path.exists(os.path.join(place, SAVEPOINT_NAME))
    return place if is_savepoint else checkpoints_of(place)


def _chosen(
    stored: Sequence[StoredCheckpoint], place: str, checkpoint_id: int | None
) -> StoredCheckpoint:
    found = [one for one in stored if checkpoint_id is None or one.checkpoint_id == checkpoint_id]
    whole = [one for one in found if not one.is_aside]
    if not found:
        ids = ", ".join(str(one.checkpoint_id) for one in stored)
        raise NoCheckpoint(f"{place} holds no checkpoint {checkpoint_id}, but {ids}")
    return (whole or found)[-1]


def looked_at(one: StoredCheckpoint) -> dict[str, Any]:
    """Tell of a stored checkpoint, which is read as a whole, as plain values."""
    from epochgate.runtime.store.errors import (
        CheckpointDamaged,
        CheckpointFormatUnknown,
        CheckpointNotFound,
        CheckpointStoreUnusable,
    )

    known: dict[str, Any] = {"checkpoint_id": one.checkpoint_id, "source": one.source}
    try:
        return {**known, "state": WHOLE, **summary(one.load())}
    except CheckpointDamaged as damage:
        return {**known, "state": DAMAGED, "reason": damage.reason}
    except CheckpointNotFound as error:
        return {**known, "state": GONE, "reason": str(error)}
    except (CheckpointFormatUnknown, CheckpointStoreUnusable) as error:
        return {**known, "state": UNREADABLE, "reason": str(error)}


def summary(checkpoint: CompletedCheckpoint) -> dict[str, Any]:
    """A checkpoint without its states: their sizes in bytes instead."""
    return {
        "checkpoint_id": checkpoint.checkpoint_id,
        "job_id": checkpoint.job_id,
        "run_id": checkpoint.run_id,
        "created_at": checkpoint.created_at,
        "parallelism": checkpoint.parallelism,
        "coordinator_bytes": {
            operator: None if state is None else len(state)
            for operator, state in checkpoint.coordinators.items()
        },
        "operator_bytes": {
            operator: {
                str(subtask): len(states[operator])
                for subtask, states in checkpoint.subtasks.items()
                if operator in states
            }
            for operator in sorted({name for each in checkpoint.subtasks.values() for name in each})
        },
        "committables": {
            str(subtask): len(values) for subtask, values in checkpoint.committables.items()
        },
        "uncommitted": {
            str(earlier): len(values) for earlier, values in checkpoint.uncommitted.items()
        },
        "versions": {
            operator: sorted(found) for operator, found in sorted(_versions(checkpoint).items())
        },
        "begun_from": checkpoint.begun_from or None,
        "properties": sorted(checkpoint.properties),
    }


def _versions(checkpoint: CompletedCheckpoint) -> dict[str, set[int]]:
    """The versions of states that are not the first, by operator; those of coordinators too."""
    found: dict[str, set[int]] = {}
    for each in (checkpoint.coordinator_versions, *checkpoint.versions.values()):
        for operator, version in each.items():
            found.setdefault(operator, set()).add(version)
    return found


def exported(checkpoint: CompletedCheckpoint) -> dict[str, Any]:
    """All of a checkpoint as JSON has it; bytes are {"base64": text}."""
    values: dict[str, Any] = plain(asdict(checkpoint))
    return values


def plain(value: Any) -> Any:
    """A plain value as JSON has it; bytes are {"base64": text}."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def listed(found: Sequence[dict[str, Any]], *, is_verified: bool) -> Iterator[str]:
    """The text of `list` and `verify`, line by line."""
    from epochgate.runtime.api.reports import size

    now = time.time()
    rows = [("checkpoint", "taken", "states", "subtasks", "to commit", "")]
    for one in found:
        if one["state"] != WHOLE:
            rows.append((str(one["checkpoint_id"]), "-", "-", "-", "-", _trouble(one)))
            continue
        rows.append(
            (
                str(one["checkpoint_id"]),
                clock(one["created_at"], now),
                size(_state_bytes(one)),
                str(one["parallelism"]),
                f"{sum(one['committables'].values()) + sum(one['uncommitted'].values()):,}",
                WHOLE if is_verified else "",
            )
        )
    yield from aligned(rows)
    if is_verified:
        whole = sum(one["state"] == WHOLE for one in found)
        yield f"{whole} of {len(found)} whole"


def _trouble(one: dict[str, Any]) -> str:
    return f"{one['state']}: {one['reason']} ({one['source']})"


def _state_bytes(one: dict[str, Any]) -> int:
    of_subtasks = sum(sum(each.values()) for each in one["operator_bytes"].values())
    of_coordinators = sum(filter(None, one["coordinator_bytes"].values()))
    return int(of_subtasks + of_coordinators)


def told(checkpoint: CompletedCheckpoint) -> Iterator[str]:
    """The text of `show`, line by line."""
    from epochgate.runtime.api.reports import size

    one = summary(checkpoint)
    yield f"checkpoint {checkpoint.checkpoint_id} of job {checkpoint.job_id}"
    taken = clock(checkpoint.created_at, time.time())
    yield f"taken {taken} by run {checkpoint.run_id}, {checkpoint.parallelism} subtasks"
    yield ""
    rows = [("operator", "coordinator", "subtasks", "smallest", "largest", "in all")]
    for operator in sorted({*one["coordinator_bytes"], *one["operator_bytes"]}):
        coordinator = one["coordinator_bytes"].get(operator)
        states = one["operator_bytes"].get(operator, {}).values()
        rows.append(
            (
                operator,
                "-" if coordinator is None else size(coordinator),
                str(len(states)),
                *(size(value) if states else "-" for value in _extent(states)),
            )
        )
    yield from aligned(rows)
    yield ""
    handed_over = sum(one["committables"].values())
    yield f"committables: {handed_over:,} of {len(one['committables'])} subtasks"
    for earlier, count in one["uncommitted"].items():
        yield f"not known to be committed: {count:,} of checkpoint {earlier}"
    for operator, versions in one["versions"].items():
        yield f"state of {operator}: version {', '.join(map(str, versions))}"
    if one["begun_from"]:
        yield f"begun from savepoint {one['begun_from']}"
    if one["properties"]:
        yield f"properties: {', '.join(one['properties'])}"


def _parts_of(chosen: StoredCheckpoint) -> dict[str, int]:
    parts = chosen.parts()
    return {"parts": len(parts), "part_bytes": sum(part.length for part in parts)}


def _told_parts(chosen: StoredCheckpoint) -> Iterator[str]:
    from epochgate.runtime.api.reports import size

    found = _parts_of(chosen)
    if found["parts"]:
        yield (
            f"in parts of their own: {size(found['part_bytes'])} of the states, {found['parts']:,} "
            "parts, which other checkpoints may refer to"
        )


def _extent(states: Any) -> tuple[int, int, int]:
    return (min(states), max(states), sum(states)) if states else (0, 0, 0)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text + "\n")
        return
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputRefused(f"cannot write {output} (-o): {error.strerror}") from error
