"""Constants of a closed system that follow from others."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from epochgate.fsm.errors import DeclarationError

ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def derived(rule: str, constants: dict[str, int], where: str) -> int:
    """Compute a derived constant; DeclarationError for a rule that is no arithmetic of constants.

    >>> derived("C * E + K - 1", {"C": 2, "E": 1, "K": 2}, "wire")
    3
    """

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name) if name in constants:
                return constants[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                return ARITHMETIC[type(op)](value(left), value(right))
            case ast.Call(func=ast.Name(id="max" | "min" as name), args=parts) if parts:
                return (max if name == "max" else min)(value(part) for part in parts)
        raise DeclarationError(
            f"{where}: {ast.unparse(node)!r} in {rule!r} is no arithmetic of constants; use "
            f"{', '.join(constants)}, numbers, + - * //, max and min"
        )

    return value(ast.parse(rule, mode="eval").body)
