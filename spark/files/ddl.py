"""A schema as Spark's DDL writes it: `id BIGINT NOT NULL, tags ARRAY<STRING>, at TIMESTAMP`.

Decides which Arrow type a SQL type is, and says of what is no type where it stands and which there
are. Parsed here, because Spark's own parser needs a running JVM, and a schema that is wrong is to
be said before one starts. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from epochgate.errors import UsageError

_PLAIN = {
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ltz": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_SAME = ("byte", "short", "integer", "long", "real", "timestamp_ltz")
"""Other names of types that have one."""
_WRITTEN = {kind: name.upper() for name, kind in _PLAIN.items() if name not in _SAME}
_DECIMAL = ("decimal", "dec", "numeric")
_TEXT_OF_LENGTH = ("varchar", "char")
_NAMES = sorted({*_PLAIN, "decimal(p,s)", "varchar(n)", "array<t>", "map<k,v>", "struct<f: t>"})
_DIGITS_MAX = 38
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.)*')|([^\W]+)|([<>(),:]))", re.UNICODE)


SCHEMA = "--schema (schema in Python)"


class SchemaUnreadable(UsageError):
    """A schema is not in Spark's DDL: the text, where, what is wrong there."""

    def __str__(self) -> str:
        text, at, why, *option = self.args
        return (
            f"{option[0] if option else SCHEMA} cannot be read: {why}, at character {at + 1}\n"
            f"  {text}\n  {' ' * at}^\n"
            "Write columns as in Spark: 'id BIGINT NOT NULL, name STRING, price DECIMAL(10,2), "
            "tags ARRAY<STRING>, at TIMESTAMP'."
        )


def parse_schema(text: str, option: str = SCHEMA) -> pa.Schema:
    """The Arrow schema that a DDL text, given by this option, describes. Raises SchemaUnreadable.

    >>> parse_schema("id BIGINT NOT NULL, `a b` DECIMAL(10,2)").field("id")
    pyarrow.Field<id: int64 not null>
    """
    try:
        return _Parser(" ".join(text.split())).schema()
    except SchemaUnreadable as error:
        raise SchemaUnreadable(*error.args[:3], option) from None


def spark_type(kind: pa.DataType) -> str:
    """The type as Spark's DDL writes it; as Arrow does, where Spark has no such type.

    >>> spark_type(pa.list_(pa.int64())), spark_type(pa.decimal128(10, 2)), spark_type(pa.uint8())
    ('ARRAY<BIGINT>', 'DECIMAL(10,2)', 'uint8')
    """
    if kind in _WRITTEN:
        return _WRITTEN[kind]
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{spark_type(kind.key_type)}, {spark_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{one.name}: {spark_type(one.type)}' for one in kind)}>"
    return str(kind)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0

    def schema(self) -> pa.Schema:
        fields: list[pa.Field] = []
        while True:
            at = self._at()
            field = self._field()
            if field.name.lower() in {one.name.lower() for one in fields}:
                raise self._wrong(f"column {field.name!r} comes twice", at)
            fields.append(field)
            if self._next == len(self._tokens):
                return pa.schema(fields)
            self._expect(",")

    def _split(self) -> Iterator[tuple[str, int]]:
        at = 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                at += len(self._text[at:]) - len(self._text[at:].lstrip())
                raise self._wrong(f"{self._text[at]!r} is not expected here", at)
            yield match[0].strip(), match.end() - len(match[0].lstrip())
            at = match.end()

    def _field(self) -> pa.Field:
        name = self._name()
        if self._peek() == ":":
            self._take()
        kind = self._type()
        nullable = True
        if self._peek().lower() == "not":
            self._take()
            self._expect("null")
            nullable = False
        if self._peek().lower() == "comment":
            self._take()
            self._take()
        return pa.field(name, kind, nullable)

    def _name(self) -> str:
        at, token = self._at(), self._take()
        if token.startswith("`"):
            return token[1:-1].replace("``", "`")
        if not token or not (token[0].isalnum() or token[0] == "_"):
            raise self._wrong("the name of a column is expected", at)
        return token

    def _type(self) -> pa.DataType:
        at, token = self._at(), self._take()
        name = token.lower()
        if name in _PLAIN:
            return _PLAIN[name]
        if name in _DECIMAL:
            return self._decimal(at)
        if name in _TEXT_OF_LENGTH:
            self._numbers(1)
            return pa.string()
        if name == "array":
            self._expect("<")
            item = self._type()
            self._expect(">")
            return pa.list_(item)
        if name == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            value = self._type()
            self._expect(">")
            return pa.map_(key, value)
        if name == "struct":
            return self._struct()
        found = f"{token!r} is no type" if token else "a type is missing"
        raise self._wrong(f"{found}; the types are {', '.join(_NAMES).upper()}", at)

    def _decimal(self, at: int) -> pa.DataType:
        digits, scale = 10, 0
        if self._peek() == "(":
            digits, *rest = self._numbers(1, 2)
            scale = rest[0] if rest else 0
        if not 1 <= digits <= _DIGITS_MAX or scale > digits:
            raise self._wrong(
                f"DECIMAL({digits},{scale}) must have 1 to {_DIGITS_MAX} digits, and no more "
                "behind the point",
                at,
            )
        return pa.decimal128(digits, scale)

    def _struct(self) -> pa.DataType:
        self._expect("<")
        fields = [self._field()]
        while self._peek() == ",":
            self._take()
            fields.append(self._field())
        self._expect(">")
        return pa.struct(fields)

    def _numbers(self, *counts: int) -> list[int]:
        self._expect("(")
        found = []
        while True:
            at, token = self._at(), self._take()
            if not token.isdecimal():
                raise self._wrong("a number is expected", at)
            found.append(int(token))
            if self._peek() != ",":
                break
            self._take()
        at = self._at()
        self._expect(")")
        if len(found) not in counts:
            raise self._wrong(f"{len(found)} numbers are too many", at)
        return found

    def _peek(self) -> str:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else ""

    def _at(self) -> int:
        return self._tokens[self._next][1] if self._next < len(self._tokens) else len(self._text)

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _expect(self, wanted: str) -> None:
        at, token = self._at(), self._take()
        if token.lower() != wanted:
            found = f"found {token!r}" if token else "the text ends"
            raise self._wrong(f"{wanted.upper()!r} is expected, and {found}", at)

    def _wrong(self, why: str, at: int) -> SchemaUnreadable:
        return SchemaUnreadable(self._text, at, why)
