"""Tells what was read, and what of it is checked as it is and what is abstracted."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import Any

from epochgate.fsm.errors import DeclarationError
from epochgate.fsm.existing.callbacks import Callbacks
from epochgate.fsm.existing.table import ReadTable
from epochgate.fsm.source import definition

EARLY = ("prepare", "before", "exit")
"""The phases before the state has changed."""


def abstractions(table: ReadTable, callbacks: Callbacks) -> list[str]:
    """Return what a result has to say about guards and callbacks, a line each."""
    told = []
    free = [key for key, reason in callbacks.reasons.items() if reason]
    if callbacks.reasons:
        many = len(callbacks.reasons)
        if free:
            told.append(
                f"{len(free)} of {many} guards are abstracted: a counterexample may not be real; "
                f"a pass holds whatever they answer"
            )
        else:
            told.append(f"all {many} guards are checked as they are")
    told += [
        f"abstracted: {table.words.callback(key)}: {reason}"
        for key, reason in callbacks.reasons.items()
        if reason
    ]
    told += [f"the field {field!r} is given up: {why}" for field, why in callbacks.given_up.items()]
    if table.oracle.hidden:
        some = ", ".join(table.oracle.hidden[:3])
        more = ", ..." if len(table.oracle.hidden) > 3 else ""
        told.append(
            f"{len(table.oracle.hidden)} automatic triggers are left out ({some}{more}); "
            f"from_transitions(..., automatic=True) keeps them"
        )
    return [*told, *dict.fromkeys(_fired_inside(table))]


def _fired_inside(table: ReadTable) -> Iterator[str]:
    """Callbacks that fire triggers or set the state where the table does not show it."""
    triggers = {*table.oracle.triggers, *table.oracle.hidden}
    for path in table.found.paths:
        for phase, callback in path.fired.callbacks:
            is_early = phase in EARLY and not table.oracle.is_queued
            for deed in _deeds(callback, triggers, table.oracle.owners):
                if deed in table.oracle.hidden:
                    yield (
                        f"{table.words.callback(callback)!r} fires {deed!r}, which is left out: "
                        f"read the machine with automatic=True, or a run of it is not checked"
                    )
                elif is_early or deed == "":
                    what = f"fires {deed!r}" if deed else "sets the state"
                    yield (
                        f"{table.words.callback(callback)!r} {what} before its transition is over: "
                        f"what comes of it is not checked"
                    )


def _deeds(callback: Any, triggers: set[str], owners: list[Any]) -> Iterator[str]:
    """The triggers that a callback fires, and "" where it sets the state."""
    if isinstance(callback, str):
        if callback in triggers:
            yield callback
            return
        found = (getattr(o if isinstance(o, type) else type(o), callback, None) for o in owners)
        callback = next((one for one in found if one is not None), None)
    function = getattr(callback, "__func__", callback)
    if not isinstance(function, types.FunctionType):
        return
    try:
        body = definition(function)
    except DeclarationError:
        return
    for node in ast.walk(body):
        yield from _deed(node, triggers)


def _deed(node: ast.AST, triggers: set[str]) -> list[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        first = node.args[0] if node.args else None
        if name in ("trigger", "send", "dispatch") and isinstance(first, ast.Constant):
            name = str(first.value)
        return [name] if name in triggers else [""] if name == "set_state" else []
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return [""] if node.attr == "state" else []
    return []


def summary(table: ReadTable) -> str:
    """Return the states, the rows and what is suspicious."""
    ends = f", ends in {', '.join(table.final)}" if table.final else ""
    lines = [
        f"{table.oracle.name}: {len(table.states)} states, {len(table.oracle.triggers)} triggers, "
        f"{len(table.rows)} rows; begins in {table.initial}{ends}"
    ]
    lines += [f"  {row}" for row in table.rows]
    if findings := table.findings():
        lines += ["to look at:", *(f"  {one}" for one in findings)]
    if table.missing:
        lines.append("refused with an error:")
        lines += [f"  in {state}: {', '.join(names)}" for state, names in table.missing.items()]
    return "\n".join(lines)
