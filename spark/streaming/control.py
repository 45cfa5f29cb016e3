"""Control of a Structured Streaming query: values that change between two micro-batches.

    control = Control("pricing", initial={"limit": 900}, store="control")
    orders.writeStream.foreachBatch(control.apply(write)).option("checkpointLocation", c).start()
    control.update(limit=700)
    control.effective_from()        # 41: a replay of batch 40 sees 900 again

The machine `batch_decision` decides the values of a batch, which are stored before the function is
called. This module calls the function. The function that `apply` returns holds names only, so that
it can be pickled for a Spark Connect server. Runs where Spark calls the function, and wherever a
control is updated; thread-safe.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from epochgate.runtime.api.coordinator import CoordinatorProvider
from epochgate.runtime.entries.stores import Entries, open_entries
from epochgate.runtime.entries.waits import CALL_TIMEOUT_S, STORE_TIMEOUT_S, Waits
from epochgate.runtime.limited import Limit, limited
from epochgate.runtime.objects.client import ObjectStore, is_remote, open_url
from epochgate.runtime.steering.accepting import (
    author,
    in_force,
    insist_on_check,
    insist_on_fit,
)
from epochgate.runtime.steering.coordinated import Coordinated
from epochgate.runtime.steering.deciding import Deciding, Decision
from epochgate.runtime.steering.errors import (
    ControlUnusable,
    QueryUnknown,
    UpdatePending,
    ValueRefused,
)
from epochgate.runtime.steering.history import (
    Update,
    decisions,
    effective_from,
    kept,
    updates,
)
from epochgate.runtime.steering.layout import insist_on_name, queries_of
from epochgate.runtime.steering.values import Value, checked
from epochgate.runtime.steering.versions import Accept, Updating, Versions, accept_all
from epochgate.spark.streaming.control_note import note_of
from epochgate.spark.streaming.control_query import query_of
from epochgate.spark.streaming.guarding import Once

_PLAIN, _WITH_BATCH, _WITH_TRANSACTION = 2, 3, 4
"""How many arguments a function takes."""
_LOOK_S: Final = 0.02
_LOOK_MAX_S: Final = 1.0


def _named(control: str, given: Any) -> Value:
    """Named values of any kind of mapping; raises ValueRefused for anything else."""
    return checked(control, dict(given) if isinstance(given, Mapping) else given)


@dataclass
class _Counted:
    """Actions of this process: updates, batches decided, batches replayed, batches whose values
    changed, and the seconds that the last, the longest and all decisions took.
    """

    updated: int = 0
    decided: int = 0
    replayed: int = 0
    changed: int = 0
    last_s: float = 0.0
    longest_s: float = 0.0
    total_s: float = 0.0


class Control:
    """Named values of streaming queries, which change between two micro-batches.

    name: the name of the control in its store. initial: plain values by name, which apply to names
    that no update has set; not needed for a control that only updates or reads. store: a directory
    that all drivers reach, or a URL of an object store. coordinator: provides the BatchCoordinator
    that chooses the values of each batch; by default a batch has the newest values. check: is
    called with all values before they are in force, `initial`, those of each update of this object
    with all updates before it, and those that its coordinator chooses; it raises, or returns False,
    for values that are not valid. create: let `update` also make the control, and names that it
    does not have, with values of any type. store_timeout_s: the limit of each request to the store.
    coordinator_call_timeout_s: that of each call of the coordinator, and of `check`.

    Raises ControlUnusable, StoreUnusable, ValueRefused.
    """

    def __init__(
        self,
        name: str,
        initial: Mapping[str, Any] | None = None,
        *,
        store: str,
        coordinator: CoordinatorProvider | None = None,
        check: Callable[[Value], Any] | None = None,
        create: bool = False,
        store_timeout_s: float = STORE_TIMEOUT_S,
        coordinator_call_timeout_s: float = CALL_TIMEOUT_S,
        open_objects: Callable[[str], ObjectStore] = open_url,
        now: Callable[[], float] = time.time,
    ) -> None:
        insist_on_name("a control", name)
        self.name, self.store = name, store
        self._initial = None if initial is None else _named(name, initial)
        self._coordinator = coordinator
        self._check, self._creates = check, create
        if self._initial is not None:
            self._insist_on_check(self._initial)
        self._open_objects, self._now = open_objects, now
        self._waits = Waits(
            Limit("store_timeout_s", store_timeout_s),
            Limit("coordinator_call_timeout_s", coordinator_call_timeout_s),
        )
        self._updated = 0
        self._reset()

    def _reset(self) -> None:
        self._counted = _Counted()
        self._opened: Entries | None = None
        self._deciding: dict[str, Deciding] = {}
        self._updating: Updating | None = None
        """None while a thread updates."""
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs: no connection, and no figure of this one."""
        transient = ("_counted", "_opened", "_deciding", "_updating", "_lock")
        return {name: value for name, value in vars(self).items() if name not in transient}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin without what this process has not done."""
        vars(self).update(state)
        self._reset()

    def apply(
        self, function: Callable[..., Any], *, checkpoint: str | None = None
    ) -> Callable[..., Any]:
        """Return a function for `foreachBatch` that calls `function(df, values)` or
        `function(df, batch_id, values)` with the values of the batch, a new dict at each call.
        Within `once`, with a ledger that has a transaction, it calls
        `function(df, batch_id, values, transaction)`.

        checkpoint: the checkpoint location of the query; required with Spark Connect, which does
        not tell the function its query. Raises ControlUnusable.
        """
        if self._initial is None:
            raise ControlUnusable(
                f"control {self.name!r} has no initial values, which batches before the first "
                'update need; write Control(name, initial={"limit": 900}, store=...)'
            )
        if isinstance(function, Once):
            raise ControlUnusable(
                "`once` comes first, so that a batch that was done asks the control for nothing: "
                "once(ledger, control.apply(function))"
            )
        return Steered(self, function, takes=_taken(function), checkpoint=checkpoint)

    def source_options(self, where: str = "") -> dict[str, str]:
        """Return options for `spark.readStream.format("epochgate")`: the splits of the source, and
        the rows of its files, are those that match the values of the control when a batch is
        planned.

        where: a condition on rows of files, such as `"region IN :regions AND amount >= :limit"`, in
        which `:limit` is a value of the control, and None matches every row; empty for a `Source`
        of your own with `may_match`. Raises ControlUnusable, ConditionWrong.
        """
        # Reading files takes pyarrow, and those that only update a control do not read.
        from epochgate.spark.files.condition import parse_condition
        from epochgate.spark.streaming.source_filter import source_options

        if self._initial is None:
            raise ControlUnusable(
                f"control {self.name!r} has no initial values, by which splits are pruned before "
                'the first update; write Control(name, initial={"limit": 900}, store=...)'
            )
        if self._coordinator is not None:
            raise ControlUnusable(
                f"the coordinator of control {self.name!r} chooses values when a batch runs, and "
                "its splits were pruned before; give a control without a coordinator"
            )
        if where:
            parse_condition(where).bound(self._initial)
        store = self.store if is_remote(self.store) else os.path.abspath(self.store)
        return source_options(where, self.name, store, self._initial)

    def update(self, changes: Mapping[str, Any] | None = None, /, **named: Any) -> int:
        """Change some values, from the next planned batch on; the other values stay as they are.

        Return the version number of the update when it is durable. `check` is called again if an
        update of another process lands in between.

        Raises ValueRefused for a name or a type that the control does not have and for what `check`
        refuses, ControlMissing, UpdateFailed, UpdateInDoubt, or OSError.
        """
        changed = checked(self.name, {**_named(self.name, changes or {}), **named})
        if not changed:
            raise ValueRefused(f"the update of control {self.name!r} names no value")
        known = self._initial or {}
        if self._initial is None and not self._creates:
            known = in_force(self._entries, self.store, self.name)

        def accept(newest: Value, changes: Value) -> None:
            if not self._creates:
                types = {**known, **newest} if self._initial is None else known
                insist_on_fit(self.name, types, changes)
            self._insist_on_check({**known, **newest, **changes})

        self._updated = self._update(changed, accept)
        with self._lock:
            self._counted.updated += 1
        return self._updated

    def _update(self, changed: Value, accept: Accept) -> int:
        """Update with what an earlier update has read; one that has raised is left behind."""
        with self._lock:
            updating, self._updating = self._updating, None
        if updating is None:
            of = self._entries, self.store, self.name
            updating = Updating(*of, author(), self._now, waits=self._waits)
        updating.accept = accept
        version = updating.update(changed)
        updating.accept = accept_all
        self._updating = updating
        return version

    @property
    def value(self) -> Value:
        """The values for the next planned batch, or those from which its coordinator chooses.
        Raises OSError.
        """
        return {**(self._initial or {}), **Versions(self._entries, self.name).newest()[1]}

    def effective_from(
        self, version: int | None = None, *, query: str | None = None, wait_s: float = 60.0
    ) -> int:
        """Return the first batch with this update; wait until there is one.

        version: by default the last update of this process, or else the newest one. query: the id
        of the query, if several use the control. The answer never changes. Raises UpdatePending
        after `wait_s` seconds, HistoryForgotten, QueryUnknown, OSError.
        """
        if version is None:
            version = self._updated or Versions(self._entries, self.name).newest()[0]
        begun, pause = time.monotonic(), _LOOK_S
        while True:
            there = query or self._only_query()
            if there is not None:
                since = effective_from(self._entries, self.name, there, version)
                if since is not None:
                    return since
            left = begun + wait_s - time.monotonic()
            if left <= 0:
                raise UpdatePending(self.name, version, there or "(none so far)", wait_s)
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LOOK_MAX_S)

    def queries(self) -> list[str]:
        """Return the ids of the queries that use the control. Raises OSError."""
        return queries_of(self._entries, self.name)

    def history(self, *, query: str | None = None) -> list[Decision]:
        """Return the newest hundred decisions of a query, oldest first. Raises QueryUnknown,
        OSError.
        """
        there = query or self._only_query()
        return [] if there is None else decisions(self._entries, self.name, there)

    def updates(self) -> list[Update]:
        """Return the newest hundred updates, oldest first. Raises OSError."""
        return updates(self._entries, self.name)

    def metrics(self, *, query: str | None = None) -> dict[str, int | float]:
        """Return metrics by name: of this process, of the store, and of the query's newest batch,
        if there is one.

        query: the id of the query; required if several queries use the control. Raises
        QueryUnknown, OSError.
        """
        with self._lock:
            counted: dict[str, int | float] = asdict(self._counted)
        there = query or self._only_query()
        deciding = self._deciding.get(there or "")
        chosen = {} if deciding is None else deciding.metrics
        counted |= {f"coordinator.{name}": figure for name, figure in chosen.items()}
        return counted | kept(self._entries, self.name, there)

    def decide(self, query: str, batch: int) -> Decision:
        """Return the values of a batch, the same at each call. Raises BatchOvertaken,
        DecisionNotMade, ChoiceFailed, ControlUnusable.
        """
        begun = time.perf_counter()
        deciding = self._deciding.pop(query, None) or self._made(query)
        try:
            decision = deciding.decide(batch)
        except BaseException:
            # One that has raised is left behind: its machine is in the midst of a batch.
            deciding.close()
            raise
        self._deciding[query] = deciding
        self._count(decision, deciding.is_replay, time.perf_counter() - begun)
        return decision

    def close(self) -> None:
        """Close the coordinators of this process, after its queries have stopped; a query that
        starts later restores another.
        """
        for query in list(self._deciding):
            self._deciding.pop(query).close()

    def returned(self, query: str, batch: int, value: Any) -> None:
        """Keep what the function returned for a batch, for the coordinator's next choice. Raises
        ValueRefused.
        """
        self._deciding[query].returned(batch, value)

    def _made(self, query: str) -> Deciding:
        insist_on_name("a query", query)
        of = self._entries, self.store, self.name, query, self._initial or {}
        if self._coordinator is None:
            return Deciding(*of, self._now, self._waits)
        check = self._insist_on_check
        return Coordinated(*of, self._coordinator, check, self._now, self._waits)

    def _count(self, decision: Decision, is_replay: bool, took_s: float) -> None:
        figures = self._counted
        with self._lock:
            figures.decided += not is_replay
            figures.replayed += is_replay
            figures.changed += (
                bool(decision.version) and decision.since == decision.batch and not is_replay
            )
            figures.last_s, figures.longest_s = took_s, max(took_s, figures.longest_s)
            figures.total_s += took_s

    @property
    def _entries(self) -> Entries:
        if self._opened is None:
            self._opened = limited(
                f"opening {self.store!r}",
                self._waits.store,
                lambda: open_entries(self.store, self._open_objects),
            )
        return self._opened

    def _insist_on_check(self, value: Value) -> None:
        insist_on_check(self.name, self._check, value)

    def _only_query(self) -> str | None:
        there = self.queries()
        if len(there) > 1:
            raise QueryUnknown(
                f"{len(there)} queries use control {self.name!r}: {', '.join(there)}. Name one by "
                "query=ID (a query's `id`)"
            )
        return there[0] if there else None


class Steered:
    """The function of a query, with the values of its batch."""

    def __init__(
        self,
        control: Control,
        function: Callable[..., Any],
        *,
        takes: tuple[int, ...],
        checkpoint: str | None,
    ) -> None:
        self._control, self._function = control, function
        self._takes, self._checkpoint = takes, checkpoint

    def __call__(self, frame: Any, batch: int, *transaction: Any) -> Any:
        """Called by Spark, or by `once`. Raises BatchOvertaken, DecisionNotMade, ChoiceFailed,
        QueryUnknown, ControlUnusable, ValueRefused.
        """
        if transaction and _WITH_TRANSACTION not in self._takes:
            raise ControlUnusable(
                f"{_shown(self._function)} is called with the transaction of a ledger, as "
                "function(df, batch_id, values, transaction)"
            )
        if not transaction and self._takes == (_WITH_TRANSACTION,):
            raise ControlUnusable(
                f"{_shown(self._function)} takes a transaction, and there is none: it comes from a "
                "ledger of `once` in PostgreSQL, Delta Lake or Iceberg"
            )
        query = query_of(frame, self._checkpoint, self._control._open_objects)
        decision = self._control.decide(query, batch)
        try:
            result = self._call(frame, batch, copy.deepcopy(decision.value), transaction)
            self._control.returned(query, batch, result)
        except BaseException as error:
            # Where the store does not answer, the error is told without who has set the values.
            updates: list[Update] = []
            with contextlib.suppress(OSError, ValueError):
                updates = self._control.updates()
            error.add_note(note_of(self._control.name, decision, updates))
            raise
        return result

    def _call(self, frame: Any, batch: int, values: Value, transaction: tuple[Any, ...]) -> Any:
        if transaction:
            return self._function(frame, batch, values, *transaction)
        if self._takes[0] == _WITH_BATCH:
            return self._function(frame, batch, values)
        return self._function(frame, values)


def _taken(function: Callable[..., Any]) -> tuple[int, ...]:
    """With how many arguments it may be called. Raises ControlUnusable."""
    found = []
    for arguments in (_PLAIN, _WITH_BATCH, _WITH_TRANSACTION):
        try:
            inspect.signature(function).bind(*[None] * arguments)
        except TypeError:
            continue
        found.append(arguments)
    if found:
        return tuple(found)
    raise ControlUnusable(f"{_shown(function)} must take (df, values) or (df, batch_id, values)")


def _shown(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", repr(function))
    return f"{name}{inspect.signature(function)}"
