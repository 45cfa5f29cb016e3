"""The table of doors has every method of the public classes that users derive from, and every
parameter that takes a function of theirs.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.runtime import doors

ROOT = Path(__file__).parents[2]
FOLDERS = ("epochgate", "runtime", "spark")


def public_modules() -> list[str]:
    """The packages that say what is public, which is what their stubs are for."""
    found = []
    for folder in FOLDERS:
        for stub in sorted((ROOT / folder).rglob("__init__.pyi")):
            parts = stub.parent.relative_to(ROOT).parts
            found.append(".".join(parts if parts[0] == "epochgate" else ("epochgate", *parts)))
        if folder == "epochgate":
            found += [f"epochgate.{stub.stem}" for stub in (ROOT / folder).glob("[a-z]*.pyi")]
    return [name for name in found if name not in doors.INNER_MODULES]


@cache
def public() -> dict[Any, str]:
    """Each public class or function of epochgate, and its name."""
    found: dict[Any, str] = {}
    for name in public_modules():
        module = importlib.import_module(name)
        for exported in getattr(module, "__all__", dir(module)):
            one = getattr(module, exported)
            is_ours = getattr(one, "__module__", "").startswith("epochgate.")
            if is_ours and (inspect.isclass(one) or inspect.isfunction(one)):
                found.setdefault(one, exported)
    return found


def members_of(user_code: type) -> Iterator[str]:
    for name, member in vars(user_code).items():
        # An int, such as the version of a state, may be a property of the user's class.
        if not name.startswith("_") and (callable(member) or isinstance(member, property | int)):
            yield name


def is_for_users(one: Any) -> bool:
    """Return whether it is an abstract class or a protocol."""
    return inspect.isclass(one) and (inspect.isabstract(one) or getattr(one, "_is_protocol", False))


def test_each_class_that_users_may_derive_from_is_in_the_table() -> None:
    found = {name for one, name in public().items() if is_for_users(one)}
    named = {one.__name__ for one in doors.CLASSES}
    assert found == named | set(doors.OURS)


def test_each_method_of_user_code_is_a_door_or_says_what_looks_at_it() -> None:
    missing = [
        f"{user_code.__name__}.{method}"
        for user_code, stands_for in doors.CLASSES.items()
        for method in members_of(user_code)
        if not {f"{one}.{method}" for one in stands_for} & set(doors.ROWS)
    ]
    assert sorted(missing) == sorted(doors.ELSEWHERE)


def functions_of(one: Any) -> Iterator[tuple[str, Any]]:
    if inspect.isfunction(one):
        yield one.__name__, one
        return
    for name, member in vars(one).items():
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            yield one.__name__ if name == "__init__" else f"{one.__name__}.{name}", function


def parameters() -> Iterator[str]:
    """Each parameter of the public interface that takes a function: "once(function)"."""
    for one in public():
        for name, function in functions_of(one):
            for parameter, annotation in function.__annotations__.items():
                if parameter != "return" and CALLABLE.search(str(annotation)):
                    yield f"{name}({parameter})"


CALLABLE = re.compile(
    r"Callable|\b(AfterCommit|Read|ReadFrom|Then|Map|Redistribution|TransformFunction)\b"
)


def test_each_function_that_users_hand_over_is_a_door_or_says_what_looks_at_it() -> None:
    assert sorted(set(parameters())) == sorted(doors.FUNCTIONS)


NAMED = {**doors.ELSEWHERE, **doors.FUNCTIONS}


@pytest.mark.parametrize("door", NAMED)
def test_what_looks_at_a_door_is_there(door: str) -> None:
    where = NAMED[door]
    if where in doors.REASONS or where in doors.ROWS:
        return
    path, _, test = where.partition("::")
    source = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(rf"^ *def {re.escape(test)}\(", source, re.MULTILINE), where


def test_where_exception_alone_is_caught_no_user_code_is_called() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in ("runtime", "spark")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"except Exception\b", path.read_text(encoding="utf-8"))
    }
    assert {path for path in found if not path.startswith("runtime/testing/")} == set(doors.NARROW)


def test_each_tuple_of_doors_is_gone_through_by_a_test() -> None:
    tuples = {name for name, value in vars(doors).items() if set(doors.ROWS) & set(listed(value))}
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    named = {name for source in sources for name in re.findall(r"\bdoors\.([A-Z_]+)", source)}
    assert tuples - {"ROWS", "RESTARTING"} <= named


def listed(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else ()
