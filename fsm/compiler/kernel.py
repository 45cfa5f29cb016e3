"""Compiles small numeric Python functions to machine code, through LLVM.

The searches' inner loops are written as plain functions over integers and arrays and translated
statement by statement; they are far too hot for Python, and too small for a framework. A function's
parameters are annotated `int`, or with an array type of this module. All arithmetic is on 64 bits and
wraps; `>>` shifts in zeros; `//` and `%` are for values that are not negative. Known at compile time
are constants, `unroll(n)` loops and calls of other functions of the same module.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir

I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))


class Words:
    """An array of 64-bit integers."""

    type = I64


class Halves:
    """An array of unsigned 32-bit integers."""

    type = I32


class Bytes:
    """An array of unsigned 8-bit integers."""

    type = I8


ARRAYS = {"Words": Words, "Halves": Halves, "Bytes": Bytes}


def unroll(count: int) -> range:
    """A loop that is unrolled when it is compiled; `count` is a constant."""
    return range(count)


def prefetch(array: Any, index: int) -> None:
    """Ask the processor to have this element at hand soon."""


class Kernel:
    """Translates functions into one LLVM module."""

    def __init__(self, module: ir.Module, constants: dict[str, int]) -> None:
        self.module, self.constants = module, constants
        pointer = I8.as_pointer()
        self._prefetch = module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, I32, I32, I32])
        )

    def add(self, function: Callable[..., Any], *, inline: bool = False) -> ir.Function:
        """Translate one function; those that it calls must have been added before."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        types = []
        for argument in tree.args.args:
            name = ast.unparse(argument.annotation) if argument.annotation else "int"
            types.append(ARRAYS[name].type.as_pointer() if name in ARRAYS else I64)
        compiled = ir.Function(self.module, ir.FunctionType(I64, types), tree.name)
        if inline:
            compiled.attributes.add("alwaysinline")
            compiled.linkage = "internal"
        _FunctionBuilder(self, compiled, tree).build()
        return compiled


