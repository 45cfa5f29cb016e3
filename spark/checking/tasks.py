"""What the tasks of a search do with a partition: spread a level, settle the next, look back.

To spread is to expand the partition's states of a level: successors that belong to it are entered
at once, and those of others leave in boxes. To settle is to enter what has come, examine the new
states, and write them. Both give the same result however often they are run, on whichever host:
a store that does not hold the level before is made again from the files of the levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from epochgate.fsm.checker.engines import partition_kernels as k
from epochgate.fsm.checker.engines.search import DEADLOCK, PROPERTY
from epochgate.spark.checking.code import Code, address, kernels
from epochgate.spark.checking.levels import completed, read_part, write_part
from epochgate.spark.checking.store import (
    END,
    FIRST,
    IS_SPREAD,
    NEXT,
    TAG,
    Folder,
    Store,
    StoreFull,
)

BOX_BYTES: Final = 1 << 20
"""What travels at once to another partition, if boxes of this size hold some batches."""
SENT_BITS_MIN, SENT_BITS_MAX = 10, 22
"""States that were sent of late and are not sent again, as a power of two: about twice as many as
are expanded, since to send one costs more than to look one up.
"""
Settings = Mapping[str, Any]


class _Host:
    """What a process keeps of one search between its tasks."""

    def __init__(self, token: str) -> None:
        self.token, self.folder = token, Folder(token)
        self.stores: dict[int, Store] = {}

    def close(self) -> None:
        for store in self.stores.values():
            store.close()
        self.folder.close()


_hosts: list[_Host] = []
"""Of the search that this process works on, if it does."""


def _host(token: str) -> _Host:
    if _hosts and _hosts[0].token != token:
        _hosts.pop().close()
    if not _hosts:
        _hosts.append(_Host(token))
    return _hosts[0]


class Work:
    """A task of one partition: the store, and the buffers that the kernels write to."""

    def __init__(self, settings: Settings, partition: int) -> None:
        self.partition, self.level = partition, int(settings["level"])
        self.parts, self.demanded = int(settings["parts"]), int(settings["demanded"])
        self.directory, self.token = Path(settings["directory"]), str(settings["token"])
        self.is_one_host = bool(settings["is_one_host"])
        self.code: Code = Code(**settings["code"].value)
        self.kernels = kernels(self.code.text)
        host = _host(self.token)
        if partition not in host.stores:
            host.stores[partition] = Store(host.folder.path, partition, self.code, self.kernels)
        self.store = host.stores[partition]
        room = k.BATCH + self.code.fanout
        self.status = np.zeros(k.STATUS_WORDS, np.int64)
        self.status[[k.OWN, k.PARTS]] = partition, self.parts
        self.status[[k.FAULT, k.STEP]] = -1
        self.out = np.empty((room, self.code.words), np.int64)
        self.act = np.empty(room, np.uint16)
        self.hashes, self.owners = np.empty(room, np.int64), np.empty(room, np.int64)
        self.covered = np.zeros(self.code.covers + 1, np.uint8)

    @contextmanager
    def at_level(self) -> Iterator[None]:
        """Hold the store, with the levels up to the one that is complete and no further."""
        with self.store.held():
            levels = completed(self.directory, self.token, self.level)
            tag = levels[-1].parts[self.partition].tag if levels else 0
            if not self.store.is_at(tag):
                self.store.reset()
                for number, level in enumerate(levels):
                    part, words = level.parts[self.partition], self.code.words
                    states = read_part(self.directory, number, self.partition, part, words)
                    self.store.append(states)
                self.store.head[TAG] = tag
            with self.store.changing():
                yield

    def spread(self, *, is_sending: bool) -> Iterator[tuple[int, bytes | str]]:
        """Expand the level: states for other partitions, if they are wanted, or the names by which
        this host keeps them, if there is no other. Raises StoreFull.
        """
        store, status = self.store, self.status
        box = max(BOX_BYTES // self.code.state_bytes, 4 * (k.BATCH + self.code.fanout))
        boxes = np.empty(self.parts * box * self.code.words, np.int64)
        filled = np.zeros(self.parts, np.int64)
        states = int(store.head[END] - store.head[FIRST])
        bits = max(SENT_BITS_MIN, min(SENT_BITS_MAX, (2 * states).bit_length()))
        sent = np.full(self.code.words << bits, -1, np.int64)
        status[[k.HEAD, k.END]] = store.head[FIRST], store.head[END]
        status[[k.BOX, k.SENT_SHIFT, k.IS_SENDING]] = box, 64 - bits, is_sending
        buffers = (self.out, self.act, self.hashes, self.owners, sent, boxes, filled, self.covered)
        arguments = [address(status), *map(address, buffers), self.code.fanout]
        code = k.BOXED
        while code in (k.FULL, k.BOXED):
            store.load(status)
            code = self.kernels.spread(address(store.pool), address(store.table), *arguments)
            store.note(status)
            if code == k.FULL:
                store.make_room(k.BATCH + self.code.fanout)
            least = box // 2 if code == k.BOXED else 1
            for part in np.flatnonzero(filled >= least):
                start = part * box * self.code.words
                yield int(part), self._sent(boxes[start : start + filled[part] * self.code.words])
                filled[part] = 0
        store.head[IS_SPREAD] = code == k.DONE

    def _sent(self, states: Any) -> bytes | str:
        if not self.is_one_host:
            return bytes(states.tobytes())
        return _host(self.token).folder.put(self.level, self.partition, states)

    def report(self, full: str = "") -> dict[str, Any]:
        """What the spreading has counted, and what it was ended by."""
        status, fault = self.status, None
        if status[k.VERDICT] in (k.VIOLATED, k.DEADLOCKED):
            number = int(status[k.FAULT])
            fault = {
                "words": self._state(int(status[k.HEAD])),
                "fault": number if number >= 0 else DEADLOCK,
                "step": int(status[k.STEP]) if status[k.VERDICT] == k.VIOLATED else None,
            }
        return {
            "transitions": int(status[k.TRANSITIONS]),
            "terminal": int(status[k.STUCK]),
            "rows": np.flatnonzero(self.covered).tolist(),
            "finding": fault,
            "full": full,
        }

    def settle(self, rows: Iterator[tuple[int, Any]]) -> dict[str, Any]:
        """Enter what has come, and close the next level. Raises StoreFull."""
        store = self.store
        report: dict[str, Any] = {}
        if not store.head[IS_SPREAD]:
            for _ in self.spread(is_sending=False):
                pass
        for _, item in rows:
            if isinstance(item, dict):
                report = item
            elif isinstance(item, bytes):
                self._take(np.frombuffer(item, np.int64))
            else:
                self._take(_host(self.token).folder.get(item))
        first, end = int(store.head[END]), int(store.head[NEXT])
        held, finding = self._examined(first, end)
        states = store.words(first, end)
        part = write_part(self.directory, self.level + 1, self.partition, states, self.code.words)
        store.head[[FIRST, END, TAG, IS_SPREAD]] = first, end, part.tag, 0
        return {
            **report,
            "partition": self.partition,
            "part": (part.tag, part.states, part.crc),
            "held": held,
            "examined": finding,
            "memory": store.memory_bytes,
        }

    def _take(self, states: Any) -> None:
        store, status = self.store, self.status
        status[[k.HEAD, k.END]] = 0, len(states) // self.code.words
        while True:
            store.load(status)
            code = self.kernels.take(
                address(store.pool),
                address(store.table),
                address(status),
                address(states),
                address(self.hashes),
            )
            store.note(status)
            if code == k.DONE:
                return
            store.make_room(k.BATCH)

    def _examined(self, first: int, end: int) -> tuple[int, dict[str, Any] | None]:
        """What holds somewhere, and the first state in which something that must does not."""
        held, fault = np.zeros(2, np.int64), np.array([-1, 0, 0, 0], np.int64)
        state = self.kernels.look(
            address(self.store.pool),
            first,
            end,
            self.demanded,
            address(held),
            address(fault),
            address(np.zeros_like(self.covered)),
        )
        if fault[0] < 0 and state == end:
            return int(held[0]), None
        number = int(fault[0]) if fault[0] >= 0 else PROPERTY
        finding = {"words": self._state(state), "fault": number, "held": int(held[1])}
        return int(held[0]), finding

    def _state(self, number: int) -> list[int]:
        return [int(word) for word in self.store.words(number, number + 1)]

    def predecessor(self, wanted: list[int]) -> list[int] | None:
        """A state of the level that leads to the wanted one, from the level's file."""
        part = completed(self.directory, self.token, self.level)[-1].parts[self.partition]
        states = read_part(self.directory, self.level, self.partition, part, self.code.words)
        goal, width = np.array(wanted, np.int64), self.code.words
        buffers = (goal, self.out, self.act, self.status[k.FAULT :], self.covered)
        found = self.kernels.precede_one(address(states), part.states, *map(address, buffers))
        if found == part.states:
            return None
        return [int(word) for word in states[found * width : (found + 1) * width]]


