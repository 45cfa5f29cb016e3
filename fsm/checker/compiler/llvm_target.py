"""The LLVM target: a program's functions as machine code, together with the searches' inner loops.

A step runs on a local copy of the packed state; functions that never lead back to themselves are
put in line, if the program then stays small, so that the copy lives in registers. Others stay
calls, after which a fault ends the step.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from epochgate.fsm.checker.compiler.ir import Call, Function, Program, Reduction, walk
from epochgate.fsm.choosing import CHOICES_MAX, WAYS_MAX

if TYPE_CHECKING:
    from epochgate.fsm.checker.compiler.kernel import Kernel
    from epochgate.fsm.checker.compiler.machine_code import MachineCode, Optimisation

INLINE_STATEMENTS_MAX = 4000
"""Functions with more statements than that, once all their calls are in line, are called."""

KernelFunction = Callable[..., Any]


class LlvmTarget:
    """Machine code for one program with kernels: optimised code if the cache has it or `is_quick`
    is false, and else code that was compiled quickly.

    `always` and `sometimes` are among the properties; `inspect` gives a bit for each that holds.
    """

    def __init__(
        self,
        program: Program,
        kernels: Sequence[KernelFunction],
        inlined: Sequence[KernelFunction],
        constants: dict[str, int],
        final: str | None = None,
        *,
        reducing: Sequence[KernelFunction] = (),
        is_quick: bool = True,
    ) -> None:
        from epochgate.fsm.checker.compiler import machine_code as made

        self.program, self._final = program, final
        self._kernels, self._inlined, self._constants = kernels, inlined, constants
        self._reducing = reducing
        code = made.kept(self._key, made.OPTIMISED)
        self.is_optimised = code is not None or not is_quick
        if code is None:
            level = made.QUICK if is_quick else made.OPTIMISED
            code = made.kept(self._key, level) or made.compiled(self._key, level, self.text)
        self.code: MachineCode = code

    def optimise(self) -> Optimisation:
        """Begin to compile optimised code, in a process beside this one."""
        from epochgate.fsm.checker.compiler.machine_code import Optimisation

        return Optimisation(self._key, self.text)

    @cached_property
    def _key(self) -> str:
        """The digest of all that decides the machine code."""
        from epochgate.fsm.checker.compiler import kernel, llvm_body, tape

        program = self.program
        parts = [
            repr(sorted(self._constants.items())),
            repr([*program.cells.values()]),
            repr([*program.functions.values()]),
            repr([(step.enabled, step.function) for step in program.steps]),
            repr([*program.properties.items()]),
            repr((program.words, len(program.faults), self._final)),
            repr((program.posted, program.calls_max, program.endless, program.crowded)),
            repr([step.ways for step in program.steps]),
            repr(program.reduction),
            *[
                inspect.getsource(function)
                for function in (*self._inlined, *self._reducing, *self._kernels)
            ],
            inspect.getsource(kernel),
            inspect.getsource(tape),
            inspect.getsource(llvm_body),
            inspect.getsource(sys.modules[__name__]),
        ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @cached_property
    def text(self) -> str:
        """The module in LLVM's text form, before it is optimised."""
        kernels, inlined, reducing = self._kernels, self._inlined, self._reducing
        return module_text(self.program, kernels, inlined, self._constants, self._final, reducing)


def module_text(
    program: Program,
    kernels: Sequence[KernelFunction],
    inlined: Sequence[KernelFunction],
    constants: dict[str, int],
    final: str | None,
    reducing: Sequence[KernelFunction] = (),
) -> str:
    """A program with kernels in LLVM's text form, for whichever machine compiles it."""
    from epochgate.fsm.checker.compiler.kernel import Kernel

    made = _ProgramBuilder(program, final)
    kernel = Kernel(made.module, constants)
    if program.reduction is not None:
        made.reduce(program.reduction, kernel, reducing)
    for function in inlined:
        kernel.add(function, inline=True)
    for function in kernels:
        kernel.add(function)
    return str(made.module)


