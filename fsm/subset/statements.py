"""Parses one guard, action or method of theirs: its signature and its statements.

The subset is what the checker can lower to arithmetic on packed words, and no more: ints, bools
and state names; locals and fields; `if`, bounded `for`, `assert`, `return`; calls of methods,
triggers, messages and channels. `epochgate.fsm.subset.expressions` parses what stands inside
statements.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from epochgate.fsm.faults import Faults
from epochgate.fsm.subset import tree
from epochgate.fsm.subset.expressions import SET_OPERATORS, Expressions
from epochgate.fsm.subset.loops import OPERATORS
from epochgate.fsm.subset.names import (
    KINDS,
    Anything,
    Channel,
    Kind,
    NoSuchName,
    Value,
    in_system,
)

if TYPE_CHECKING:
    from epochgate.fsm.system import System


class Method(Expressions):
    """One method of a machine or of a system; `parse` gives its tree."""

    def parse(self) -> tree.MethodTree:
        """Parse the signature and the body; raises DeclarationError."""
        signature = self.node.args
        if self.node.decorator_list and self.machine is not None:
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
        parameters = tuple(self._locals)
        body = self._block(self.node.body)
        targets = (n.target for n in tree.walk(body) if isinstance(n, tree.Assign | tree.Update))
        stored = {target.name for target in targets if isinstance(target, tree.LocalName)}
        reassigned = tuple(name for name in parameters if name in stored)
        return tree.MethodTree(
            self.node, self.machine, self._function, parameters, reassigned, self.gives, body
        )

    def is_same_in(self, system: type[System]) -> bool:
        """Return whether the method has the same tree in another system: it is the same function,
        and each name behind `self.system` leads to the same there.
        """
        if getattr(self._owner, self.name) is not self._function:
            return False
        try:
            return all(
                in_system(system, name, is_outside=self._is_outside) == place
                for name, place in self.behind_system.items()
            )
        except NoSuchName:
            return False

    def _annotated(self, node: ast.AST, name: str) -> Kind:
        kind = KINDS.get(self._function.__annotations__.get(name, ""), Kind.UNKNOWN)
        if kind in (Kind.UNKNOWN, Kind.NOTHING):
            raise self.fault(node, f"annotate the parameter {name!r} with int, bool or Opaque")
        return kind

    # Statements

    def _block(self, statements: list[ast.stmt]) -> tuple[tree.Statement, ...]:
        parsed, faults = list[tree.Statement | None](), Faults()
        for statement in statements:
            with faults.kept():
                parsed.append(self._statement(statement))
            if faults:
                self._assume(statement)
        faults.tell()
        return tuple(statement for statement in parsed if statement is not None)

    def _assume(self, node: ast.stmt) -> None:
        """Let the locals of a statement that is refused have values, so that it is told once."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                self._locals.setdefault(part.id, Kind.UNKNOWN)

    def _statement(self, node: ast.stmt) -> tree.Statement | None:
        """The statement; None for one that does nothing."""
        rule = STATEMENTS.get(type(node))
        if rule is None:
            raise self._outside(node)
        return rule(self, node)

    def _pass(self, node: ast.stmt) -> None:
        return None

    def _expression_statement(self, node: ast.Expr) -> tree.Statement | None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        if not isinstance(node.value, ast.Call):
            raise self.fault(node, "this expression does nothing; remove it")
        return tree.Do(node, self._call(node.value))

    def _if(self, node: ast.If) -> tree.Statement:
        condition = self._condition(node.test)
        then = self._block(node.body)
        return tree.If(node, condition, then, self._block(node.orelse))

    def _assert(self, node: ast.Assert) -> tree.Statement:
        condition = self._condition(node.test)
        if node.msg is None:
            return tree.Assert(node, condition, ast.unparse(node.test))
        if not isinstance(node.msg, ast.Constant):
            raise self.fault(node.msg, "the message of an assertion is one plain string")
        return tree.Assert(node, condition, str(node.msg.value))

    def _return(self, node: ast.Return) -> tree.Statement:
        value = None if node.value is None else self._value(node.value)
        given = Kind.NOTHING if value is None else value.kind
        self._demand(node, given, self.gives, "what is returned")
        return tree.Return(node, value)

    def _assign(self, node: ast.Assign) -> tree.Statement:
        if len(node.targets) != 1:
            raise self.fault(node, "one assignment has one target; write two assignments")
        value = self._value(node.value)
        self._expect_fresh(node, value)
        return tree.Assign(node, self._target(node.targets[0], value.kind), value)

    def _annotated_assign(self, node: ast.AnnAssign) -> tree.Statement:
        if node.value is None:
            raise self.fault(node, "a local begins with a value; assign it one")
        value = self._value(node.value)
        self._expect_fresh(node, value)
        return tree.Assign(node, self._target(node.target, value.kind), value)

    def _augmented_assign(self, node: ast.AugAssign) -> tree.Statement:
        if type(node.op) not in OPERATORS:
            raise self._outside(node, node.op)
        value = self._value(node.value)
        if value.kind is not Kind.SET or type(node.op) not in SET_OPERATORS:
            value = self._as_number(node.value, value)
        if isinstance(node.target, ast.Name) and node.target.id not in self._locals:
            raise self.fault(node, f"the local {node.target.id!r} has no value yet")
        kinds = {Kind.SET: Kind.SET, Kind.UNKNOWN: Kind.UNKNOWN}
        target = self._target(node.target, kinds.get(value.kind, Kind.INT))
        return tree.Update(node, target, OPERATORS[type(node.op)], value)

    def _target(self, node: ast.expr, kind: Kind) -> tree.Path:
        """Return what is assigned to, with a value of this kind."""
        if isinstance(node, ast.Name):
            if node.id in self._loop_names:
                raise self.fault(
                    node, f"{node.id!r} is the variable of a loop; use another name for the local"
                )
            return self._local(node, kind)
        if not isinstance(node, ast.Attribute | ast.Subscript):
            raise self._outside(node)
        path = self._place(node)
        place = path.place
        if isinstance(place, Value) and place.is_field:
            self._demand(node, kind, place.kind, "the field")
        elif not isinstance(place, Anything):
            state = isinstance(place, Value) and place.kind is Kind.STATE
            hint = (
                "a state changes by a row alone"
                if state
                else "only int, bool and set fields can be"
            )
            raise self.fault(node, f"`{ast.unparse(node)}` cannot be assigned to; {hint}")
        self.changes.append((node, f"it assigns to `{ast.unparse(node)}`"))
        self.written.append(path)
        return path

    def _local(self, node: ast.Name, kind: Kind) -> tree.Path:
        before = self._locals.setdefault(node.id, kind)
        self._demand(node, kind, before, f"the local {node.id!r}")
        if before is Kind.UNKNOWN:
            self._locals[node.id] = kind
        return tree.LocalName(node, Value(self._locals[node.id]), node.id)

    def _for(self, node: ast.For) -> tree.Statement:
        if node.orelse or not isinstance(node.target, ast.Name):
            raise self.fault(node, "a loop has one plain name and no `else`")
        name = node.target.id
        if name in self._locals and name not in self._loop_names:
            raise self.fault(node, f"{name!r} is a local already; use another name for the loop")
        is_taking = (
            isinstance(node.iter, ast.Call)
            and isinstance(node.iter.func, ast.Attribute)
            and node.iter.func.attr == "take_all"
        )
        if is_taking:
            channel, kind = self._take_all(node.iter)
            self._loop_variable(node.target, kind)
            return tree.ForItems(node, name, channel, self._block(node.body))
        numbers = self._range(node.iter)
        self._loop_variable(node.target, Kind.INT)
        return tree.ForRange(node, name, numbers, self._block(node.body))

    def _loop_variable(self, node: ast.Name, kind: Kind) -> None:
        self._local(node, kind)
        self._loop_names.add(node.id)

    def _take_all(self, node: Any) -> tuple[tree.Path, Kind]:
        channel = self._place(node.func.value)
        place = channel.place
        if node.args or node.keywords or not isinstance(place, Channel | Anything):
            raise self.fault(node, "`take_all()` is a method of channels, without arguments")
        self.changes.append((node, f"it empties `{ast.unparse(node.func.value)}`"))
        self.written.append(channel)
        return channel, place.item if isinstance(place, Channel) else Kind.UNKNOWN


STATEMENTS: dict[type[ast.stmt], Callable[[Method, Any], tree.Statement | None]] = {
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
