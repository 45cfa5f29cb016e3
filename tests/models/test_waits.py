"""Each wait has its limit: those of the machines' messages, and those of the shells around them.

`test_answers` holds each message that can fail to its answers; here is how long these are waited
for.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from epochgate.models.catalogue import MACHINES
from epochgate.runtime import JobConfiguration
from epochgate.runtime.source.batches.planning import Planning
from epochgate.runtime.steering import Updating
from epochgate.runtime.steering.coordinated import Coordinated
from epochgate.spark.compaction.run import CompactionRun
from epochgate.spark.streaming.batch_commit import BatchCommit
from tests.models.test_answers import FALLIBLE

ROOT = Path(__file__).parents[2]

BY_WATCHDOG = "the call holds the queue's thread: the watchdog ends the job at its limit"
BY_TRANSPORT = (
    "a call into the JVM, on the thread that asks Spark: where that does not look any more while a "
    "process is missing, the transport ends the job after `process_timeout_s`"
)
BY_HEAR_LIMIT = "the queue is asked through `LimitedCalls`, with the limit `HEAR_LIMIT`"
WITHOUT_LIMIT = {
    "compaction.target.stage": "merging takes as long as there are rows; it is warned of",
    "discovery.source.confirm": BY_HEAR_LIMIT,
    "discovery.source.hear": BY_HEAR_LIMIT,
    "holder.user.event": BY_WATCHDOG,
    "holder.user.unfit": "no call: the failure is posted to the queue",
    "lifecycle.driver.restart_all": BY_WATCHDOG,
    "lifecycle.driver.restart_one": BY_WATCHDOG,
    "placement.spark.remove_executor": BY_TRANSPORT,
    "placement.spark.turn_away": BY_TRANSPORT,
    **dict.fromkeys(
        (f"table_owner.table.{name}" for name in ("claim", "ask", "make", "enter", "name")),
        "a commit and a start have limits of their own, which the job keeps",
    ),
    "resident.process.begin": "the attempt; a hanging operator is named, and `cancel` ends it",
    "resident.process.clear": "the driver ends a released process that does not come back within "
    "`RETURN_PATIENCE_S`",
}
"""Messages that are waited for without an option, and are not answered within the event."""


def test_each_message_that_can_fail_is_answered_in_its_event_or_has_a_limit() -> None:
    unlimited = {
        name for name, answers in FALLIBLE.items() if not answers.within and not answers.is_in_event
    }
    assert unlimited == set(WITHOUT_LIMIT)


ROOMS: dict[str, tuple[type, ...]] = {
    "batch_decision": (Coordinated,),
    "batch_plan": (Planning,),
    "control_update": (Updating,),
    "query_batch": (BatchCommit,),
    "compaction": (CompactionRun,),
}
"""The shells without a queue, which call a machine and wait: they ask through `LimitedCalls`."""


@cache
def calls_of(room: type, method: str) -> frozenset[str]:
    """The attributes that a method calls or passes on, with those of the methods of its class."""
    found: set[str] = set()
    seen: set[tuple[type, str]] = set()
    todo = [(kind, method) for kind in room.__mro__ if method in vars(kind)]
    while todo:
        kind, name = todo.pop()
        if (kind, name) in seen:
            continue
        seen.add((kind, name))
        function = vars(kind)[name]
        if not inspect.isfunction(function):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                found.add(ast.unparse(node))
                todo += [(one, node.attr) for one in room.__mro__ if node.attr in vars(one)]
    return frozenset(found)


def questions() -> Iterator[tuple[str, str]]:
    for name, answers in FALLIBLE.items():
        machine, _, message = name.split(".")
        if machine in ROOMS and answers.within:
            yield machine, message


@pytest.mark.parametrize(("machine", "message"), [*questions()])
def test_a_shell_without_a_queue_asks_with_a_limit(machine: str, message: str) -> None:
    for room in ROOMS[machine]:
        assert "self._calls.call" in calls_of(room, message)


OUTSIDE = ("_entries", "_versions", "_target", "_side", "_enumerator", "_chooser")
"""What a room holds of the outside: stores, targets, and objects of the user's."""
DIRECT = {
    ("Planning._states", "self._entries.numbers"): "its caller is within a call with a limit",
    ("Planning._states", "self._entries.get"): "its caller is within a call with a limit",
    ("BatchCommit._applied", "self._target.apply"): "a function of the user's, which is watched",
    ("BatchCommit.refused", "self._target.refusal"): "words",
    ("CompactionRun.stage", "self._side.stage"): "merging, which is watched",
    ("Updating._found", "self._versions.newest"): "its caller is within a call with a limit",
}


def direct_calls(room: type) -> Iterator[tuple[str, str]]:
    """The methods that call the outside by themselves, and not in what they pass on."""
    for kind in room.__mro__[:-1]:
        [declared] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        assert isinstance(declared, ast.ClassDef)
        for method in declared.body:
            if isinstance(method, ast.FunctionDef):
                for call in _calls_in(method.body):
                    name = ast.unparse(call.func)
                    if name.startswith("self.") and name.split(".")[1] in OUTSIDE:
                        yield f"{kind.__name__}.{method.name}", name


def _calls_in(nodes: list[ast.stmt]) -> Iterator[ast.Call]:
    todo: list[ast.AST] = [*nodes]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Lambda | ast.FunctionDef):
            continue
        if isinstance(node, ast.Call):
            yield node
        todo += ast.iter_child_nodes(node)


def test_a_shell_without_a_queue_calls_the_outside_in_what_it_passes_on_alone() -> None:
    found = {call for rooms in ROOMS.values() for room in rooms for call in direct_calls(room)}
    assert found == set(DIRECT)