class _ProgramBuilder:
    """Translates the functions of a program, and makes the ones that kernels call of them."""

    def __init__(self, program: Program, final: str | None) -> None:
        import llvmlite.ir as ir
        from epochgate.fsm.checker.compiler import tape
        from epochgate.fsm.checker.compiler.kernel import Kernel
        from epochgate.fsm.checker.compiler.llvm_body import (
            ADVANCE,
            BYTES,
            CHOOSE,
            DRAIN,
            I64,
            WORDS,
            Body,
            Queues,
            build_drain,
        )

        self.program, self.module = program, ir.Module("system")
        self.compiled: dict[str, Any] = {}
        self.queues = queues = Queues(program)
        inline = inlined(program.functions)

        def declare(name: str, parameters: int) -> Any:
            types = [WORDS, WORDS, BYTES, *[I64] * parameters]
            made = ir.Function(self.module, ir.FunctionType(I64, types), name)
            made.linkage = "internal"
            for argument in made.args[:3]:
                argument.add_attribute("noalias")
            return made

        for position, function in enumerate(program.functions.values()):
            made = declare(f"method_{position}", len(function.parameters))
            if function.name in inline:
                made.attributes.add("alwaysinline")
            self.compiled[function.name] = made
        if program.crowded >= 0:
            kernel = Kernel(self.module, {"CHOICES_MAX": CHOICES_MAX})
            self.compiled[CHOOSE] = kernel.add(tape.choose)
            self.compiled[ADVANCE] = kernel.add(tape.advance)
        if program.posted:
            self.compiled[DRAIN] = declare("drain", 0)
            build_drain(self.compiled[DRAIN], queues, self.compiled)
        for function in program.functions.values():
            made = self.compiled[function.name]
            Body(made, function, program.cells, self.compiled, queues).build()
        self._expand()
        self._inspect()
        self._is_final(final)

    def _exported(self, name: str, types: list[Any]) -> tuple[Any, Any]:
        """A function that kernels put in line, and the builder of its body."""
        import llvmlite.ir as ir
        from epochgate.fsm.checker.compiler.llvm_body import I64

        made = ir.Function(self.module, ir.FunctionType(I64, types), name)
        made.linkage = "internal"
        for argument in made.args:
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")
        return made, ir.IRBuilder(made.append_basic_block("entry"))

    def _expand(self) -> None:
        """expand(state, out, act, n, fault, covered): the successors of one state, from out[n] on.

        Returns the new n. A fault ends it: fault[0] is then the fault, fault[2] the step.
        """
        import llvmlite.ir as ir
        from epochgate.fsm.checker.compiler.llvm_body import BYTES, I64, WORDS, number

        w = self.program.words
        shorts = ir.IntType(16)
        types = [WORDS, WORDS, shorts.as_pointer(), I64, WORDS, BYTES]
        name = "expand" if self.program.reduction is None else "successors"
        made, b = self._exported(name, types)
        state, out, act, start, fault, covered = made.args
        copy, own = b.alloca(I64, size=number(w)), b.alloca(I64, size=number(self.queues.words))
        count = b.alloca(I64)
        if self.program.crowded >= 0:
            self._ways = b.alloca(I64)
        b.store(start, count)
        original = [b.load(b.gep(state, [number(k)])) for k in range(w)]
        own_fault = own
        b.store(number(-1), own_fault)
        for position, step in enumerate(self.program.steps):
            after, bad, good = (b.append_basic_block() for _ in range(3))
            tested, taken = b.append_basic_block(), b.append_basic_block()
            is_enabled = b.call(self.compiled[step.enabled], [state, own, covered])
            b.cbranch(b.icmp_signed(">=", b.load(own_fault), number(0)), bad, tested)
            b.position_at_end(tested)
            b.cbranch(b.icmp_signed("!=", is_enabled, number(0)), taken, after)
            b.position_at_end(taken)
            again = self._first_way(b, own, step.ways)
            for k in range(w):
                b.store(original[k], b.gep(copy, [number(k)]))
            b.call(self.compiled[step.function], [copy, own, covered])
            following = after
            if again is not None:
                following = self._next_way(b, own, again, (bad, after))
            b.cbranch(b.icmp_signed(">=", b.load(own_fault), number(0)), bad, good)
            b.position_at_end(bad)
            b.store(b.load(own_fault), fault)
            b.store(number(position), b.gep(fault, [number(2)]))
            b.ret(b.load(count))
            b.position_at_end(good)
            n = b.load(count)
            base = b.mul(n, number(w))
            for k in range(w):
                word = b.load(b.gep(copy, [number(k)]))
                b.store(word, b.gep(out, [b.add(base, number(k))]))
            b.store(ir.Constant(shorts, position), b.gep(act, [n]))
            b.store(b.add(n, number(1)), count)
            b.branch(following)
            b.position_at_end(after)
        b.ret(b.load(count))

    def _first_way(self, b: Any, own: Any, ways: int) -> Any:
        """Begin to take a step in each way; the block that takes it, None for a single way."""
        from epochgate.fsm.checker.compiler.llvm_body import number

        if not ways:
            return None
        tape = self.queues.tape
        for offset in (0, 1):
            b.store(number(0), b.gep(own, [number(tape + offset)]))
        b.store(number(0), self._ways)
        again = b.append_basic_block()
        b.branch(again)
        b.position_at_end(again)
        return again

    def _next_way(self, b: Any, own: Any, again: Any, leaving: tuple[Any, Any]) -> Any:
        """A block that goes over to the next way, if there is one; a way that is closed goes there
        at once, and too many ways are a fault.
        """
        from epochgate.fsm.checker.compiler.llvm_body import ADVANCE, CLOSED, number

        bad, after = leaving
        step_over, going_on, crowded, more = (b.append_basic_block() for _ in range(4))
        is_closed = b.icmp_signed("==", b.load(own), number(CLOSED))
        open_way = b.append_basic_block()
        b.cbranch(is_closed, step_over, open_way)
        b.position_at_end(step_over)
        b.store(number(-1), own)
        b.branch(going_on)
        b.position_at_end(going_on)
        tape = b.gep(own, [number(self.queues.tape)])
        is_next = b.icmp_signed("!=", b.call(self.compiled[ADVANCE], [tape]), number(0))
        b.cbranch(is_next, more, after)
        b.position_at_end(more)
        taken = b.add(b.load(self._ways), number(1))
        b.store(taken, self._ways)
        b.cbranch(b.icmp_signed("<", taken, number(WAYS_MAX)), again, crowded)
        b.position_at_end(crowded)
        b.store(number(self.queues.crowded), own)
        b.branch(bad)
        b.position_at_end(open_way)
        return going_on

    def reduce(
        self, reduction: Reduction, kernel: Kernel, functions: Sequence[KernelFunction]
    ) -> None:
        """Make `expand` of the successors by all steps, and of functions that choose among them;
        the last of these is given memory and the tables.
        """
        import llvmlite.ir as ir
        from epochgate.fsm.checker.compiler.llvm_body import BYTES, I64, WORDS, number

        made, b = self._exported("look", [WORDS, WORDS, WORDS, BYTES])
        state, holds, fault, covered = made.args
        for position, name in enumerate(reduction.looks):
            found = b.call(self.compiled[name], [state, fault, covered])
            b.store(found, b.gep(holds, [number(position)]))
        b.ret(number(0))
        made, b = self._exported("rises", [WORDS, WORDS, WORDS, BYTES])
        before, after, fault, covered = made.args
        above: Any = number(0)
        for name in reversed(reduction.ranks):
            old, new = (
                b.call(self.compiled[name], [one, fault, covered]) for one in (before, after)
            )
            decided = b.zext(b.icmp_signed(">", new, old), I64)
            above = b.select(b.icmp_signed("==", new, old), above, decided)
        b.ret(above)
        for function in functions:
            kernel.add(function, inline=True)
        table = ir.ArrayType(I64, len(reduction.tables))
        tables = ir.GlobalVariable(self.module, table, "tables")
        tables.linkage, tables.global_constant = "internal", True
        tables.initializer = ir.Constant(table, [*reduction.tables])
        chosen = self.module.globals[functions[-1].__name__]
        made, b = self._exported("expand", [*chosen.function_type.args[:6]])
        memory = [
            b.alloca(I64, size=number(max(1, len(reduction.looks)))),
            b.alloca(I64, size=number(reduction.constants["MEMORY"])),
            b.bitcast(tables, WORDS),
        ]
        b.ret(b.call(chosen, [*made.args, *memory]))

    def _inspect(self) -> None:
        """inspect(state, fault, covered): bit k is set if the k-th property's method holds."""
        from epochgate.fsm.checker.compiler.llvm_body import BYTES, WORDS, number

        made, b = self._exported("inspect", [WORDS, WORDS, BYTES])
        found: Any = number(0)
        for position, function in enumerate(self.program.properties.values()):
            holds = b.call(self.compiled[function], [*made.args])
            is_set = b.icmp_signed("!=", holds, number(0))
            found = b.or_(found, b.select(is_set, number(1 << position), number(0)))
        b.ret(found)

    def _is_final(self, final: str | None) -> None:
        """is_final(state, fault, covered): whether the system may end here."""
        from epochgate.fsm.checker.compiler.llvm_body import BYTES, WORDS, number

        made, b = self._exported("is_final", [WORDS, WORDS, BYTES])
        if final is None:
            b.ret(number(1))
        else:
            b.ret(b.call(self.compiled[self.program.properties[final]], [*made.args]))


def inlined(functions: dict[str, Function]) -> set[str]:
    """The functions that stay small with all calls in line; none leads back to itself."""
    sizes: dict[str, int | None] = {}

    def size(name: str) -> int | None:
        if name not in sizes:
            total = 0
            for stmt in walk(functions[name].body):
                inner = size(stmt.function) if isinstance(stmt, Call) else 0
                # A call that stays one counts as a statement.
                total += 1 + (inner or 0)
            sizes[name] = total if total <= INLINE_STATEMENTS_MAX else None
        return sizes[name]

    return {name for name in functions if size(name) is not None}
