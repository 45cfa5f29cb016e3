"""The names of constructs outside the checked subset, and what to write in their place."""

from __future__ import annotations

import ast

LOOP = "loop over `range(...)` of constants, or over `take_all()` of a channel"
FIELDS = "keep the values in fields or locals of their own"
TESTS = "write comparisons joined by `and` and `or`"
OUTSIDE = "do this outside the machine, behind a port"

CONSTRUCTS: dict[type[ast.AST], tuple[str, str]] = {
    ast.While: ("`while`", LOOP),
    ast.Break: ("`break`", "put an `if` inside the loop"),
    ast.Continue: ("`continue`", "put an `if` inside the loop"),
    ast.Try: ("`try`", "test for the condition before; a fault ends the run"),
    ast.Raise: ("`raise`", "write `assert`, or leave the event without a row"),
    ast.With: ("`with`", OUTSIDE),
    ast.Import: ("`import`", OUTSIDE),
    ast.ImportFrom: ("`import`", OUTSIDE),
    ast.FunctionDef: ("a function inside a method", "make it a method of the machine"),
    ast.AsyncFunctionDef: ("`async`", OUTSIDE),
    ast.ClassDef: ("a class inside a method", FIELDS),
    ast.Lambda: ("`lambda`", "make it a method of the machine"),
    ast.Global: ("`global`", FIELDS),
    ast.Nonlocal: ("`nonlocal`", FIELDS),
    ast.Delete: ("`del`", "assign the value that means empty"),
    ast.Match: ("`match`", "write `if` and `elif`"),
    ast.ListComp: ("a list comprehension", f"{LOOP}, and keep the values in an array field"),
    ast.SetComp: ("a set comprehension", LOOP),
    ast.DictComp: ("a dict comprehension", LOOP),
    ast.GeneratorExp: ("a generator", "use it inside `any(...)` or `all(...)`, or write a loop"),
    ast.List: ("a list", FIELDS),
    ast.Tuple: ("a tuple", FIELDS),
    ast.Dict: ("a dict", FIELDS),
    ast.Set: ("a set", FIELDS),
    ast.Call: ("a call here", "keep what it gives in a local"),
    ast.Slice: ("a slice", LOOP),
    ast.Starred: ("`*`", "give each argument by its position"),
    ast.JoinedStr: ("an f-string", "hand the values on, and let the listener of a port format"),
    ast.NamedExpr: ("`:=`", "assign in a statement of its own"),
    ast.Await: ("`await`", OUTSIDE),
    ast.Yield: ("`yield`", OUTSIDE),
    ast.YieldFrom: ("`yield`", OUTSIDE),
    ast.Div: ("`/`", "write `//`: there are no fractions"),
    ast.Pow: ("`**`", "write `*` or `<<`"),
    ast.MatMult: ("`@`", "write `*`"),
    ast.Invert: ("`~`", "write `^` with a mask"),
    ast.UAdd: ("a sign `+`", "leave it out"),
    ast.Is: ("`is`", "write `==`"),
    ast.IsNot: ("`is not`", "write `!=`"),
}
CALLS = {
    "bool": "write a comparison",
    "enumerate": LOOP,
    "int": "write a conditional expression",
    "print": OUTSIDE,
    "sum": "add in a loop over `range(...)`",
    "super": "give the method of the base another name, and call that",
}


def named(node: ast.AST) -> tuple[str, str]:
    """Return what a construct is called, and what to write instead."""
    if isinstance(node, ast.Constant):
        if node.value is None:
            return "`None`", "use a number that means nothing, such as 0, or a bool field"
        return f"the constant {node.value!r}", "use ints, bools and names of states"
    fallback = type(node).__name__, "use assignments, `if`, `for` over a range, and calls"
    return CONSTRUCTS.get(type(node), fallback)
