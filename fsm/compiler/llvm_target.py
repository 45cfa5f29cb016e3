"""The LLVM target: a program's functions as machine code, together with the searches' inner loops.

A step runs on a local copy of the packed state; small functions are put in line, so that the copy
lives in registers. Functions that may call themselves stay calls.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir

from epochgate.fsm.compiler.ir import (
    Assign,
    Call,
    Cover,
    Expr,
    Fail,
    Function,
    If,
    Load,
    Local,
    Not,
    Op,
    Program,
    Select,
    Stmt,
    Store,
)
from epochgate.fsm.compiler.kernel import I1, I8, I64, Kernel

INLINE_STATEMENTS_MAX = 4000
"""Programs with at most so many statements, once all calls are in line, have no calls."""


class LlvmTarget:
    """Machine code for one program; `functions` gives the addresses of the exported ones."""

    def __init__(self, program: Program, kernels: list[Any], inlined: list[Any]) -> None:
        self.program = program
        module = ir.Module("system")
        _ProgramBuilder(program, module).build()
        kernel = Kernel(module, {"W": program.words})
        for function in inlined:
            kernel.add(function, inline=True)
        for function in kernels:
            kernel.add(function)
        self._engine = _machine_code(str(module))
        self.module = module

    def function(self, name: str, *types: Any) -> Any:
        """A callable for an exported function; `types` are ctypes of its arguments."""
        address = self._engine.get_function_address(name)
        return ctypes.CFUNCTYPE(ctypes.c_int64, *types)(address)


def _machine_code(text: str) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    return engine


class _ProgramBuilder:
    """Translates the functions of a program, and makes `expand` of its steps."""

    def __init__(self, program: Program, module: ir.Module) -> None:
        self.program, self.module = program, module
        self.words = I64.as_pointer()
        self.compiled: dict[str, ir.Function] = {}

    def build(self) -> None:
        inline = self._inlined()
        for number, function in enumerate(self.program.functions.values()):
            arguments = [self.words, self.words, I8.as_pointer(), *[I64] * len(function.parameters)]
            made = ir.Function(self.module, ir.FunctionType(I64, arguments), f"method_{number}")
            made.linkage = "internal"
            if function.name in inline:
                made.attributes.add("alwaysinline")
            for argument in made.args[:3]:
                argument.add_attribute("noalias")
            self.compiled[function.name] = made
        for function in self.program.functions.values():
            self._function(function)
        self._expand()
        self._properties()

    def _inlined(self) -> set[str]:
        """Functions that never lead back to themselves, if the program then stays small."""
        sizes: dict[str, int | None] = {}

        def size(name: str, callers: tuple[str, ...]) -> int | None:
            if name in callers:
                return None
            if name not in sizes:
                total: int | None = 0
                for count, callee in _walk(self.program.functions[name].body):
                    inner = 0 if callee is None else size(callee, (*callers, name))
                    total = None if inner is None or total is None else total + count + inner
                    if total is None or total > INLINE_STATEMENTS_MAX:
                        total = None
                        break
                sizes[name] = total
            return sizes[name]

        return {name for name in self.program.functions if size(name, ()) is not None}

    def _function(self, function: Function) -> None:
        made = self.compiled[function.name]
        body = _Body(self, made, function)
        body.block(function.body)
        result = 0 if function.result is None else function.result
        body.builder.ret(body.integer(result))

    def _expand(self) -> None:
        """expand(state, out, act, n, fault, covered): the successors of one state, from out[n] on.

        Returns the new n. A fault ends it: fault[0] is then the fault, fault[1] the step.
        """
        w = self.program.words
        types = [self.words, self.words, I8.as_pointer(), I64, self.words, I8.as_pointer()]
        made = ir.Function(self.module, ir.FunctionType(I64, types), "expand")
        state, out, act, start, fault, covered = made.args
        for argument in (state, out, act, fault, covered):
            argument.add_attribute("noalias")
        body = _Body(self, made, Function("expand", ()))
        b = body.builder
        copy = b.alloca(I64, size=ir.Constant(I64, w))
        own_fault = b.alloca(I64)
        count = b.alloca(I64)
        b.store(start, count)
        b.store(ir.Constant(I64, -1), own_fault)
        original = [b.load(b.gep(state, [ir.Constant(I64, k)])) for k in range(w)]
        for number, step in enumerate(self.program.steps):
            body.original = original
            condition = body.truth(step.enabled)
            body.original = None
            taken, after, bad, good = (b.append_basic_block() for _ in range(4))
            b.cbranch(condition, taken, after)
            b.position_at_end(taken)
            for k in range(w):
                b.store(original[k], b.gep(copy, [ir.Constant(I64, k)]))
            b.call(self.compiled[step.function], [copy, own_fault, covered])
            found = b.load(own_fault)
            b.cbranch(b.icmp_signed(">=", found, ir.Constant(I64, 0)), bad, good)
            b.position_at_end(bad)
            b.store(found, fault)
            b.store(ir.Constant(I64, number), b.gep(fault, [ir.Constant(I64, 1)]))
            b.ret(b.load(count))
            b.position_at_end(good)
            n = b.load(count)
            base = b.mul(n, ir.Constant(I64, w))
            for k in range(w):
                word = b.load(b.gep(copy, [ir.Constant(I64, k)]))
                b.store(word, b.gep(out, [b.add(base, ir.Constant(I64, k))]))
            b.store(ir.Constant(I8, number), b.gep(act, [n]))
            b.store(b.add(n, ir.Constant(I64, 1)), count)
            b.branch(after)
            b.position_at_end(after)
        b.ret(b.load(count))

    def _properties(self) -> None:
        """evaluate(state, number): whether the property of this number holds."""
        types = [self.words, I64, self.words, I8.as_pointer()]
        made = ir.Function(self.module, ir.FunctionType(I64, types), "evaluate")
        body = _Body(self, made, Function("evaluate", ()))
        b = body.builder
        for number, function in enumerate(self.program.properties.values()):
            hit, miss = b.append_basic_block(), b.append_basic_block()
            b.cbranch(b.icmp_signed("==", made.args[1], ir.Constant(I64, number)), hit, miss)
            b.position_at_end(hit)
            b.ret(b.call(self.compiled[function], [made.args[0], made.args[2], made.args[3]]))
            b.position_at_end(miss)
        b.ret(ir.Constant(I64, 0))


class _Body:
    """Translates statements and expressions of one function."""

    def __init__(self, program: _ProgramBuilder, made: ir.Function, function: Function) -> None:
        self.program, self.made = program, made
        self.builder = ir.IRBuilder(made.append_basic_block("entry"))
        self.slots: dict[str, ir.Value] = {}
        self.original: list[ir.Value] | None = None
        names = dict.fromkeys([*function.parameters, *_assigned(function.body), "result"])
        for name in names:
            self.slots[name] = self.builder.alloca(I64)
        self.builder.store(ir.Constant(I64, 0), self.slots["result"])
        for name, argument in zip(function.parameters, made.args[3:], strict=False):
            self.builder.store(argument, self.slots[name])

    def block(self, block: tuple[Stmt, ...]) -> None:
        b = self.builder
        for stmt in block:
            if isinstance(stmt, Assign):
                b.store(self.integer(stmt.value), self.slots[stmt.local])
            elif isinstance(stmt, Store):
                self.store(stmt)
            elif isinstance(stmt, If):
                self.branch(stmt)
            elif isinstance(stmt, Call):
                arguments = [*self.made.args[:3], *[self.integer(a) for a in stmt.arguments]]
                result = b.call(self.program.compiled[stmt.function], arguments)
                if stmt.local is not None:
                    b.store(result, self.slots[stmt.local])
            elif isinstance(stmt, Fail):
                self.fail(stmt.fault)
            elif isinstance(stmt, Cover):
                b.store(ir.Constant(I8, 1), b.gep(self.made.args[2], [ir.Constant(I64, stmt.row)]))

    def fail(self, fault: int) -> None:
        """The first fault counts."""
        b = self.builder
        slot = self.made.args[1]
        found = b.load(slot)
        is_first = b.icmp_signed("<", found, ir.Constant(I64, 0))
        b.store(b.select(is_first, ir.Constant(I64, fault), found), slot)

    def branch(self, stmt: If) -> None:
        b = self.builder
        condition = self.truth(stmt.condition)
        then, after = b.append_basic_block(), b.append_basic_block()
        otherwise = b.append_basic_block() if stmt.otherwise else after
        b.cbranch(condition, then, otherwise)
        b.position_at_end(then)
        self.block(stmt.then)
        b.branch(after)
        if stmt.otherwise:
            b.position_at_end(otherwise)
            self.block(stmt.otherwise)
            b.branch(after)
        b.position_at_end(after)

    def store(self, stmt: Store) -> None:
        b = self.builder
        cell = self.program.program.cells[stmt.cell]
        if cell.bits == 0:
            return
        keep = ~(((1 << cell.bits) - 1) << cell.shift) & ((1 << 63) - 1)
        place = b.gep(self.made.args[0], [ir.Constant(I64, cell.word)])
        rest = b.and_(b.load(place), ir.Constant(I64, keep))
        value = b.shl(self.integer(stmt.value), ir.Constant(I64, cell.shift))
        b.store(b.or_(rest, value), place)

    def load(self, name: str) -> ir.Value:
        b = self.builder
        cell = self.program.program.cells[name]
        if cell.bits == 0:
            return ir.Constant(I64, 0)
        if self.original is not None:
            word = self.original[cell.word]
        else:
            word = b.load(b.gep(self.made.args[0], [ir.Constant(I64, cell.word)]))
        shifted = b.lshr(word, ir.Constant(I64, cell.shift))
        return b.and_(shifted, ir.Constant(I64, (1 << cell.bits) - 1))

    def integer(self, expr: Expr) -> ir.Value:
        value = self.value(expr)
        return self.builder.zext(value, I64) if value.type == I1 else value

    def truth(self, expr: Expr) -> ir.Value:
        value = self.value(expr)
        if value.type == I1:
            return value
        return self.builder.icmp_signed("!=", value, ir.Constant(I64, 0))

    def value(self, expr: Expr) -> ir.Value:
        b = self.builder
        if isinstance(expr, int):
            return ir.Constant(I64, expr)
        if isinstance(expr, Local):
            return b.load(self.slots[expr.name])
        if isinstance(expr, Load):
            return self.load(expr.cell)
        if isinstance(expr, Not):
            return b.not_(self.truth(expr.operand))
        if isinstance(expr, Select):
            condition = self.truth(expr.condition)
            return b.select(condition, self.integer(expr.chosen), self.integer(expr.otherwise))
        return self.operation(expr)

    def operation(self, expr: Op) -> ir.Value:
        b = self.builder
        if expr.operator in ("and", "or"):
            left, right = self.truth(expr.left), self.truth(expr.right)
            return (b.and_ if expr.operator == "and" else b.or_)(left, right)
        left, right = self.integer(expr.left), self.integer(expr.right)
        if expr.operator in ("==", "!=", "<", "<=", ">", ">="):
            return b.icmp_signed(expr.operator, left, right)
        return {
            "+": b.add,
            "-": b.sub,
            "*": b.mul,
            "//": b.udiv,
            "%": b.urem,
            "&": b.and_,
            "|": b.or_,
            "^": b.xor,
            "<<": b.shl,
            ">>": b.lshr,
        }[expr.operator](left, right)


def _assigned(block: tuple[Stmt, ...]) -> list[str]:
    names = []
    for stmt in block:
        if isinstance(stmt, Assign):
            names.append(stmt.local)
        elif isinstance(stmt, Call) and stmt.local is not None:
            names.append(stmt.local)
        elif isinstance(stmt, If):
            names += [*_assigned(stmt.then), *_assigned(stmt.otherwise)]
    return names


def _walk(block: tuple[Stmt, ...]) -> list[tuple[int, str | None]]:
    """Statement counts, and with each call the function that it calls."""
    found: list[tuple[int, str | None]] = []
    for stmt in block:
        if isinstance(stmt, If):
            found += [(1, None), *_walk(stmt.then), *_walk(stmt.otherwise)]
        else:
            found.append((1, stmt.function if isinstance(stmt, Call) else None))
    return found
