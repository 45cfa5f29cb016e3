"""A condition on rows as a user writes it: comparisons of columns that all have to be true.

    region IN :regions AND amount >= :limit AND day = '2026-11-23'

Decides the grammar, a part of SQL: a name with a colon is a parameter, as in `spark.sql`. A value
of None takes its comparison out, so that a parameter can stand for "no limit". There is no OR, NOT
or `!=`: the smallest and largest values in a file say too little about those. Pure values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from epochgate.errors import UsageError

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<operator><=|>=|<>|!=|=|<|>) | (?P<punctuation>[(),]) |
    (?P<parameter>:[A-Za-z_]\w*) | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) |
    '(?P<text>(?:[^']|'')*)' | `(?P<quoted>[^`]+)` | (?P<word>[A-Za-z_]\w*) | (?P<other>\S)
    )""",
    re.VERBOSE,
)
_WORDS: Final = {"TRUE": True, "FALSE": False}
OPERATORS: Final = ("=", "<", "<=", ">", ">=", "IN")


class ConditionWrong(UsageError):
    """A condition cannot be used: the condition, what is wrong with it."""

    def __str__(self) -> str:
        condition, reason = self.args
        return (
            f"the filter {condition!r} cannot be used: {reason}. It consists of comparisons with "
            f"{', '.join(OPERATORS)}, joined by AND, of a column with a number, a 'text', TRUE, "
            "FALSE, or a value of a control, such as: region IN :regions AND amount >= :limit"
        )


@dataclass(frozen=True)
class Parameter:
    """Stands for a value by its name."""

    name: str


@dataclass(frozen=True)
class Comparison:
    """Of a column with an operand: a plain value, or a Parameter; for IN a list of these."""

    column: str
    operator: str
    operand: Any


@dataclass(frozen=True)
class Condition:
    """Comparisons that a row has to fulfil, each of them."""

    text: str
    comparisons: tuple[Comparison, ...]

    @property
    def names(self) -> set[str]:
        """Of the parameters."""
        found: set[str] = set()
        for one in self.comparisons:
            operands = one.operand if isinstance(one.operand, list) else [one.operand]
            found |= {of.name for of in operands if isinstance(of, Parameter)}
        return found

    def bound(self, values: Mapping[str, Any]) -> tuple[Comparison, ...]:
        """The comparisons with these values, but for those with None. Raises ConditionWrong."""
        if missing := sorted(self.names - values.keys()):
            raise ConditionWrong(
                self.text, f"there is no value {missing[0]!r} among {', '.join(values) or 'none'}"
            )
        return tuple(self._bound(values))

    def _bound(self, values: Mapping[str, Any]) -> Iterator[Comparison]:
        for one in self.comparisons:
            operand = _value(one.operand, values)
            if operand is None:
                continue
            if (one.operator == "IN") != isinstance(operand, list):
                takes = "a list" if one.operator == "IN" else "one value"
                raise ConditionWrong(
                    self.text, f"{one.column} {one.operator} takes {takes}, and has {operand!r}"
                )
            yield Comparison(one.column, one.operator, operand)


def _value(operand: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(operand, list):
        return [_value(one, values) for one in operand]
    return values[operand.name] if isinstance(operand, Parameter) else operand


def parse_condition(text: str) -> Condition:
    """Raises ConditionWrong.

    >>> parse_condition("amount >= :limit AND region IN ('north', :other)").comparisons[0]
    Comparison(column='amount', operator='>=', operand=Parameter(name='limit'))
    """
    return Condition(text, tuple(_Parser(text).comparisons()))


class _Parser:
    """Takes the tokens of a text one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = [
            (str(found.lastgroup), found[str(found.lastgroup)])
            for found in _TOKEN.finditer(text.rstrip())
        ]

    def comparisons(self) -> Iterator[Comparison]:
        """All of them; at least one."""
        yield self._comparison()
        while self._tokens:
            kind, word = self._taken("AND")
            if kind != "word" or word.upper() != "AND":
                raise self._wrong("AND", word)
            yield self._comparison()

    def _comparison(self) -> Comparison:
        kind, column = self._taken("a column")
        if kind not in ("word", "quoted"):
            raise self._wrong("a column", column)
        _, operator = self._taken("an operator")
        if operator.upper() not in OPERATORS:
            raise self._wrong("an operator", operator)
        if operator.upper() != "IN":
            return Comparison(column, operator, self._operand())
        return Comparison(column, "IN", self._list())

    def _list(self) -> Any:
        kind, first = self._taken("a list")
        if kind == "parameter":
            return Parameter(first[1:])
        if first != "(":
            raise self._wrong(":NAME or (", first)
        operands = [self._operand()]
        while (after := self._taken(")")[1]) == ",":
            operands.append(self._operand())
        if after != ")":
            raise self._wrong(", or )", after)
        return operands

    def _operand(self) -> Any:
        kind, text = self._taken("a value")
        if kind == "parameter":
            return Parameter(text[1:])
        if kind == "number":
            return float(text) if set(text) & set(".eE") else int(text)
        if kind == "text":
            return text.replace("''", "'")
        if kind == "word" and text.upper() in _WORDS:
            return _WORDS[text.upper()]
        raise self._wrong("a value", text)

    def _taken(self, wanted: str) -> tuple[str, str]:
        if not self._tokens:
            raise ConditionWrong(self._text, f"it ends where {wanted} should be")
        return self._tokens.pop(0)

    def _wrong(self, wanted: str, found: str) -> ConditionWrong:
        return ConditionWrong(self._text, f"{found!r} stands where {wanted} should be")