OF_QUEUES = {
    *("attempt", "batch_snapshot", "checkpoint", "committer", "holder"),
    *("post_commit", "recreation", "snapshot", "stage_before", "stage_behind", "subtask_committer"),
}
"""Machines of jobs, whose limits are timers of the queue, and the watchdog's."""


def test_each_machine_with_limits_has_a_room_in_which_they_are_kept() -> None:
    machines = {name.split(".")[0] for name, answers in FALLIBLE.items() if answers.within}
    assert machines == {*ROOMS, *OF_QUEUES}
    assert machines <= set(MACHINES)


# ---- the code of the shells -------------------------------------------------------------------

Site = tuple[str, str]
"""A file and the source of an expression in it."""


def programs() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("runtime", "spark"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith("runtime/testing/"):
                yield name, _parsed(path)


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


BLOCKING = ("acquire", "communicate", "exception", "get", "join", "result", "wait")
IS_DONE = "a future that is done"
OWN_THREAD = "a thread of ours waits for its next work, and nothing waits for it"
AT_ONCE = "a thread of ours that was told to end, and does nothing that could hang"
USERS = "the user waits for the job; `cancel` ends it"
NO_WAIT = "no wait"
UNLIMITED: dict[Site, str] = {
    ("runtime/collect/rows.py", "result.result()"): IS_DONE,
    ("runtime/in_doubt.py", "loop.join()"): "a job that ends by its own limits",
    ("runtime/limited.py", "calls.get()"): OWN_THREAD,
    ("runtime/limited.py", "self._running.acquire()"): "a lock that was made a line before",
    ("runtime/observing/metrics_page.py", "self._thread.join()"): AT_ONCE,
    ("runtime/observing/own_thread.py", "self._waiting.get()"): OWN_THREAD,
    ("runtime/shell/asyncio_loop.py", "task.exception()"): IS_DONE,
    ("runtime/shell/asyncio_loop.py", "task.result()"): IS_DONE,
    ("runtime/shell/batch_snapshots.py", "future.exception()"): IS_DONE,
    ("runtime/shell/batch_snapshots.py", "result.exception()"): IS_DONE,
    ("runtime/shell/batch_snapshots.py", "result.result()"): IS_DONE,
    ("runtime/shell/blocking_work.py", "self._work.get()"): OWN_THREAD,
    ("runtime/shell/client_requests.py", "done.exception()"): IS_DONE,
    ("runtime/shell/client_requests.py", "done.result()"): IS_DONE,
    ("runtime/shell/coordinators.py", "done.exception()"): IS_DONE,
    ("runtime/shell/coordinators.py", "result.exception()"): IS_DONE,
    ("runtime/shell/coordinators.py", "result.result()"): IS_DONE,
    ("runtime/shell/futures.py", "done.exception()"): IS_DONE,
    ("runtime/shell/futures.py", "done.result()"): IS_DONE,
    ("runtime/shell/queue_thread.py", "self._is_closed.wait()"): "the queue's thread is over: it "
    "closes within `end_timeout_s`",
    ("runtime/shell/savepoints.py", "checkpoint.exception()"): IS_DONE,
    ("runtime/shell/watchdog.py", "self._thread.join()"): AT_ONCE,
    ("spark/endings.py", "self._expected.get()"): OWN_THREAD,
    ("spark/failing_jobs.py", "group.get()"): NO_WAIT,
    ("spark/hellos.py", "self._put_off.get()"): OWN_THREAD,
    ("spark/ingest/discovering.py", "self._asked.get()"): OWN_THREAD,
    ("spark/ingest/run.py", "handle.wait()"): USERS,
    ("spark/handle.py", "self._requests.join()"): AT_ONCE,
    ("spark/pipeline.py", "job.wait()"): USERS,
    ("spark/resident_job.py", "task.errorMessage().get()"): NO_WAIT,
    ("spark/session.py", "process.wait()"): "a process that was killed",
    ("spark/streaming/tasks.py", "TaskContext.get()"): NO_WAIT,
    ("spark/task_main.py", "TaskContext.get()"): NO_WAIT,
    ("spark/wire/client.py", "self._heart.join()"): AT_ONCE,
    ("spark/wire/server.py", "thread.join()"): AT_ONCE,
}
"""Calls that block without a time, and why they may."""


def test_no_shell_waits_without_a_time() -> None:
    found = {
        (name, ast.unparse(node))
        for name, tree in programs()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in BLOCKING
        and not node.args
        and not node.keywords
    }
    assert found == set(UNLIMITED)


def functions_that(call: Callable[[ast.Call], bool]) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The innermost functions with such a call."""
    for name, tree in programs():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and any(
                isinstance(node, ast.Call) and call(node) for node in ast.walk(function)
            ):
                yield name, function


def submits(node: ast.Call) -> bool:
    return ast.unparse(node.func).endswith("blocking.submit")


def makes_wait(node: ast.Call) -> bool:
    return ast.unparse(node.func) == "Wait"


def test_work_that_goes_to_a_lane_is_waited_for() -> None:
    assert not [
        name
        for name, function in functions_that(submits)
        if not any(isinstance(n, ast.Call) and makes_wait(n) for n in ast.walk(function))
    ]


def is_watched(node: ast.Call) -> bool:
    return ast.unparse(node.func) == "in_lane"


def test_each_wait_names_an_option_and_what_its_end_fires_or_warns_alone() -> None:
    options = {field.name for field in fields(JobConfiguration)}
    waits = [
        node
        for _, function in functions_that(is_watched)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and is_watched(node)
    ]
    assert len(waits) >= 5
    for wait in waits:
        given = {keyword.arg: keyword.value for keyword in wait.keywords}
        assert ("option" in given) == ("expired" in given)
        if "option" in given:
            assert ast.literal_eval(given["option"]) in options
