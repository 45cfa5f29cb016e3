"""Compiles small numeric Python functions to machine code, through LLVM.

The searches' inner loops are written as plain functions over integers and arrays and translated
statement by statement; they are far too hot for Python, and too small for a framework. A function's
parameters are annotated `int`, or with an array type of `epochgate.fsm.checker.engines.kernels`.
All arithmetic is on 64 bits and wraps; `>>` shifts in zeros; comparisons are signed; `and` and `or`
evaluate both sides. Known at compile time are constants, conditions made of them alone, `unroll(n)`
loops, and the other functions of the same LLVM module. The translator is for our own functions:
what it does not know fails as an error of Python.
"""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
BYTES = I8.as_pointer()
ARRAYS = {"Words": I64, "Halves": I32, "Shorts": I16, "Bytes": I8}
"""The names of array types -> the type of their elements."""


class Kernel:
    """Translates functions into one LLVM module."""

    def __init__(self, module: ir.Module, constants: dict[str, int]) -> None:
        self.module, self.constants = module, constants
        pointer = BYTES
        self.prefetch = module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, I32, I32, I32])
        )

    def add(self, function: Callable[..., Any], *, inline: bool = False) -> ir.Function:
        """Translate one function; those that it calls must have been added before."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        types = []
        for argument in tree.args.args:
            name = ast.unparse(argument.annotation) if argument.annotation else "int"
            types.append(ARRAYS[name].as_pointer() if name in ARRAYS else I64)
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
        decided = self.known_value(node.test)
        if decided is not None:
            self.block(node.body if decided else node.orelse)
            return
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
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        for value in range(self.constant(node.iter.args[0])):
            self.known[node.target.id] = value
            self.block(node.body)

    def do_Return(self, node: ast.Return) -> None:
        self.builder.ret(ir.Constant(I64, 0) if node.value is None else self.integer(node.value))

    # expressions

    def constant(self, node: ast.expr) -> int:
        value = self.known_value(node)
        assert value is not None, ast.unparse(node)
        return value

    def known_value(self, node: ast.expr) -> int | None:
        """The value of what is made of constants alone."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return int(node.value)
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            operand = self.known_value(node.operand)
            return None if operand is None else int(not operand)
        if isinstance(node, ast.BinOp | ast.Compare):
            right_node = node.right if isinstance(node, ast.BinOp) else node.comparators[0]
            left, right = self.known_value(node.left), self.known_value(right_node)
            symbol = node.op if isinstance(node, ast.BinOp) else node.ops[0]
            if left is not None and right is not None and type(symbol) in FOLDED:
                return int(FOLDED[type(symbol)](left, right))
        return None

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
        known = self.known_value(node)
        if known is not None:
            return ir.Constant(I64, _wrapped(known))
        if isinstance(node, ast.Name):
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
            pointer = b.bitcast(self.pointer(node), BYTES)
            flags = [ir.Constant(I32, flag) for flag in (0, 3, 1)]
            return b.call(self.kernel.prefetch, [pointer, *flags])
        if node.func.id == "claim":
            # Puts a value where 0 was, unless another thread was faster.
            pointer, value = self.pointer(node), self.integer(node.args[2])
            seen = b.cmpxchg(pointer, ir.Constant(I64, 0), value, "acq_rel", "acquire")
            return b.extract_value(seen, 1)
        if node.func.id == "alike":
            return self.alike(node)
        if node.func.id == "lowest":
            return b.cttz(self.integer(node.args[0]), ir.Constant(I1, 1))
        callee = self.kernel.module.globals[node.func.id]
        arguments = []
        for argument, wanted in zip(node.args, callee.function_type.args, strict=True):
            if isinstance(wanted, ir.PointerType):
                arguments.append(self.pointer(argument))
            else:
                arguments.append(self.integer(argument))
        return b.call(callee, arguments)

    def alike(self, node: ast.Call) -> ir.Value:
        """A bit for each of LANES elements, in one line of the cache, that is a value."""
        b, count = self.builder, self.known["LANES"]
        lanes = ir.VectorType(I32, count)
        elements = b.load(b.bitcast(self.pointer(node), lanes.as_pointer()), align=4 * count)
        value = b.trunc(self.integer(node.args[2]), I32)
        undefined, first = ir.Constant(lanes, ir.Undefined), ir.Constant(I32, 0)
        each = b.shuffle_vector(
            b.insert_element(undefined, value, first), undefined, ir.Constant(lanes, [0] * count)
        )
        found = b.bitcast(b.icmp_signed("==", elements, each), ir.IntType(count))
        return b.zext(found, I64)

    def pointer(self, node: ast.expr) -> ir.Value:
        """An array, or `at(array, index)`: the part of it that begins there."""
        if isinstance(node, ast.Call):
            assert isinstance(node.args[0], ast.Name)
            return self.builder.gep(self.arrays[node.args[0].id], [self.integer(node.args[1])])
        assert isinstance(node, ast.Name)
        return self.arrays[node.id]


FOLDED: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
}
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
