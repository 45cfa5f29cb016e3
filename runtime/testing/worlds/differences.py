"""The difference of two values by name: what one collection has and the other has not. Compared are
the two sides of a claim or assertion, and what an object of the user's had before and after a step.
"""

from __future__ import annotations

import ast
import linecache
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, TracebackType
from typing import Any, Final

PARTS_MAX: Final = 2000
"""How many members a collection of the user's objects may have that is compared by name."""
SIDE_PARTS_MAX: Final = 20_000
"""How many a side of a comparison may have."""
NAMED_MAX: Final = 8
"""How many members are named."""
SHORT: Final = 24
"""How long the text of a collection may be that is shown as it is."""
KEPT_MAX: Final = 200
"""How long the text of a value may be that is kept for a report."""
SIDE_MAX: Final = 60
"""How long the text or value of one side is shown."""


@dataclass(frozen=True)
class Content:
    """A value: its text, and the texts of its members if it is a collection."""

    text: str
    members: Counter[str] | None = None


def content(value: Any, most: int = PARTS_MAX) -> Content:
    """Return a value to be compared by name, if it has at most `most` members. Sets are told in the
    order of their texts, since theirs may be another in each process.
    """
    if not isinstance(value, list | tuple | Set | Mapping | deque):
        return Content(repr(value))
    if len(value) > most:
        return Content(f"{len(value):,} members")
    if isinstance(value, Set):
        texts = sorted(map(repr, value))
        return Content(f"{{{', '.join(texts)}}}", Counter(texts))
    if isinstance(value, Mapping):
        return Content(repr(value), Counter(f"{key!r}: {one!r}" for key, one in value.items()))
    return Content(repr(value), Counter(map(repr, value)))


def named(members: Counter[str], odd: Collection[str] = ()) -> str:
    """Name the first members, those of `odd` before the others, and count the rest."""
    texts = [
        f"{text} ({count} times)" if count > 1 else text
        for text, count in sorted(members.items(), key=lambda one: one[0] not in odd)
    ]
    shown = ", ".join(cut(text) for text in texts[:NAMED_MAX])
    rest = len(texts) - NAMED_MAX
    return shown + (f" and {rest} more" if rest > 0 else "")


def cut(text: str, width: int = SIDE_MAX) -> str:
    """A text in one line that is not too long."""
    text = " ".join(text.split("\n"))
    return text if len(text) <= width else text[: width - 1] + "…"


@dataclass(frozen=True)
class Change:
    """A value that differs from what it was: texts of both, and the members that went and came."""

    key: str
    before: str
    """Empty for an object that was not there."""
    after: str
    gone: Counter[str]
    come: Counter[str]
    is_long: bool = False

    @property
    def members(self) -> list[str]:
        """Those that went or came."""
        return [*self.gone, *self.come]

    @property
    def values(self) -> list[str]:
        """The texts that are not too long to be kept."""
        return [text for text in (self.before, self.after) if len(text) <= KEPT_MAX]

    def told(self, odd: Collection[str] = ()) -> str:
        """Tell it, with members of `odd` first."""
        if not self.before:
            return f"{self.key} = {cut(self.after)}"
        if not self.is_long:
            return f"{self.key}: {cut(self.before)} → {cut(self.after)}"
        words = [f"− {named(self.gone, odd)}"] if self.gone else []
        words += [f"+ {named(self.come, odd)}"] if self.come else []
        return f"{self.key}: {' '.join(words) or 'in another order'}"


def change(key: str, before: Content | None, after: Content) -> Change | None:
    """Return how a value differs from what it was; None if it does not."""
    if before == after:
        return None
    had = Counter[str]() if before is None or before.members is None else before.members
    has = after.members or Counter[str]()
    is_both = after.members is not None and (before is None or before.members is not None)
    gone, come = (had - has, has - had) if is_both else (Counter[str](), Counter[str]())
    was = "" if before is None else before.text
    is_long = is_both and (len(was) > SHORT or len(after.text) > SHORT)
    return Change(key, was[: KEPT_MAX + 1], after.text[: KEPT_MAX + 1], gone, come, is_long)


Own = dict[str, dict[str, Content]]
"""The values of objects, by the object's name and the attribute's."""


def changes(before: Own, after: Own) -> list[Change]:
    """Return the changes, and the values of objects that were not there; an attribute that an
    object gets later is no change.
    """
    found = []
    for name, values in after.items():
        known = before.get(name)
        for key, value in values.items():
            if known is None or key in known:
                found.append(change(key, None if known is None else known[key], value))
    return [one for one in found if one is not None]