def _read_to_the_end(rows: Iterator[Any]) -> None:
    """Spark ends a worker that has left something of its input."""
    for _ in rows:
        pass


def spread_partition(settings: Settings, partition: int, rows: Iterator[Any]) -> Iterator[Any]:
    """Give the states for other partitions, and a report for this one."""
    _read_to_the_end(rows)
    work = Work(settings, partition)
    full = ""
    _host(work.token).folder.forget_before(work.level, partition)
    with work.at_level():
        try:
            yield from work.spread(is_sending=True)
        except StoreFull as reason:
            full = str(reason)
        report = work.report(full)
    yield partition, report


def settle_partition(settings: Settings, partition: int, rows: Iterator[Any]) -> Iterator[Any]:
    """Give what a partition has of the next level, with the report on this one."""
    work = Work(settings, partition)
    try:
        with work.at_level():
            result = work.settle(rows)
    except StoreFull as reason:
        result = {"partition": partition, "full": str(reason)}
    yield result


def precede_partition(settings: Settings, partition: int, rows: Iterator[Any]) -> Iterator[Any]:
    """Give a state of this partition that leads to the wanted one, if there is one."""
    _read_to_the_end(rows)
    found = Work(settings, partition).predecessor(settings["wanted"])
    if found is not None:
        yield found


def forget_partition(settings: Settings, partition: int, rows: Iterator[Any]) -> Iterator[Any]:
    """Give the memory of this host back."""
    _read_to_the_end(rows)
    _host(settings["token"]).folder.remove()
    _hosts.pop().close()
    yield from ()
