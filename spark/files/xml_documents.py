"""XML documents as JSON lines: each element of one name as a record.

Decides how an element is a value, by the rules of Spark's source: a child is a field, a child that
comes more than once an array, an attribute a field with `_` before its name, text beside children
or attributes the field `_VALUE`. Names are as written, prefixes included; `xsi:nil` is null.
A number that prints again and a truth stand as such, all other texts as strings, so that types are
found as for JSON lines and a column of text has each text as it was. A document type is refused
where it begins, and with it all entities but those of XML itself. No more than one record and a
block is kept. Runs on the driver and in tasks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO
from xml.parsers import expat

from epochgate.spark.files.json_guard import DEPTH_MAX, is_printed_again
from epochgate.spark.files.json_values import VALUE
from epochgate.spark.files.records import RECORD_BYTES_MAX, RecordTooLong

_ATTRIBUTE = "_"
_BLOCK_BYTES = 1 << 16
_TAG_BYTES_MAX = 16 << 20
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,37}")
_BROKEN = re.compile(r"-?(?:0|[1-9][0-9]*)\.(?:0|[0-9]*[1-9])")
_NIL = re.compile(r".+:nil")


class DocumentTypeRefused(ValueError):
    """A document has a type, whose entities may be of any size, or name other files."""

    def __str__(self) -> str:
        return (
            "it has a document type (<!DOCTYPE), which is not read; remove it, and write its "
            "entities out"
        )


@dataclass
class _Element:
    name: str
    attributes: list[str]
    children: dict[str, list[str]] = field(default_factory=dict)
    texts: list[list[str]] = field(default_factory=lambda: [[]])
    """What stands before the first child, behind it, and so on."""

    def as_json(self, *, is_record: bool = False) -> str:
        pairs = zip(self.attributes[::2], self.attributes[1::2], strict=True)
        found = dict(pairs)
        if any(_NIL.fullmatch(name) and value in ("true", "1") for name, value in found.items()):
            return "null"
        members = [
            (_ATTRIBUTE + name, leaf(value))
            for name, value in found.items()
            if name.partition(":")[0] != "xmlns"
        ]
        members += [
            (name, values[0] if len(values) == 1 else f"[{','.join(values)}]")
            for name, values in self.children.items()
        ]
        texts = ["".join(parts) for parts in self.texts]
        texts = [text for text in texts if text.strip()] if self.children else texts
        if not members and not is_record:
            return leaf("".join(texts))
        said = [leaf(text) for text in texts if text]
        if said:
            members.append((VALUE, said[0] if len(said) == 1 else f"[{','.join(said)}]"))
        return "{" + ",".join(f"{_quoted(name)}:{value}" for name, value in members) + "}"


def leaf(text: str) -> str:
    """A text as JSON, from which it can be told again.

    >>> leaf("7"), leaf("007"), leaf("1.50"), leaf("0.5"), leaf("true")
    ('7', '"007"', '"1.50"', '0.5', 'true')
    """
    if _WHOLE.fullmatch(text) or text in ("true", "false"):
        return text
    return text if _BROKEN.fullmatch(text) and is_printed_again(text) else _quoted(text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class _Records:
    """The records of a document that is parsed, as far as they have ended."""

    def __init__(self, row_tag: str) -> None:
        self._row_tag = row_tag
        self._open: list[_Element] = []
        self._has = 0
        self._found: list[str] = []
        self.seen: dict[str, None] = {}
        """The names outside of records, to tell where none is found."""

    def take(self) -> Iterator[bytes]:
        found, self._found = self._found, []
        for line in found:
            yield line.encode() + b"\n"

    def begin(self, name: str, attributes: list[str]) -> None:
        if not self._open and name != self._row_tag:
            if len(self.seen) < _SHOWN_MAX:
                self.seen[name] = None
            return
        if len(self._open) >= DEPTH_MAX:
            raise ValueError(f"a record is nested more than {DEPTH_MAX} deep")
        self._open.append(_Element(name, attributes))
        self._count(len(name) + sum(map(len, attributes)))

    def end(self, _: str) -> None:
        if not self._open:
            return
        element = self._open.pop()
        if not self._open:
            self._found.append(element.as_json(is_record=True))
            self._has = 0
            return
        above = self._open[-1]
        above.children.setdefault(element.name, []).append(element.as_json())
        above.texts.append([])

    def text(self, data: str) -> None:
        if self._open:
            self._open[-1].texts[-1].append(data)
            self._count(len(data))

    def _count(self, letters: int) -> None:
        self._has += letters
        if self._has > RECORD_BYTES_MAX:
            raise RecordTooLong(f"no <{self._row_tag}> ends within {self._has} letters")


_SHOWN_MAX = 10


def _refuse(*_: Any) -> None:
    raise DocumentTypeRefused


def parsed_blocks(parser: expat.XMLParserType, file: IO[bytes]) -> Iterator[int]:
    """Parse a file block by block; tells the bytes of each, 0 of the last. Raises what reading and
    the parser raise, and ValueError for a tag or comment that does not end.
    """
    has, block = 0, b"x"
    while block:
        block = file.read(_BLOCK_BYTES)
        parser.Parse(block, not block)
        has += len(block)
        if has - parser.CurrentByteIndex > _TAG_BYTES_MAX:
            raise ValueError(f"a tag or comment has more than {_TAG_BYTES_MAX} bytes")
        yield len(block)


def lines_of_xml(raw: BinaryIO, row_tag: str) -> Iterator[bytes]:
    """The records with this name. Raises ValueError for what is no XML, behind those before it."""
    records = _Records(row_tag)
    parser = expat.ParserCreate()
    parser.buffer_text = parser.ordered_attributes = True
    parser.StartElementHandler, parser.EndElementHandler = records.begin, records.end
    parser.CharacterDataHandler = records.text
    parser.StartDoctypeDeclHandler = _refuse
    has_any = is_last = False
    blocks = parsed_blocks(parser, raw)
    wrong: Exception | None = None
    while not is_last:
        try:
            is_last = not next(blocks)
        except (expat.ExpatError, LookupError) as error:  # the latter of an unknown encoding
            wrong = ValueError(f"it is no XML: {error}")
        except Exception as error:  # noqa: BLE001  it is raised behind the records before it
            wrong = error
        for line in records.take():
            has_any = True
            yield line
        if wrong is not None:
            raise wrong
    if not has_any:
        names = ", ".join(f"<{name}>" for name in records.seen)
        raise ValueError(
            f"it has no element <{row_tag}>; it begins with {names}. Name that of a record by "
            "--row-tag (row_tag in Python)"
        )
