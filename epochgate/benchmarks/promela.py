"""The reference model in Promela, so that Spin can count the same states.

One process takes every step of every instance as one atomic choice. Two encodings: `packed`, with
queues in the bits of integers, which is what an expert writes for speed, and `channels`, with
Promela's own queues, which is what the language suggests. Written out for given numbers of subtasks
and coordinators, so that no index is computed at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from epochgate.models.studies.reference import Reference

ENCODINGS = ("packed", "channels")
RUNNING, FAILED, RESET = 0, 1, 2
IDLE, TRIGGERED, INJECTED = 0, 1, 2


def promela(constants: dict[str, int], encoding: str) -> str:
    """Return the model's text; `constants` are N, C, K, E and F."""
    return "\n".join(_Model(constants, encoding).lines()) + "\n"


class _Model:
    """One instance of the model."""

    def __init__(self, constants: dict[str, int], encoding: str) -> None:
        self.constants = {**Reference().constants, **Reference(**constants).constants}
        self.subtasks = range(self.constants["N"])
        self.coordinators = range(self.constants["C"])
        self.is_packed = encoding == "packed"
        self.item_bits = max(1, self.constants["message"].bit_length())

    def lines(self) -> Iterator[str]:
        yield from self._declarations()
        yield "active proctype model() {"
        yield "end: do"
        for guard, effect in self._steps():
            yield f":: d_step {{ {guard} -> {'; '.join(effect)}; item = 0 }}"
        yield "od }"

    def _declarations(self) -> Iterator[str]:
        e, wire = self.constants["E"], self.constants["wire"]
        yield "byte phase, number, last, failures;"
        yield "hidden byte item, newest;"
        for c in self.coordinators:
            yield f"bit done_{c};"
        for s in self.subtasks:
            yield f"byte mode_{s}, acks_{s}; bit heard_{s};"
            yield self._queue(f"wire_{s}", wire)
            for c in self.coordinators:
                yield f"byte got_{s}_{c}, cut_{s}_{c}, safe_{s}_{c};"
                yield f"byte sent_{c}_{s}, mark_{c}_{s}, kept_{c}_{s}; bit shut_{c}_{s};"
                yield self._queue(f"held_{c}_{s}", e)

    # Queues

    def _queue(self, name: str, capacity: int) -> str:
        if self.is_packed:
            return f"int {name}; byte {name}_n;"
        return f"chan {name} = [{capacity}] of {{ byte }};"

    def _push(self, name: str, item: str) -> list[str]:
        if not self.is_packed:
            return [f"{name} ! ({item})"]
        at = f"({self.item_bits} * {name}_n)"
        return [f"{name} = {name} | (({item}) << {at})", f"{name}_n = {name}_n + 1"]

    def _pop(self, name: str) -> list[str]:
        if not self.is_packed:
            return [f"{name} ? item"]
        ones = (1 << self.item_bits) - 1
        return [
            f"item = {name} & {ones}",
            f"{name} = {name} >> {self.item_bits}",
            f"{name}_n = {name}_n - 1",
        ]

    def _clear(self, name: str) -> list[str]:
        if self.is_packed:
            return [f"{name} = 0", f"{name}_n = 0"]
        return [f"do :: nempty({name}) -> {name} ? item :: empty({name}) -> break od"]

    def _move(self, source: str, target: str) -> list[str]:
        if self.is_packed:
            at = f"({self.item_bits} * {target}_n)"
            return [
                f"{target} = {target} | ({source} << {at})",
                f"{target}_n = {target}_n + {source}_n",
                f"{source} = 0",
                f"{source}_n = 0",
            ]
        move = f"{source} ? item; {target} ! item"
        return [f"do :: nempty({source}) -> {move} :: empty({source}) -> break od"]

    def _is_filled(self, name: str) -> str:
        return f"{name}_n > 0" if self.is_packed else f"nempty({name})"

    # Steps

    def _steps(self) -> Iterator[tuple[str, list[str]]]:
        for s in self.subtasks:
            yield from self._of_subtask(s)
        running = " && ".join(f"mode_{s} == {RUNNING}" for s in self.subtasks)
        k = self.constants["K"]
        begin = ["number = number + 1", f"phase = {TRIGGERED}"]
        yield f"phase == {IDLE} && number < {k} && {running}", begin
        for c in self.coordinators:
            yield f"phase == {TRIGGERED} && !done_{c}", self._future(c)
        done = " && ".join(f"done_{c}" for c in self.coordinators)
        barrier = f"{self.constants['C'] * self.constants['E'] - 1} + number"
        inject = [
            self._if(f"mode_{s} == {RUNNING}", self._push(f"wire_{s}", barrier))
            for s in self.subtasks
        ]
        yield f"phase == {TRIGGERED} && {done}", [*inject, f"phase = {INJECTED}"]
        yield f"phase != {IDLE}", self._abort()

    def _of_subtask(self, s: int) -> Iterator[tuple[str, list[str]]]:
        e, f = self.constants["E"], self.constants["F"]
        is_running = f"mode_{s} == {RUNNING}"
        for c in self.coordinators:
            event = f"{c * e} + sent_{c}_{s}"
            pass_on = self._if(
                f"shut_{c}_{s}",
                self._push(f"held_{c}_{s}", event),
                self._push(f"wire_{s}", event),
            )
            sent = [pass_on, f"sent_{c}_{s} = sent_{c}_{s} + 1"]
            yield f"{is_running} && sent_{c}_{s} < {e}", sent
        yield f"{is_running} && {self._is_filled(f'wire_{s}')}", self._deliver(s)
        yield f"acks_{s} != 0", self._acknowledge(s)
        yield f"{is_running} && failures < {f}", self._fail(s)
        rewind = [f"sent_{c}_{s} = kept_{c}_{s}" for c in self.coordinators]
        restore = [self._if(f"phase != {IDLE}", self._abort()), *rewind, f"mode_{s} = {RESET}"]
        yield f"mode_{s} == {FAILED}", restore
        load = [f"got_{s}_{c} = safe_{s}_{c}" for c in self.coordinators]
        yield f"mode_{s} == {RESET}", [*load, f"mode_{s} = {RUNNING}"]

    def _deliver(self, s: int) -> list[str]:
        e, events = self.constants["E"], self.constants["C"] * self.constants["E"]
        cases = []
        for c in self.coordinators:
            first = c * e
            cases.append(
                f":: item >= {first} && item < {first + e} -> "
                f"assert(item - {first} == got_{s}_{c}); got_{s}_{c} = item - {first} + 1"
            )
        cut = [f"cut_{s}_{c} = got_{s}_{c}" for c in self.coordinators]
        is_live = f"phase == {INJECTED} && item - {events} + 1 == number"
        barrier = [f"acks_{s} = acks_{s} | (1 << (item - {events}))", self._if(is_live, cut)]
        cases.append(f":: item >= {events} -> {'; '.join(barrier)}")
        return [*self._pop(f"wire_{s}"), f"if {' '.join(cases)} fi"]

    def _acknowledge(self, s: int) -> list[str]:
        k = self.constants["K"]
        lowest = " ".join(
            f":: (acks_{s} & {(2 << bit) - 1}) == {1 << bit} -> newest = {bit + 1}"
            for bit in range(k)
        )
        heard = [*self._each(self._reopen, [s]), f"heard_{s} = 1"]
        everybody = " && ".join(f"heard_{other}" for other in self.subtasks)
        heard.append(self._if(everybody, self._complete()))
        return [
            f"if {lowest} fi",
            f"acks_{s} = acks_{s} & (acks_{s} - 1)",
            self._if(f"phase == {INJECTED} && newest == number", heard),
            "newest = 0",
        ]

    def _complete(self) -> list[str]:
        def commit(c: int, s: int) -> list[str]:
            return [
                f"assert(mark_{c}_{s} == cut_{s}_{c})",
                f"kept_{c}_{s} = mark_{c}_{s}",
                f"safe_{s}_{c} = cut_{s}_{c}",
            ]

        return ["last = number", *self._each(commit, self.subtasks), *self._over()]

    def _fail(self, s: int) -> list[str]:
        lost = ["failures = failures + 1", f"mode_{s} = {FAILED}", *self._clear(f"wire_{s}")]
        for c in self.coordinators:
            lost += [f"got_{s}_{c} = 0", f"shut_{c}_{s} = 0", *self._clear(f"held_{c}_{s}")]
        return lost

    def _future(self, c: int) -> list[str]:
        closed = [f"done_{c} = 1"]
        for s in self.subtasks:
            closed.append(f"mark_{c}_{s} = sent_{c}_{s}")
            closed.append(self._if(f"mode_{s} == {RUNNING}", [f"shut_{c}_{s} = 1"]))
        return closed

    def _reopen(self, c: int, s: int) -> list[str]:
        moved = [*self._move(f"held_{c}_{s}", f"wire_{s}"), f"shut_{c}_{s} = 0"]
        return [self._if(f"shut_{c}_{s}", moved)]

    def _abort(self) -> list[str]:
        return [*self._each(self._reopen, self.subtasks), *self._over()]

    def _over(self) -> list[str]:
        cleared = [f"phase = {IDLE}", *[f"done_{c} = 0" for c in self.coordinators]]
        cleared += [f"heard_{s} = 0" for s in self.subtasks]
        return cleared + self._each(
            lambda c, s: [f"mark_{c}_{s} = 0", f"cut_{s}_{c} = 0"], self.subtasks
        )

    def _each(
        self, make: Callable[[int, int], list[str]], subtasks: range | list[int]
    ) -> list[str]:
        return [line for s in subtasks for c in self.coordinators for line in make(c, s)]

    @staticmethod
    def _if(condition: str, then: list[str], otherwise: list[str] | None = None) -> str:
        other = "; ".join(otherwise) if otherwise else "skip"
        return f"if :: {condition} -> {'; '.join(then)} :: else -> {other} fi"