@dataclass(frozen=True)
class Sides:
    """The two sides of a comparison that does not hold, with their texts in the source."""

    texts: tuple[str, str]
    values: tuple[Content, Content]

    @property
    def odd(self) -> Counter[str]:
        """The members that one side alone has."""
        one, other = (value.members for value in self.values)
        if one is None or other is None:
            return Counter()
        return (one - other) + (other - one)

    def lines(self) -> Iterator[str]:
        """Tell them side by side."""
        texts = [f"`{cut(text)}`" for text in self.texts]
        width = max(map(len, texts))
        one, other = (value.members for value in self.values)
        if one is not None and other is not None and one != other:
            for text, has, lacks in ((texts[0], one, other), (texts[1], other, one)):
                only = has - lacks
                many = f" ({only.total()} of {has.total()})" if only else ""
                yield f"only in {text.ljust(width)}  {named(only) or 'nothing'}{many}"
            return
        for text, value in zip(texts, self.values, strict=True):
            yield f"{text.ljust(width)}  is {cut(value.text)}"
        if one is not None and one == other:
            yield "both have the same members"


def sides_of_assertion(trace: TracebackType | None, file: str, line: int) -> Sides | None:
    """Return the sides of the assertion at a line; they are computed once more, from what its frame
    has. None where it compares nothing, or where it would hold now.
    """
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_filename == file and trace.tb_lineno == line:
            names = {**frame.f_globals, **frame.f_locals}
            return _sides(_asserted(file, line), names, file)
        trace = trace.tb_next
    return None


@lru_cache(maxsize=64)
def _asserted(file: str, line: int) -> ast.expr | None:
    """The condition of the assertion at a line."""
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Assert) and node.lineno <= line <= (node.end_lineno or line):
            return node.test
    return None


def sides_of_claim(holds: Callable[[], Any]) -> Sides | None:
    """Return the sides of a claim that is a lambda or function with a comparison."""
    code = getattr(holds, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    names = dict(getattr(holds, "__globals__", {}))
    for name, cell in zip(code.co_freevars, getattr(holds, "__closure__", None) or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            return None
    return _sides(_body(code), names, code.co_filename)


@lru_cache(maxsize=64)
def _body(code: CodeType) -> ast.expr | None:
    """The expression of a lambda, by its place in the file; that of a function of one line."""
    places = {(at[0], at[2]) for at in code.co_positions() if at[0] is not None}
    for node in ast.walk(_tree(code.co_filename)):
        match node:
            case ast.Lambda(body=body) if (body.lineno, body.col_offset) in places:
                if node.lineno == code.co_firstlineno:
                    return body
            case ast.FunctionDef(body=[ast.Return(value=ast.expr() as body)]):
                if (body.lineno, body.col_offset) in places and node.name == code.co_name:
                    return body
    return None


def _tree(file: str) -> ast.Module:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ast.Module([], [])


def _sides(test: ast.expr | None, names: dict[str, Any], file: str) -> Sides | None:
    try:
        return _compared(test, names, file)
    except Exception:  # noqa: BLE001  # user code may raise anything; the claim is told in any case
        return None


def _compared(test: ast.expr | None, names: dict[str, Any], file: str) -> Sides | None:
    """The sides of the first comparison in `test` that does not hold."""
    if test is None:
        return None
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        found = (_compared(one, names, file) for one in test.values)
        return next((sides for sides in found if sides is not None), None)
    if not isinstance(test, ast.Compare) or len(test.comparators) != 1:
        return None
    both = test.left, test.comparators[0]
    one, other = (_value(each, names, file) for each in both)
    names = {**names, "__one": one, "__other": other}
    again = ast.Compare(ast.Name("__one", ast.Load()), test.ops, [ast.Name("__other", ast.Load())])
    if _value(ast.fix_missing_locations(ast.copy_location(again, test)), names, file):
        return None
    texts = ast.unparse(both[0]), ast.unparse(both[1])
    if not isinstance(test.ops[0], ast.Eq):
        return Sides(texts, (Content(repr(one)), Content(repr(other))))
    return Sides(texts, (content(one, SIDE_PARTS_MAX), content(other, SIDE_PARTS_MAX)))


def _value(expression: ast.expr, names: dict[str, Any], file: str) -> Any:
    return eval(compile(ast.Expression(expression), file, "eval"), names)  # noqa: S307  # user's own


def members_in(texts: Sequence[str], odd: Counter[str]) -> bool:
    """Return whether any of the texts has a member of `odd` as a part."""
    return any(text in odd or any(part in odd for part in _leaves(text)) for text in texts)


@lru_cache(maxsize=4096)
def _leaves(text: str) -> frozenset[str]:
    """The parts of a plain value, as texts."""
    try:
        return frozenset(_each(ast.literal_eval(text)))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return frozenset()


def _each(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple | set | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield repr(one)
            yield from _each(one)
