"""A plugin of mypy that knows which machines a `Handles[...]` has, and which triggers a `Handle`.

    [tool.mypy]
    plugins = ["epochgate.fsm.mypy_plugin"]

Without it every attribute of a handle passes the type check, and what is no trigger raises
AttributeError when it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mypy.nodes import Var
from mypy.plugin import AttributeContext, Plugin
from mypy.types import AnyType, Instance, Type, TypeAliasType, TypeOfAny, get_proper_type

MACHINE = "epochgate.fsm.machine.Machine"
TRIGGER = "epochgate.fsm.machine.Trigger"
HANDLE = "epochgate.fsm.handles.Handle"
HANDLES = "epochgate.fsm.handles.Handles"
OWN = ("bind", "settle")
"""What `Handles` has beside machines."""


class HandlesPlugin(Plugin):
    """Types the attributes of handles."""

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        """Return what types an attribute of `Handle` or `Handles`; None for any other."""
        owner, _, name = fullname.rpartition(".")
        if owner == HANDLE:
            return partial(_trigger, name)
        return partial(_machines, name) if owner == HANDLES and name not in OWN else None


def _trigger(name: str, context: AttributeContext) -> Type:
    machine = _behind(context)
    declared = None if machine is None else _declared(machine, name)
    if machine is None or (isinstance(declared, TypeAliasType) and _is_trigger(declared)):
        return context.default_attr_type
    return _refused(
        f'"{name}" is no trigger of "{machine.type.name}": outside of its rows a machine is not '
        f"read",
        context,
    )


def _machines(name: str, context: AttributeContext) -> Type:
    system, handle = _behind(context), get_proper_type(context.default_attr_type)
    if system is None or not isinstance(handle, Instance):
        return context.default_attr_type
    declared = get_proper_type(_declared(system, name))
    if isinstance(declared, Instance) and declared.type.has_base(MACHINE):
        return handle.copy_modified(args=[declared])
    if isinstance(declared, Instance) and declared.args:
        *indices, machine = declared.args
        item = get_proper_type(machine)
        if isinstance(item, Instance) and item.type.has_base(MACHINE):
            return declared.copy_modified(args=[*indices, handle.copy_modified(args=[item])])
    return _refused(f'"{name}" is no machine of "{system.type.name}"', context)


def _behind(context: AttributeContext) -> Instance | None:
    """The machine or system of which the handles are; None where no class of it is known."""
    handles = get_proper_type(context.type)
    behind = get_proper_type(handles.args[0]) if isinstance(handles, Instance) else None
    return behind if isinstance(behind, Instance) else None


def _declared(owner: Instance, name: str) -> Type | None:
    found = owner.type.get(name)
    return found.node.type if found is not None and isinstance(found.node, Var) else None


def _is_trigger(declared: TypeAliasType) -> bool:
    return declared.alias is not None and declared.alias.fullname == TRIGGER


def _refused(text: str, context: AttributeContext) -> Type:
    context.api.fail(text, context.context)
    return AnyType(TypeOfAny.from_error)


def plugin(version: str) -> type[Plugin]:
    """Return the plugin, as mypy asks for it."""
    return HandlesPlugin
