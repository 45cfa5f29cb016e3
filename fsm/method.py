"""One guard, action or method of theirs under check: its signature and its statements.

The subset is what the compiler can lower to arithmetic on packed words, and no more: ints, bools
and state names; locals and fields; `if`, bounded `for`, `assert`, `return`; calls of methods,
triggers, messages and channels. `epochgate.fsm.expression` checks what stands inside statements.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from epochgate.fsm.expression import OPERATORS, Expressions
from epochgate.fsm.places import KINDS, Anything, Channel, Kind, Value


class Method(Expressions):
    """One method of a machine; after `check()` its `calls` and `effects` are known."""

    def check(self) -> None:
        """Check the signature and the body; raises DeclarationError."""
        signature = self.node.args
        if self.node.decorator_list:
            raise self.fault(self.node, "a decorator is outside the checked subset; remove it")
        if (
            signature.vararg or signature.kwarg or signature.kwonlyargs or signature.defaults
        ) or signature.posonlyargs:
            raise self.fault(
                self.node, "parameters must be plain: no defaults, no `*`, no `/`, no keywords"
            )
        for parameter in signature.args[1:]:
            self._locals[parameter.arg] = self._annotated(parameter, parameter.arg)
        if "return" not in self._function.__annotations__ or self.gives is Kind.UNKNOWN:
            raise self.fault(self.node, "annotate the return type: None, bool, int or Opaque")
        for statement in self.node.body:
            self._statement(statement)

    def _annotated(self, node: ast.AST, name: str) -> Kind:
        kind = KINDS.get(self._function.__annotations__.get(name, ""), Kind.UNKNOWN)
        if kind in (Kind.UNKNOWN, Kind.NOTHING):
            raise self.fault(node, f"annotate the parameter {name!r} with int, bool or Opaque")
        return kind

    # Statements

    def _statement(self, node: ast.stmt) -> None:
        rule = STATEMENTS.get(type(node))
        if rule is None:
            raise self._outside(node)
        rule(self, node)

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _pass(self, node: ast.stmt) -> None:
        pass

    def _expression_statement(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        if not isinstance(node.value, ast.Call):
            raise self.fault(node, "this expression does nothing; remove it")
        self._call(node.value)

    def _if(self, node: ast.If) -> None:
        self._condition(node.test)
        self._block(node.body)
        self._block(node.orelse)

    def _assert(self, node: ast.Assert) -> None:
        self._condition(node.test)
        if node.msg is not None and not isinstance(node.msg, ast.Constant):
            raise self.fault(node.msg, "the message of an assertion is one plain string")

    def _return(self, node: ast.Return) -> None:
        given = Kind.NOTHING if node.value is None else self._value(node.value)
        self._demand(node, given, self.gives, "what is returned")

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.fault(node, "one assignment has one target; write two assignments")
        self._store(node.targets[0], self._value(node.value))

    def _annotated_assign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise self.fault(node, "a local begins with a value; assign it one")
        self._store(node.target, self._value(node.value))

    def _augmented_assign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.op, OPERATORS):
            raise self._outside(node, node.op)
        self._number(node.value)
        if isinstance(node.target, ast.Name) and node.target.id not in self._locals:
            raise self.fault(node, f"the local {node.target.id!r} has no value yet")
        self._store(node.target, Kind.INT)

    def _store(self, target: ast.expr, kind: Kind) -> None:
        if isinstance(target, ast.Name):
            before = self._locals.setdefault(target.id, kind)
            self._demand(target, kind, before, f"the local {target.id!r}")
            if before is Kind.UNKNOWN:
                self._locals[target.id] = kind
            return
        if not isinstance(target, ast.Attribute | ast.Subscript):
            raise self._outside(target)
        place = self._place(target)
        if isinstance(place, Value) and place.is_field:
            self._demand(target, kind, place.kind, "the field")
        elif not isinstance(place, Anything):
            state = isinstance(place, Value) and place.kind is Kind.STATE
            hint = "a state changes by a row alone" if state else "only int and bool fields can be"
            raise self.fault(target, f"`{ast.unparse(target)}` cannot be assigned to; {hint}")
        self.effects.append((target, f"it assigns to `{ast.unparse(target)}`"))

    def _for(self, node: ast.For) -> None:
        if node.orelse or not isinstance(node.target, ast.Name):
            raise self.fault(node, "a loop has one plain name and no `else`")
        is_taking = (
            isinstance(node.iter, ast.Call)
            and isinstance(node.iter.func, ast.Attribute)
            and node.iter.func.attr == "take_all"
        )
        kind = self._take_all(node.iter) if is_taking else self._range(node.iter)
        self._store(node.target, kind)
        self._block(node.body)

    def _take_all(self, node: Any) -> Kind:
        channel = self._place(node.func.value)
        if node.args or node.keywords or not isinstance(channel, Channel | Anything):
            raise self.fault(node, "`take_all()` is a method of channels, without arguments")
        self.effects.append((node, f"it empties `{ast.unparse(node.func.value)}`"))
        return channel.item if isinstance(channel, Channel) else Kind.UNKNOWN


STATEMENTS: dict[type[ast.stmt], Callable[[Method, Any], None]] = {
    ast.AnnAssign: Method._annotated_assign,
    ast.Assert: Method._assert,
    ast.Assign: Method._assign,
    ast.AugAssign: Method._augmented_assign,
    ast.Expr: Method._expression_statement,
    ast.For: Method._for,
    ast.If: Method._if,
    ast.Pass: Method._pass,
    ast.Return: Method._return,
}