class _FunctionBuilder:
    """Translates the body of one function."""

    def __init__(self, kernel: Kernel, function: ir.Function, tree: ast.FunctionDef) -> None:
        self.kernel, self.function, self.tree = kernel, function, tree
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.arrays: dict[str, ir.Value] = {}
        self.slots: dict[str, ir.Value] = {}
        self.known: dict[str, int] = dict(kernel.constants)
        self.loops: list[tuple[ir.Block, ir.Block]] = []

    def build(self) -> None:
        b = self.builder
        for argument, node in zip(self.function.args, self.tree.args.args, strict=True):
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")
                self.arrays[node.arg] = argument
        for name in self._locals():
            self.slots[name] = b.alloca(I64, name=name)
        for argument, node in zip(self.function.args, self.tree.args.args, strict=True):
            if node.arg in self.slots:
                b.store(argument, self.slots[node.arg])
        self.block(self.tree.body)
        if not b.block.is_terminated:
            b.ret(ir.Constant(I64, 0))

    def _locals(self) -> list[str]:
        assigned = [
            n.id
            for n in ast.walk(self.tree)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]
        scalars = [a.arg for a in self.tree.args.args if a.arg not in self.arrays]
        return list(dict.fromkeys([*scalars, *assigned]))

    # statements

    def block(self, statements: list[ast.stmt]) -> None:
        for node in statements:
            if self.builder.block.is_terminated:
                return
            getattr(self, f"do_{type(node).__name__}")(node)

    def do_Pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def do_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.call(node.value)

    def do_Assign(self, node: ast.Assign) -> None:
        self.assign(node.targets[0], self.integer(node.value))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        load = ast.parse(ast.unparse(node.target), mode="eval").body
        value = self.integer(ast.BinOp(left=load, op=node.op, right=node.value))
        self.assign(node.target, value)

    def assign(self, target: ast.expr, value: ir.Value) -> None:
        if isinstance(target, ast.Name):
            self.builder.store(value, self.slots[target.id])
            return
        assert isinstance(target, ast.Subscript)
        pointer = self.element(target)
        stored = pointer.type.pointee
        self.builder.store(value if stored == I64 else self.builder.trunc(value, stored), pointer)

    def do_If(self, node: ast.If) -> None:
        b = self.builder
        condition = self.truth(node.test)
        then, after = b.append_basic_block(), b.append_basic_block()
        otherwise = b.append_basic_block() if node.orelse else after
        b.cbranch(condition, then, otherwise)
        for start, body in ((then, node.body), (otherwise, node.orelse)):
            if start is after:
                continue
            b.position_at_end(start)
            self.block(body)
            if not b.block.is_terminated:
                b.branch(after)
        b.position_at_end(after)

    def do_While(self, node: ast.While) -> None:
        b = self.builder
        head, body, after = (b.append_basic_block() for _ in range(3))
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(self.truth(node.test), body, after)
        b.position_at_end(body)
        self.loops.append((head, after))
        self.block(node.body)
        self.loops.pop()
        if not b.block.is_terminated:
            b.branch(head)
        b.position_at_end(after)

    def do_Break(self, node: ast.Break) -> None:
        self.builder.branch(self.loops[-1][1])

    def do_Continue(self, node: ast.Continue) -> None:
        self.builder.branch(self.loops[-1][0])

    def do_For(self, node: ast.For) -> None:
        """Unrolled loops only: `for k in unroll(CONSTANT)`."""
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        count = self.constant(node.iter.args[0])
        for value in range(count):
            self.known[node.target.id] = value
            self.block(node.body)

    def do_Return(self, node: ast.Return) -> None:
        self.builder.ret(ir.Constant(I64, 0) if node.value is None else self.integer(node.value))

    # expressions

    def constant(self, node: ast.expr) -> int:
        return int(eval(ast.unparse(node), {}, self.known))  # noqa: S307  # our own source

    def element(self, node: ast.Subscript) -> ir.Value:
        assert isinstance(node.value, ast.Name)
        return self.builder.gep(self.arrays[node.value.id], [self.integer(node.slice)])

    def integer(self, node: ast.expr) -> ir.Value:
        value = self.value(node)
        return self.builder.zext(value, I64) if value.type == I1 else value

    def truth(self, node: ast.expr) -> ir.Value:
        value = self.value(node)
        return (
            value
            if value.type == I1
            else self.builder.icmp_signed("!=", value, ir.Constant(I64, 0))
        )

    def value(self, node: ast.expr) -> ir.Value:
        b = self.builder
        if isinstance(node, ast.Constant):
            return ir.Constant(I64, _wrapped(int(node.value)))  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            if node.id in self.known:
                return ir.Constant(I64, _wrapped(self.known[node.id]))
            return self.arrays[node.id] if node.id in self.arrays else b.load(self.slots[node.id])
        if isinstance(node, ast.Subscript):
            loaded = b.load(self.element(node))
            return loaded if loaded.type == I64 else b.zext(loaded, I64)
        if isinstance(node, ast.BinOp):
            return self.operation(node)
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.Not):
                return b.not_(self.truth(node.operand))
            return b.sub(ir.Constant(I64, 0), self.integer(node.operand))
        if isinstance(node, ast.Compare):
            symbol = SYMBOLS[type(node.ops[0])]
            return b.icmp_signed(symbol, self.integer(node.left), self.integer(node.comparators[0]))
        if isinstance(node, ast.BoolOp):
            joined = self.truth(node.values[0])
            for part in node.values[1:]:
                other = self.truth(part)
                joined = (b.and_ if isinstance(node.op, ast.And) else b.or_)(joined, other)
            return joined
        assert isinstance(node, ast.Call), ast.dump(node)
        return self.call(node)

    def operation(self, node: ast.BinOp) -> ir.Value:
        b = self.builder
        left, right = self.integer(node.left), self.integer(node.right)
        return {
            ast.Add: b.add,
            ast.Sub: b.sub,
            ast.Mult: b.mul,
            ast.FloorDiv: b.udiv,
            ast.Mod: b.urem,
            ast.BitAnd: b.and_,
            ast.BitOr: b.or_,
            ast.BitXor: b.xor,
            ast.LShift: b.shl,
            ast.RShift: b.lshr,
        }[type(node.op)](left, right)

    def call(self, node: ast.Call) -> ir.Value:
        b = self.builder
        assert isinstance(node.func, ast.Name)
        if node.func.id == "prefetch":
            assert isinstance(node.args[0], ast.Name)
            pointer = b.gep(self.arrays[node.args[0].id], [self.integer(node.args[1])])
            flags = [ir.Constant(I32, n) for n in (0, 3, 1)]
            return b.call(self.kernel._prefetch, [b.bitcast(pointer, I8.as_pointer()), *flags])
        callee = self.kernel.module.globals[node.func.id]
        arguments = []
        for argument, wanted in zip(node.args, callee.function_type.args, strict=True):
            if isinstance(wanted, ir.PointerType):
                arguments.append(self.pointer(argument))
            else:
                arguments.append(self.integer(argument))
        return b.call(callee, arguments)

    def pointer(self, node: ast.expr) -> ir.Value:
        """An array, or `at(array, index)`: the part of it that begins there."""
        if isinstance(node, ast.Call):
            assert isinstance(node.args[0], ast.Name)
            return self.builder.gep(self.arrays[node.args[0].id], [self.integer(node.args[1])])
        assert isinstance(node, ast.Name)
        return self.arrays[node.id]


def at(array: Any, index: int) -> Any:
    """In a call: the part of an array that begins at `index`."""
    return array[index:]


SYMBOLS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def _wrapped(value: int) -> int:
    """As a signed 64-bit number."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value
